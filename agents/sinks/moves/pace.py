"""How many vMotions at once: the caps per host, cluster and minute.

In: moves as they are ordered, and what became of them. Out: whether one more may be. Times are monotonic seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from underhost.agents.sinks.rates import MINUTE, Rate
from underhost.schemas.records import Action
from underhost.streams.settings.sinks import MoveSettings


@dataclass
class MoveUnderWay:
    """A vMotion: from its order until the picture shows it, or it has failed.

    Attributes:
        action: its command. ids: of all its commands, the newest last, where it was ordered once more.
        applied: when the sink has said so, seen: when the picture has shown it; None before.
        repairs: whether it is to end a finding, and its VM therefore to stay where it is moved to.
    """

    action: Action
    ids: list[str]
    vm: str
    cluster: str
    from_: str
    to: str
    at: float
    applied: float | None = None
    seen: float | None = None
    repairs: bool = True


class MovePace:
    """The vMotions of one site that are under way, by VM."""

    def __init__(self, settings: MoveSettings) -> None:
        self._settings, self._rate = settings, Rate(settings.per_minute, MINUTE)
        self.under_way: dict[str, MoveUnderWay] = {}

    def room_at(self, now: float) -> float:
        """When the next vMotion fits into a minute: now, or later."""
        return self._rate.room_at(now)

    def admits(self, cluster: str, hosts: Iterable[str]) -> bool:
        """Whether one more between these hosts of the cluster may be under way."""
        others, settings = list(self.under_way.values()), self._settings
        if sum(one.cluster == cluster for one in others) >= settings.per_cluster:
            return False
        return all(sum(host in (one.from_, one.to) for one in others) < settings.per_host for host in hosts)

    def begin(self, one: MoveUnderWay) -> None:
        """It is ordered."""
        self.under_way[one.vm] = one
        self._rate.add(one.at, one.vm)

    def end(self, vm: str, *, counts: bool = True) -> None:
        """It is over; one that vCenter was not asked for does not count in its minute."""
        one = self.under_way.pop(vm)
        if not counts:
            self._rate.give_back(one.vm)
