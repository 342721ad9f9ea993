"""The options of `underhost fail node/N|host/H…`, which tries the loss of nodes or hosts; `--each` tries each alone."""

from typing import Annotated

import typer

from underhost.agents.commands.input import names, values
from underhost.agents.commands.input.options import Answered, Judged, NoHaOption, grouped, one_of
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.errors import InputError

KINDS = ("host", "node")
EXAMPLES = """
# One host
underhost fail host/esx-1 -f dump.json --inventory inventory.json
# Each host alone, the worst first: can the site do without any one of them?
underhost fail --each host -f dump.json --inventory inventory.json
# A node and a host at the same time, and HA restarts nothing
underhost fail node/worker-2 host/esx-2 --no-ha \\
  -f dump.json --inventory inventory.json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Simulate the failure of nodes and hosts.")
    @grouped
    def fail(
        *,
        targets: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[node/NODE|host/HOST]...", help="They fail at the same time.", autocompletion=names.targets
            ),
        ] = None,
        each: Annotated[
            str | None,
            typer.Option(
                "--each",
                metavar="host|node",
                help="Every one alone, the worst first.",
                autocompletion=values.one_of(KINDS),
            ),
        ] = None,
        no_ha: NoHaOption = False,
        source: From,
        answered: Answered,
        judged: Judged,
    ) -> None:
        """Simulate the failure of nodes and hosts; nothing is changed.

        Says what HA restarts where, which pods move or wait, and what breaks.
        """
        answered.check()
        if bool(targets) == (each is not None):
            raise InputError("fail: name what fails as node/NODE or host/HOST, or try all with --each host|node")
        if each is not None:
            one_of("--each", each, KINDS)
        from underhost.agents.commands.handlers.plans import fail as handle  # heavy: only what runs needs it

        handle(targets or [], each, not no_ha, source, answered, judged)
