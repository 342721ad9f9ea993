"""The loop guard of the evictor: an eviction that does not help is not repeated at once, and at last not at all.

In: evictions that have taken place, and what was broken before and after. Out: why a workload is left alone, for a
while or for good. Times are monotonic seconds.

A case is one kind of finding of one workload. It counts the evictions since the finding last held fewer of the
workload's pods than ever before: three replicas on one host take two evictions, and neither is a vain one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

FORGET = 3600.0
"""Seconds that a finding must have stayed away for its case to be closed: what comes back then is a new one."""


class CaseKey(NamedTuple):
    """What comes back: the same workload (`Kind/namespace/name`) breaks the same rule, wherever that is."""

    owner: str
    severity: str
    rule: str
    source: str
    key: str


@dataclass
class CaseHistory:
    """One workload's finding.

    Attributes:
        low: fewest of its pods that the finding has held so far. tries: evictions since then.
        last: when the last one was. helped: whether it left fewer broken than there were.
        away: since when nothing is broken, None while something is.
    """

    low: int
    tries: int = 0
    last: float = float("-inf")
    helped: bool = True
    away: float | None = None


class LoopGuard:
    """The cases of one site. `tries` and `pause` (seconds) as in the settings."""

    def __init__(self, tries: int, pause: float) -> None:
        self._tries, self._pause = tries, pause
        self.cases: dict[CaseKey, CaseHistory] = {}

    def stop(self, key: CaseKey) -> str | None:
        """Why nothing more is evicted for this case, ever; None where it may be."""
        case = self.cases.get(key)
        if case is None or case.tries < self._tries:
            return None
        times = "1 eviction" if case.tries == 1 else f"{case.tries} evictions"
        return f"{times} of {key.owner} did not end it for good: it is left to a person"

    def wait(self, owner: str, now: float) -> float | None:
        """Until when the workload is left alone; None where it is not."""
        until = [case.last + self._pause for key, case in self.cases.items() if key.owner == owner and not case.helped]
        last = max(until, default=now)
        return last if last > now else None

    def tries(self, key: CaseKey) -> int:
        """How many evictions there have been for the case since it last got better."""
        return self.cases[key].tries if key in self.cases else 0

    def low(self, key: CaseKey, broken: int) -> int:
        """The fewest that were broken so far, now included."""
        return min(broken, self.cases[key].low) if key in self.cases else broken

    def evicted(self, key: CaseKey, broken: int, at: float) -> None:
        """A pod of the case went, when `broken` of its workload's pods were in the finding."""
        case = self.cases.setdefault(key, CaseHistory(broken))
        case.low = min(case.low, broken)
        case.tries += 1
        case.last = max(case.last, at)
        case.away = None

    def ended(self, key: CaseKey, before: int, after: int | None) -> None:
        """The next pod is there (`after`: so many are broken now), or does not come (None)."""
        case = self.cases[key]
        case.helped = after is not None and after < before
        if after is not None and after < case.low:
            case.low, case.tries = after, 0

    def follow(self, broken: Callable[[CaseKey], int], now: float) -> None:
        """How much of a case is broken now; cases that have been away for long enough are closed."""
        for key, case in list(self.cases.items()):
            if broken(key):
                case.away = None
            elif case.away is None:
                case.away = now
            elif now - case.away >= FORGET:
                del self.cases[key]
