"""Why a finding stays: the smallest set of facts that contradict one another, and what would end it.

In: a fleet, its goals, and one that no plan meets. Out: sentences. Whether a set of facts contradicts itself is the
solver's to say, by the question that plans are made of; a fact stays in the set only where the others alone do not
contradict one another.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from underhost.agents.drs.cliques import bits
from underhost.agents.planner.assignment import Goal, assign
from underhost.agents.planner.fleet import (
    ALSO,
    APART,
    CLOSED,
    CROWD,
    FULL,
    PINNED,
    REACH,
    RULE,
    UNBOUNDED,
    Reason,
    VmCluster,
)
from underhost.agents.planner.goals import Goals
from underhost.schemas.vsphere import CONNECTED

NO_ORDER = "the moves that would end it wait for one another: no order of them keeps every rule"
WHOLE = 400
"""VMs times hosts up to which every VM of a fleet may be moved in thought."""


class Explainer:
    """Explains the goals of one fleet that stay unmet.

    Args:
        met: the goals that the plan meets. words: of pods that must be apart.
    """

    def __init__(self, fleet: VmCluster, met: Sequence[Goal], words: Goals) -> None:
        self._fleet, self._met, self._words = fleet, list(met), words

    def why(self, goal: Goal) -> tuple[list[str], list[str]]:
        """(what contradicts one another, what would help)."""
        smallest = self.smallest(goal)
        conflict = [NO_ORDER] if smallest is None else [self._say(one) for one in smallest]
        return conflict, self._helpful(goal, self._free(goal), smallest or [])

    def smallest(self, goal: Goal) -> list[Reason] | None:
        """Facts that contradict one another, none of which could be left out; None where only the order forbids it."""
        free = self._free(goal)
        facts = self._facts(goal, free)
        if not self._contradict(goal, free, facts):
            return None
        return minimal(facts, lambda some: self._contradict(goal, free, some))

    def _free(self, goal: Goal) -> list[int]:
        fleet = self._fleet
        if len(fleet.vms) * len(fleet.hosts) <= WHOLE:
            return list(range(len(fleet.vms)))
        mine = {vm for one in (goal, *self._met) if goal.vms & one.vms for vm in one.vms}
        return sorted({*mine, *goal.vms})

    def _facts(self, goal: Goal, free: Sequence[int]) -> list[Reason]:
        """All that may be in the way; what is farther from the goal comes first, and is dropped rather."""
        fleet, mine = self._fleet, goal.vms
        others = {vm for one in range(len(fleet.vms)) if one in mine for vm in bits(fleet.keeps[one])}
        near = sorted(others | set(free))
        found = [Reason(ALSO, (at,)) for at in range(len(self._met))]
        found += [Reason(RULE, (at,)) for at, rule in enumerate(fleet.rules) if rule.vms]
        found += [
            Reason(APART, (one, other))
            for one in near
            for other in bits(fleet.apart[one])
            if one < other and other in near
        ]
        found += [Reason(REACH, place) for place in sorted(fleet.blind) if place[0] in near]
        found += [Reason(CROWD, (at,)) for at, crowd in enumerate(fleet.crowds) if crowd.members]
        found += [Reason(FULL, (at,)) for at, room in enumerate(fleet.room) if min(room) < UNBOUNDED]
        found += [Reason(CLOSED, (at,)) for at, why in enumerate(fleet.closed) if why]
        found += [Reason(PINNED, (vm,)) for vm in near if fleet.pinned[vm]]
        return sorted(found, key=lambda one: one.kind in (APART, REACH, PINNED) and not mine.isdisjoint(one.about))

    def _contradict(self, goal: Goal, free: Sequence[int], facts: Sequence[Reason]) -> bool:
        """Whether the goal cannot be met where only these facts hold."""
        fleet = self._fleet
        kept, also = set(facts), [self._met[one.about[0]] for one in facts if one.kind == ALSO]
        dropped = [one for one in self._facts(goal, free) if one not in kept and one.kind != ALSO]
        for one in dropped:
            fleet = fleet.without(one)
        pinned = [why if why and Reason(PINNED, (vm,)) in kept else "" for vm, why in enumerate(fleet.pinned)]
        fleet = replace(fleet, pinned=pinned)
        return assign(fleet, fleet.at, [goal, *also], free, required=True) is None

    def _helpful(self, goal: Goal, free: Sequence[int], facts: Sequence[Reason]) -> list[str]:
        """What would do, each by itself."""
        fleet = self._fleet
        goals = [goal, *self._met]
        found = [
            help_
            for one in facts
            if (help_ := self._advice(one))
            and assign(fleet.without(one), fleet.at, goals, free, required=True) is not None
        ]
        if assign(fleet.with_host(), fleet.at, goals, free, required=True) is not None:
            found.append(f"one more host in vSphere cluster {fleet.name}")
        return found

    def _say(self, one: Reason) -> str:
        fleet, (first, *rest) = self._fleet, one.about
        match one.kind:
            case "apart":
                said = self._words.between(fleet, first, rest[0])
                if said:
                    pod, other, rule, key = said
                    return f"{pod} and {other} must be apart ({rule} by {key})"
                return f"VMs {fleet.vms[first].name} and {fleet.vms[rest[0]].name} must be apart"
            case "pinned":
                return f"VM {fleet.vms[first].name} stays where it is: {fleet.pinned[first]}"
            case "closed":
                return fleet.closed[first]
            case "full":
                memory, cpus = fleet.room[first]
                bounds = [f"{memory} MiB"] * (memory < UNBOUNDED) + [f"{cpus} vCPUs"] * (cpus < UNBOUNDED)
                return f"host {fleet.hosts[first].name} has room for {' and '.join(bounds)}"
            case "reach":
                lacks = fleet.blind[first, rest[0]]
                return f"host {fleet.hosts[rest[0]].name} lacks {lacks} of VM {fleet.vms[first].name}"
            case "rule":
                return f"DRS rule {fleet.rules[first].name} is in force"
            case "crowd":
                crowd = fleet.crowds[first]
                return f"no host may hold more than {crowd.spare} of the members of {crowd.name}"
            case _:
                return f"finding {self._met[first].finding} is to end, too"

    def _advice(self, one: Reason) -> str:
        fleet, (first, *rest) = self._fleet, one.about
        match one.kind:
            case "pinned":
                return f"let VM {fleet.vms[first].name} move"
            case "closed":
                host = fleet.hosts[first]
                return f"host {host.name} {'no failover host of HA' if host.state == CONNECTED else 'back in service'}"
            case "full":
                return f"more room on host {fleet.hosts[first].name}"
            case "reach":
                return f"{fleet.blind[first, rest[0]]} on host {fleet.hosts[rest[0]].name}"
            case "rule":
                return f"DRS rule {fleet.rules[first].name} taken out of force"
            case _:
                return ""


def minimal(facts: Sequence[Reason], contradict: Callable[[Sequence[Reason]], bool]) -> list[Reason]:
    """Some of the facts that contradict one another, none of which could be left out."""
    kept = list(facts)
    size = max(1, len(kept) // 2)
    while True:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if contradict(fewer):
                kept = fewer
            else:
                at += size
        if size == 1:
            return kept
        size //= 2
