"""How many evictions at once: the caps per owner, node, host and minute.

In: evictions that are ordered, and what became of them. Out: whether one more may be. Times are monotonic seconds. An
eviction is under way from its order until the next pod is ready.
"""

import math
from dataclasses import dataclass

from underhost.agents.repair.evictable import ReplicaCount
from underhost.agents.repair.evictions import Candidate
from underhost.agents.sinks.evictions.loop_guard import CaseKey
from underhost.agents.sinks.rates import MINUTE, Rate
from underhost.agents.site.owners import Application
from underhost.streams.settings.sinks import EvictionSettings


@dataclass
class UnderWay:
    """An eviction.

    Attributes:
        id: of the command. pod, uid: who goes. wanted: replicas of its workload when it was ordered.
        broken: how many pods of the workload the case held then. at: when it was ordered.
        earlier: ordered by an earlier run. applied: the sink has said so. leaving: the pod is seen to go or to be gone.
        counted: the guard knows of it. choices: hosts on which its next one may be put, as in `Repair`.
    """

    id: str
    pod: str
    uid: str
    application: Application
    node: str
    host: str
    case: CaseKey
    broken: int
    wanted: int
    at: float
    earlier: bool = False
    applied: bool = False
    leaving: bool = False
    counted: bool = False
    choices: float = math.inf


class EvictionPace:
    """The evictions of one site that are under way, by pod."""

    def __init__(self, settings: EvictionSettings) -> None:
        self._settings, self._rate = settings, Rate(settings.per_minute, MINUTE)
        self.under_way: dict[str, UnderWay] = {}

    def room_at(self, now: float) -> float:
        """When the next eviction fits into a minute: now, or later."""
        return self._rate.room_at(now)

    @property
    def full(self) -> bool:
        """Whether no other eviction can begin, whatever pod it is of."""
        return len(self.under_way) >= self._settings.per_host

    def admits(self, candidate: Candidate, replicas: ReplicaCount) -> bool:
        """Whether the candidate may go beside those that are under way."""
        others, settings = self.under_way.values(), self._settings
        if any(other.host != candidate.host for other in others):
            return False  # one physical host at a time
        if self.full or sum(other.node == candidate.node for other in others) >= settings.per_node:
            return False
        most = min(settings.per_owner, max(1, replicas.wanted * settings.share // 100))
        unseen = sum(other.application == candidate.application and not other.leaving for other in others)
        return replicas.missing + unseen < most

    def leaves_places(self, choices: float) -> bool:
        """Whether one more with so many choices, and each under way, has a place wherever the others' next ones go."""
        others = self.under_way.values()
        return min([choices, *(one.choices for one in others)]) > len(others)

    def holds(self, case: CaseKey) -> bool:
        """Whether an eviction of the case is under way."""
        return any(one.case == case for one in self.under_way.values())

    def uncounted(self, case: CaseKey) -> int:
        """Evictions of a case that the guard does not know of yet."""
        return sum(one.case == case and not one.counted for one in self.under_way.values())

    def begin(self, one: UnderWay) -> None:
        """It is ordered."""
        self.under_way[one.pod] = one
        self._rate.add(one.at, one.id)

    def applied(self, pod: str, now: float) -> None:
        """The sink has done it by now: the minute begins here, not with the order."""
        one = self.under_way[pod]
        one.applied = True
        self._rate.give_back(one.id)
        self._rate.add(now, one.id)

    def end(self, pod: str) -> None:
        """It is over."""
        del self.under_way[pod]

    def cancel(self, pod: str, *, asked: bool = True) -> None:
        """It did not take place. The minute counts it all the same, unless the cluster was not even asked."""
        one = self.under_way.pop(pod)
        if not asked:
            self._rate.give_back(one.id)
