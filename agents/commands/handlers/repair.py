"""`underhost repair`: the fewest moves that leave nothing broken, printed step by step.

In: a site and what shall be repaired. Out: a RepairPlan as table, JSON, YAML or names. Exit 1 where a finding at or
above `--fail-on` stays.
"""

from collections.abc import Sequence

import typer

from underhost.agents.commands.handlers import applying
from underhost.agents.commands.input.offline import faults_named, read_site
from underhost.agents.commands.input.options import Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.input.server import RepairAsker
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output.formats import NEVER, WIDE
from underhost.agents.commands.output.plan_tables import simulated
from underhost.agents.commands.output.repair_tables import summary, tables
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.schemas.errors import InputError
from underhost.schemas.severities import at_or_above


def handle(
    source: From,
    judged: Judged,
    namespaces: Sequence[str],
    finding: str | None,
    most_vmotions: int | None,
    evictions: bool,
    room: tuple[int, bool, bool],
    output: str,
    fail_on: str,
    apply: bool,
    yes: bool,
) -> None:
    """Plan the repair and print it, or have it carried out; `room` is how `Room` counts it."""
    if apply:
        worker = _worker(source, namespaces, finding, most_vmotions, evictions, room)
        applying.handle(worker, output, fail_on, yes=yes)
        return
    site = read_site(source, judged, manifests=False)
    asked = RepairTerms(
        namespaces=frozenset(namespaces),
        finding=finding or "",
        most_vmotions=most_vmotions,
        evictions=RepairTerms().evictions if evictions else None,
        room=Room(*room),
    )
    with faults_named(site.objects):
        plan = repair(site.snapshot, site.options, asked)
    moved = [step.vm or out.kubectl_name(step.pod or "") for step in plan.steps]
    if not out.show_for_programs(plan, output, dict.fromkeys(moved)):
        out.say(simulated("a repair"))
        out.show_tables(tables(plan, output == WIDE))
        out.say(summary(plan))
        out.show_not_judged(plan.not_judged)
    if fail_on != NEVER and any(at_or_above(one.severity, fail_on) for one in plan.left_findings):
        raise typer.Exit(1)


def _worker(
    source: From,
    namespaces: Sequence[str],
    finding: str | None,
    most_vmotions: int | None,
    evictions: bool,
    room: tuple[int, bool, bool],
) -> RepairAsker:
    """Whom to ask, for what. Raises InputError where no worker is named."""
    if source.server is None:
        raise InputError("--apply: --server is missing: the worker that moves the VMs of the site carries it out")
    headroom, reserved, admission = room
    body: dict[str, object] = {
        "site": source.site or "",
        "only": list(namespaces),
        "for": finding or "",
        "maxVmotions": most_vmotions,
        "evictions": evictions,
        "headroom": headroom,
        "reserved": reserved,
        "admission": admission,
    }
    return RepairAsker(source.server, source.site, source.token_file, source.ca_file, body)
