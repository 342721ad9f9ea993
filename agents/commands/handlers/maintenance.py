"""`underhost maintain --all-hosts`, `--cluster` and `--rolling`: the shortest order in which hosts can be emptied.

In: dumps, an inventory (or a worker), and which hosts. Out: a MaintenancePlan as table, JSON, YAML or names (the hosts
in their order). Exit 1 where a host cannot be emptied, or a new finding is at or above `--fail-on`.
"""

from collections.abc import Sequence

import typer

from underhost.agents.commands.input.offline import faults_named, read_site
from underhost.agents.commands.input.options import Answered, Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import counted
from underhost.agents.commands.output.formats import NEVER
from underhost.agents.commands.output.plan_tables import new_findings, simulated
from underhost.agents.evaluate.findings import listing
from underhost.agents.whatif.maintenance import Chosen, maintenance
from underhost.agents.whatif.steps import host_name
from underhost.schemas.documents import MaintenancePlan
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
        out.show_tables(_tables(found))
        out.say(_summary(found))
        out.show_not_judged(found.not_judged)
    grave = any(answered.fail_on != NEVER and at_or_above(one.severity, answered.fail_on) for one in found.new_findings)
    if found.blocked or grave:
        raise typer.Exit(1)


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
