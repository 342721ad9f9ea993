"""Are the reasons why findings stay the smallest? Another solver is asked about the same facts.

In: a puzzle. Out: what is wrong with the reasons that the planner gives: facts that do not contradict one another, or
of which one could be left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from support.answers.repair import can_end
from support.sites.movable import Puzzle

from underhost.agents.affinity.followed import asked_of, followed
from underhost.agents.drs.vm_graph import Concerns
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner import fleet as f
from underhost.agents.planner.assignment import Goal
from underhost.agents.planner.fleet import Reason, Room, VmCluster, fleets_of
from underhost.agents.planner.goals import Goals
from underhost.agents.planner.moves import plan_moves
from underhost.agents.planner.reasons import Explainer
from underhost.agents.site.snapshot import Options


def wrong_reasons(puzzle: Puzzle) -> list[str]:
    """What is wrong, one line each."""
    site, evaluator = puzzle.snapshot(), Evaluator(Options())
    report = evaluator.update(site)
    model = evaluator.state(site).model
    fleets = fleets_of(site, model, Room(), Concerns(model, *followed(model, asked_of(model))))
    goals = Goals(site, model, fleets)
    found: list[str] = []
    for number, wanted in goals.of(report.findings)[0].items():
        fleet, at = fleets[number], list(fleets[number].at)
        for step in plan_moves(fleet, wanted).steps:
            at[step.vm] = step.to
        met = [one for one in wanted if one.met(fleet.at, at)]
        explainer = Explainer(fleet, met, goals)
        for goal in (one for one in wanted if one not in met):
            smallest = explainer.smallest(goal)
            if smallest is not None:
                found += _judge(puzzle, fleet, goal, met, smallest)
    return found


def _judge(puzzle: Puzzle, fleet: VmCluster, goal: Goal, met: Sequence[Goal], facts: Sequence[Reason]) -> list[str]:
    if _ends(puzzle, fleet, goal, met, facts):
        return [f"{goal.finding}: no contradiction in {facts}"]
    return [
        f"{goal.finding}: {one} could be left out"
        for one in facts
        if not _ends(puzzle, fleet, goal, met, [other for other in facts if other != one])
    ]


def _ends(puzzle: Puzzle, fleet: VmCluster, goal: Goal, met: Sequence[Goal], facts: Iterable[Reason]) -> bool:
    """Whether the goal can be met where only these facts hold."""
    facts = set(facts)
    names, hosts = [vm.name for vm in fleet.vms], [host.ref for host in fleet.hosts]
    kept = {kind: {one.about for one in facts if one.kind == kind} for kind in (f.APART, f.PINNED, f.CLOSED, f.FULL)}
    reach = {one.about for one in facts if one.kind == f.REACH}
    rules = {fleet.rules[one.about[0]].name for one in facts if one.kind == f.RULE}
    apart = {frozenset((names[one], names[other])) for one, other in kept[f.APART]}
    by_pods = {frozenset((one, other)) for _, one, other in puzzle.conflicts()}
    by_rules = [vms for number, vms in enumerate(puzzle.apart) if f"apart-{number}" in rules]
    only = replace(
        puzzle,
        closed=frozenset(hosts[at] for (at,) in kept[f.CLOSED]),
        pinned=frozenset(names[at] for (at,) in kept[f.PINNED]),
        blind=frozenset((names[vm], hosts[host]) for vm, host in reach),
        room={host: puzzle.room[host] if (at,) in kept[f.FULL] else 0 for at, host in enumerate(hosts)},
        apart=tuple(by_rules),
        bound={vm: there for vm, there in puzzle.bound.items() if f"on-{vm}" in rules},
        reconciled=frozenset(by_pods - apart - set(by_rules)),
    )
    also = [met[one.about[0]] for one in facts if one.kind == f.ALSO]
    pairs = [(names[one], names[other]) for each in (goal, *also) for (one, other), _ in each.groups]
    return can_end(only, pairs)
