"""The options of `underhost maintain host/H…`, which tries maintenance mode of ESXi hosts."""

from typing import Annotated

import typer

from underhost.agents.commands.input import names
from underhost.agents.commands.input.options import Answered, Judged, grouped
from underhost.agents.commands.input.origin import From


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Simulate maintenance mode of ESXi hosts.")
    @grouped
    def maintain(
        *,
        hosts: Annotated[
            list[str],
            typer.Argument(metavar="host/HOST", help="One after another, in this order.", autocompletion=names.hosts),
        ],
        source: From,
        answered: Answered,
        judged: Judged,
    ) -> None:
        """Simulate maintenance mode of ESXi hosts; nothing is changed.

        Says where DRS moves their VMs, which cannot move, and what is violated after.
        """
        answered.check()
        from underhost.agents.commands.handlers.plans import maintain as handle  # heavy: only what runs needs it

        handle(hosts, source, answered, judged)
