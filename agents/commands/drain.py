"""The options of `underhost drain NODE…`, which tries what `kubectl drain` of these nodes would do."""

from typing import Annotated

import typer

from underhost.agents.commands.input import names
from underhost.agents.commands.input.options import Answered, Judged, grouped
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.help import HelpedCommand

EXAMPLES = """
# What a drain of one node would move, leave pending or not be allowed
underhost drain worker-1 -f dump.json --inventory inventory.json
# Two nodes, one after another, on the picture of a running worker
underhost drain worker-1 worker-2 --server http://127.0.0.1:8080
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Simulate draining nodes.")
    @grouped
    def drain(
        *,
        nodes: Annotated[
            list[str],
            typer.Argument(
                metavar="NODE...", help="Cordoned all, then drained in this order.", autocompletion=names.nodes
            ),
        ],
        source: From,
        answered: Answered,
        judged: Judged,
    ) -> None:
        """Simulate draining nodes; nothing is changed.

        Says where their pods go, which stay pending, which budgets block, and what is violated after.
        """
        answered.check()
        from underhost.agents.commands.handlers.plans import drain as handle  # heavy: only what runs needs it

        handle(nodes, source, answered, judged)
