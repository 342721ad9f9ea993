"""The options of `underhost schedule`; `handlers/schedule.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import Among, Judged, grouped, one_of, output_option
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.formats import FORMATS
from underhost.agents.commands.output.help import HelpedCommand

EXAMPLES = """
# Where the pending pods would go
underhost schedule -f dump.json --inventory inventory.json
# Try a manifest on the cluster before it is applied
underhost schedule -f manifests/ --context prod
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Say where the pending pods would go.")
    @grouped
    def schedule(
        *,
        source: From,
        among: Among,
        output: Annotated[str, output_option(FORMATS)] = "table",
        judged: Judged,
    ) -> None:
        """Place the pending pods, and those of the manifests given, and say why the rest must wait."""
        one_of("--output", output, FORMATS)
        from underhost.agents.commands.handlers.schedule import handle  # heavy: only what runs needs it

        handle(source, among, output, judged)
