"""The options of `underhost maintain`, which tries maintenance mode of ESXi hosts, or plans it for many in turn."""

from typing import Annotated, NamedTuple

import typer

from underhost.agents.commands.input import names
from underhost.agents.commands.input.options import Answered, Judged, grouped
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.errors import InputError

EXAMPLES = """
# Where DRS would move the VMs of a host
underhost maintain host/esx-1 -f dump.json --inventory inventory.json
# Two hosts, one after another
underhost maintain host/esx-1 host/esx-2 -f dump.json \\
  --inventory inventory.json
# Every host has its turn: which may go together, and what each moves
underhost maintain --all-hosts -f dump.json --inventory inventory.json
# Have it done, host by host; a person, or vLCM, takes each out again
underhost maintain --cluster C0 --apply \\
  --server http://127.0.0.1:8080 --token-file token
"""


class InTurn(NamedTuple):
    """Which hosts have their turn, and how many of a cluster at a time."""

    all_hosts: Annotated[
        bool, typer.Option("--all-hosts", help="Plan a rolling maintenance of every connected host.")
    ] = False
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Plan it for the hosts of this vSphere cluster; can be repeated."),
    ] = None
    rolling: Annotated[bool, typer.Option("--rolling", help="Plan it for the hosts that are named.")] = False
    at_once: Annotated[
        int,
        typer.Option("--at-once", metavar="N", min=0, help="Hosts of a cluster at a time; 0: as many as may be."),
    ] = 0

    def is_meant(self, hosts: list[str], done: "CarriedOut") -> bool:
        """Whether a plan is asked for. Raises InputError for what contradicts itself, or names no host."""
        if not done.apply and (done.exit or done.yes):
            raise InputError(f"{'--exit' if done.exit else '--yes'}: --apply is missing")
        if done.apply and not (self.all_hosts or self.cluster or self.rolling):
            raise InputError("--apply: only a plan (--all-hosts, --cluster, --rolling) is carried out")
        if self.all_hosts or self.cluster or self.rolling:
            if hosts and not self.rolling:
                raise InputError(
                    "hosts are named, and --all-hosts or --cluster, too: add --rolling to plan all of them"
                )
            if not hosts and not self.all_hosts and not self.cluster:
                raise InputError("--rolling: no host is named: host/HOST is expected")
            return True
        if self.at_once:
            raise InputError("--at-once: only a plan (--all-hosts, --cluster, --rolling) has waves")
        if not hosts:
            raise InputError("no host is named: host/HOST is expected, or --all-hosts, or --cluster NAME")
        return False


class CarriedOut(NamedTuple):
    """Whether the plan is carried out, and how."""

    apply: Annotated[bool, typer.Option("--apply", help="Have the worker (--server) carry it out, and follow it.")] = (
        False
    )
    exit: Annotated[
        bool,
        typer.Option("--exit", help="With --apply: take each host out of maintenance mode as soon as it is in it."),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --apply: do not ask.")] = False


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        cls=HelpedCommand,
        epilog=EXAMPLES,
        short_help="Simulate maintenance mode of ESXi hosts, or plan it for many in turn.",
    )
    @grouped
    def maintain(
        *,
        hosts: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[host/HOST]...",
                help="One after another, in this order; with --rolling, in the best one.",
                autocompletion=names.hosts,
                show_default=False,
            ),
        ] = None,
        in_turn: InTurn,
        done: CarriedOut,
        source: From,
        answered: Answered,
        judged: Judged,
    ) -> None:
        """Simulate maintenance mode of ESXi hosts; nothing is changed without --apply.

        Says where DRS moves their VMs, which cannot move, and what is violated after. With --all-hosts, --cluster or
        --rolling it plans the fewest waves in which all of them have their turn and come back, with every rule, quorum
        and host's room kept.
        """
        answered.check()
        if in_turn.is_meant(hosts or [], done):
            from underhost.agents.commands.handlers import maintenance  # heavy: only what runs needs it

            chosen = in_turn.all_hosts, in_turn.cluster or [], hosts or [], in_turn.at_once
            if done.apply:
                maintenance.carry_out(*chosen, source, answered.output, leave=done.exit, yes=done.yes)
            else:
                maintenance.plan(*chosen, source, answered, judged)
            return
        from underhost.agents.commands.handlers.plans import maintain as handle  # heavy, too

        handle(hosts or [], source, answered, judged)
