"""`underhost maintain --all-hosts`, `--cluster` and `--rolling`: the shortest order in which hosts can be emptied.

In: dumps, an inventory (or a worker), and which hosts. Out: a MaintenancePlan as table, JSON, YAML or names (the hosts
in their order). Exit 1 where a host cannot be emptied, or a new finding is at or above `--fail-on`. With `--apply` a
worker carries it out: a line for each step, or a MaintenanceProgress; exit 1 where not every host had its turn.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

import typer
from msgspec.structs import replace

from underhost.agents.commands.handlers import applying
from underhost.agents.commands.input.offline import faults_named, read_site
from underhost.agents.commands.input.options import Answered, Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.input.server import Asker
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import counted
from underhost.agents.commands.output.formats import NEVER
from underhost.agents.commands.output.plan_tables import new_findings, simulated
from underhost.agents.evaluate.findings import listing
from underhost.agents.sinks.maintenance import run as states
from underhost.agents.sinks.moves.campaign import ENDED
from underhost.agents.whatif.maintenance import Chosen, maintenance
from underhost.agents.whatif.steps import host_name
from underhost.schemas.documents import BlockedHost, MaintenancePlan, MaintenanceProgress
from underhost.schemas.errors import InputError
from underhost.schemas.severities import at_or_above


def plan(
    all_hosts: bool,
    clusters: Sequence[str],
    hosts: Sequence[str],
    at_once: int,
    source: From,
    answered: Answered,
    judged: Judged,
) -> None:
    """Plan the maintenance of these hosts, and print it."""
    chosen = Chosen(all_hosts, tuple(clusters), tuple(map(host_name, hosts)), at_once)
    site = read_site(source, judged, manifests=True)
    with faults_named(site.objects):
        found = maintenance(site.snapshot, site.options, chosen)
    if not out.show_for_programs(found, answered.output, (host for wave in found.waves for host in wave.hosts)):
        out.say(simulated(f"maintenance of {counted(_hosts(found), 'host')} in turn"))
        _show(found)
    grave = any(answered.fail_on != NEVER and at_or_above(one.severity, answered.fail_on) for one in found.new_findings)
    if found.blocked or grave:
        raise typer.Exit(1)


def carry_out(
    all_hosts: bool,
    clusters: Sequence[str],
    hosts: Sequence[str],
    at_once: int,
    source: From,
    output: str,
    *,
    leave: bool,
    yes: bool,
) -> None:
    """Show the plan, ask, have it carried out, and follow it to its end; `leave`: hosts are taken out again."""
    if source.server is None:
        raise InputError("--apply: --server is missing: the worker that moves the VMs of the site carries it out")
    body = {
        "site": source.site or "",
        "allHosts": all_hosts,
        "clusters": list(clusters),
        "hosts": list(hosts),
        "atOnce": at_once,
    }
    asker: Asker[MaintenancePlan, MaintenanceProgress] = Asker(
        source.server,
        source.site,
        source.token_file,
        source.ca_file,
        body,
        path="/api/v1/maintain",
        apply="/api/v1/maintenance/apply",
        planned=MaintenancePlan,
        progress=MaintenanceProgress,
        only_apply={"exit": leave},
    )
    for_people = applying.is_for_people(output)
    told = applying.ToldLines(out.say if for_people else lambda sentence: None)

    def show(found: MaintenancePlan) -> bool:
        if for_people:
            _show(found)
        return not found.blocked

    found = applying.agreed(asker, output, show, yes=yes)
    if found.blocked:
        ended = MaintenanceProgress("", source.site or "", ENDED, [], [], _blocked(found.blocked), done=False)
    else:
        ended = asyncio.run(applying.follow(asker, partial(_tell, told), lost))
    if not out.show_for_programs(ended, output):
        had = sum(one.state == states.HAD for one in ended.hosts)
        out.say(f"{counted(had, 'host')} done" if ended.done else f"stopped: {ended.why}")
    if not ended.done:
        raise typer.Exit(1)


def _blocked(hosts: Sequence[BlockedHost]) -> str:
    """Which hosts cannot be emptied, those of one reason together."""
    by_why: dict[str, list[str]] = {}
    for one in hosts:
        by_why.setdefault(one.why, []).append(one.host)
    told = [f"{', '.join(names)} cannot be emptied ({why})" for why, names in by_why.items()]
    return "; ".join([*told, "name the others"])


def _tell(told: applying.ToldLines, now: MaintenanceProgress) -> None:
    hosts = [one for one in now.hosts if one.state in _SAID]
    for one in hosts:
        if one.state == states.EMPTYING:
            told.once(one.host, one.state, f"host {one.host}: {_SAID[one.state]}")
    told.steps(now.steps)
    for one in hosts:  # in a later state: what has moved away comes first
        told.once(one.host, one.state, f"host {one.host}: {_SAID[one.state]}")
    told.waiting(now)


_SAID = {
    states.EMPTYING: "is being emptied",
    states.ENTERING: "is being put into maintenance mode",
    states.IN_MODE: "is in maintenance mode",
    states.LEAVING: "is being taken out of maintenance mode",
    states.HAD: "done",
}
"""What is said of a host as it comes into a state."""


def lost(last: MaintenanceProgress) -> MaintenanceProgress:
    """The end of what nobody goes on with: a run is known to the worker alone that has begun it."""
    why = "; ".join([states.ABANDONED, *states.left_over(last)])
    return replace(last, state=ENDED, why=why, done=False)


def _show(found: MaintenancePlan) -> None:
    out.show_tables(_tables(found))
    out.say(_summary(found))
    out.show_not_judged(found.not_judged)


def _hosts(found: MaintenancePlan) -> int:
    return sum(len(wave.hosts) for wave in found.waves)


def _tables(found: MaintenancePlan) -> list[Table]:
    waves = [(str(one.wave), str(len(one.vm_moves)), ", ".join(one.hosts)) for one in found.waves]
    moves = [(str(move.step), move.vm, move.from_, str(move.to)) for wave in found.waves for move in wave.vm_moves]
    blocked = [(one.host, listing(one.vms) if one.vms else "-", one.why) for one in found.blocked]
    return [
        Table(("WAVE", "VMS MOVE", "HOSTS"), waves),
        Table(("WAVE", "VM MOVES", "FROM", "TO"), moves),
        Table(("CANNOT BE EMPTIED", "VMS", "WHY"), blocked),
        new_findings(found.new_findings),
    ]


def _summary(found: MaintenancePlan) -> str:
    waves, moves = counted(len(found.waves), "wave"), sum(len(wave.vm_moves) for wave in found.waves)
    proven = "no order has fewer" if found.optimal else f"no order has fewer than {found.lower_bound}"
    parts = [f"{counted(_hosts(found), 'host')} in {waves} ({proven})", f"{counted(moves, 'move')} of VMs"]
    parts += [f"{counted(len({one.host for one in found.blocked}), 'host')} blocked"] if found.blocked else []
    parts += [f"{counted(len(found.new_findings), 'new finding')}" if found.new_findings else "no new finding"]
    return ", ".join(parts)
