"""How many writes of each kind a minute may see: the last gate, behind the paces that deciders keep by themselves.

In: limits by kind, the moments of the writes. Out: whether one more may be made. A restart begins anew. What is held
back is ordered again.
"""

import time
from collections.abc import Callable, Mapping

from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.sinks.orders import APPLIED, FAILED, outcome
from underhost.agents.sinks.rates import MINUTE, Rate
from underhost.schemas.records import Action, Outcome

WRITES = frozenset({APPLIED, FAILED})
"""Results of commands that were, or may have been, a write."""


class WriteLimits(Gate):
    """Counts the writes of each kind in the last minute. A kind without a limit is not counted."""

    def __init__(self, limits: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rates = {kind: Rate(limit, MINUTE) for kind, limit in limits.items()}

    def refuses(self, action: Action) -> Outcome | None:
        """Count the write that is about to be made; it is refused where there were as many as there may be."""
        rate, now = self._rates.get(action.kind), self._clock()
        if rate is None:
            return None
        if rate.room_at(now) > now:
            why = f"held back: {rate.most} {action.kind} writes in the last minute (limits)"
            return outcome(action, FAILED, why)
        rate.add(now, action.id)
        return None

    def answered(self, result: Outcome) -> None:
        """What became of a command that was counted: what wrote nothing does not count."""
        if result.result not in WRITES and result.kind in self._rates:
            self._rates[result.kind].give_back(result.id)
