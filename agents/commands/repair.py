"""The options of `underhost repair`, which plans the fewest moves that leave nothing broken."""

from typing import Annotated, NamedTuple

import typer

from underhost.agents.commands.input import names
from underhost.agents.commands.input.options import FailOnOption, Judged, grouped, one_of, output_option
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.formats import FORMATS, NEVER, TABLE
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.severities import QUORUM, SEVERITIES

EXAMPLES = """
# What to move, so that no rule is broken
underhost repair -f dump.json --inventory inventory.json
# VMs alone, with a tenth of each host left free
underhost repair -f dump.json --inventory inventory.json \\
  --no-evictions --headroom 10
# One finding, as a worker of the running pipeline sees the site
underhost repair --server http://127.0.0.1:8080 --for FINDING
# Have it done, once it is shown and agreed to
underhost repair --apply --server http://127.0.0.1:8080 \\
  --token-file token
"""


class RoomLeft(NamedTuple):
    """How the hosts' room is counted; the fields of the planner's `Room`."""

    headroom: Annotated[
        int,
        typer.Option(
            "--headroom", metavar="PERCENT", min=0, max=99, help="Of each host's memory and CPU, left free for HA."
        ),
    ] = 0
    reserved: Annotated[
        bool, typer.Option("--reserved", help="Count the memory that is reserved for VMs, not all of theirs.")
    ] = False
    admission: Annotated[
        bool, typer.Option("--admission", help="Leave free on each host what HA's admission control wants.")
    ] = False


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Simulate the fewest moves that leave nothing broken.")
    @grouped
    def repair(
        *,
        source: From,
        only: Annotated[
            list[str] | None,
            typer.Option(
                "--only",
                metavar="NAMESPACE",
                help="Repair only what is about its pods (repeatable).",
                autocompletion=names.namespaces,
            ),
        ] = None,
        for_finding: Annotated[
            str | None, typer.Option("--for", metavar="FINDING", help="Repair only this finding, by its id.")
        ] = None,
        max_vmotions: Annotated[
            int | None, typer.Option("--max-vmotions", metavar="N", min=0, help="Not more vMotions than these.")
        ] = None,
        no_evictions: Annotated[
            bool, typer.Option("--no-evictions", help="VMs move alone; no pod is evicted.")
        ] = False,
        room: RoomLeft,
        apply: Annotated[
            bool, typer.Option("--apply", help="Have the worker (--server) carry it out, and follow it.")
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="With --apply: do not ask.")] = False,
        output: Annotated[str, output_option(FORMATS)] = TABLE,
        fail_on: FailOnOption = QUORUM,
        judged: Judged,
    ) -> None:
        """Simulate the fewest moves that leave no rule broken; nothing is changed without --apply.

        Says which VMs move and which pods are evicted, in an order that breaks nothing on the way, and why what stays
        cannot be repaired.
        """
        one_of("--output", output, FORMATS)
        one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))
        from underhost.agents.commands.handlers.repair import handle  # heavy: only what runs needs it

        handle(
            source,
            judged,
            only or [],
            for_finding,
            max_vmotions,
            not no_evictions,
            room,
            output,
            fail_on,
            apply,
            yes,
        )
