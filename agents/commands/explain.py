"""The options of `underhost explain`; `handlers/explain.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input import names
from underhost.agents.commands.input.options import Among, Judged, WatchOption, grouped, one_of, output_option
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.formats import FORMATS
from underhost.agents.commands.output.help import HelpedCommand

EXAMPLES = """
# Every pending pod
underhost explain -f dump.json
# One pod, with all scores
underhost explain shop/db-2 -f dump.json -o wide
# One pod of a worker's site, again whenever something changes
underhost explain db-2 -n shop --server http://127.0.0.1:8080 --watch
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Say which nodes would take a pod, and why.")
    @grouped
    def explain(
        *,
        pods: Annotated[
            list[str] | None,
            typer.Argument(metavar="[POD]...", help="NAMESPACE/NAME, or NAME with -n.", autocompletion=names.pods),
        ] = None,
        source: From,
        among: Among,
        output: Annotated[str, output_option(FORMATS)] = "table",
        judged: Judged,
        watch: WatchOption = False,
    ) -> None:
        """Say of each pending pod, or of the named ones, which nodes would take it, and every rule that refuses."""
        one_of("--output", output, FORMATS)
        from underhost.agents.commands.handlers.explain import handle  # heavy: only what runs needs it

        handle(pods, source, among, output, judged, watch)
