"""`underhost repair`: the fewest moves that leave nothing broken, printed step by step.

In: a site and what shall be repaired. Out: a RepairPlan as table, JSON, YAML or names; with `--apply` a worker carries
it out, and a line for each step, or a RepairProgress. Exit 1 where a finding at or above `--fail-on` stays.
"""

import asyncio
from collections.abc import Sequence

import typer

from underhost.agents.commands.handlers import applying
from underhost.agents.commands.input.offline import faults_named, read_site
from underhost.agents.commands.input.options import Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.input.server import Asker
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output.formats import NEVER, WIDE
from underhost.agents.commands.output.plan_tables import simulated
from underhost.agents.commands.output.repair_tables import summary, tables
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import ENDED
from underhost.schemas.documents import RepairPlan, RepairProgress
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
        _carry_out(_worker(source, namespaces, finding, most_vmotions, evictions, room), output, fail_on, yes=yes)
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
        _show(plan, output)
    if fail_on != NEVER and any(at_or_above(one.severity, fail_on) for one in plan.left_findings):
        raise typer.Exit(1)


def _show(plan: RepairPlan, output: str) -> None:
    out.show_tables(tables(plan, output == WIDE))
    out.say(summary(plan))
    out.show_not_judged(plan.not_judged)


def _carry_out(asker: Asker[RepairPlan, RepairProgress], output: str, fail_on: str, *, yes: bool) -> None:
    """Show the plan, ask, have it carried out, and follow it to its end. Exit 1 where something stays."""
    for_people = applying.is_for_people(output)
    told = applying.ToldLines(out.say if for_people else lambda sentence: None)

    def show(plan: RepairPlan) -> bool:
        if for_people:
            _show(plan, output)
        return bool(plan.steps)

    def tell(now: RepairProgress) -> None:
        told.steps(now.steps)
        told.waiting(now)

    plan = applying.agreed(asker, output, show, yes=yes)
    if plan.steps:
        ended = asyncio.run(applying.follow(asker, tell))
    else:
        ended = RepairProgress("", asker.site or "", ENDED, [], plan.left_findings, "")
    if not out.show_for_programs(ended, output):
        out.say(_last_line(ended))
    if fail_on != NEVER and any(at_or_above(one.severity, fail_on) for one in ended.left_findings):
        raise typer.Exit(1)


def _last_line(ended: RepairProgress) -> str:
    """All of it in one line."""
    left = len(ended.left_findings)
    stays = f"{out.counted(left, 'finding')} left" if left else "nothing left"
    return f"{stays}: {ended.why}" if ended.why else stays


def _worker(
    source: From,
    namespaces: Sequence[str],
    finding: str | None,
    most_vmotions: int | None,
    evictions: bool,
    room: tuple[int, bool, bool],
) -> Asker[RepairPlan, RepairProgress]:
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
    return Asker(
        source.server,
        source.site,
        source.token_file,
        source.ca_file,
        body,
        path="/api/v1/repair",
        apply="/api/v1/repair/apply",
        planned=RepairPlan,
        progress=RepairProgress,
    )
