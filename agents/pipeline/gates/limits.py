"""How many writes of each kind a minute may see: the last gate, behind the paces that deciders keep by themselves.

In: limits by kind, the moments of the writes. Out: whether one more may be made. A restart begins anew. What is held
back is ordered again.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping

from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.sinks.orders import APPLIED, FAILED, outcome
from underhost.schemas.records import Action, Outcome

MINUTE = 60.0
WRITES = frozenset({APPLIED, FAILED})
"""Results of commands that were, or may have been, a write."""


class WriteLimits(Gate):
    """Counts the writes of each kind in the last minute. A kind without a limit is not counted."""

    def __init__(self, limits: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = dict(limits), clock
        self._made: dict[str, deque[float]] = {kind: deque() for kind in limits}

    def refuses(self, action: Action) -> Outcome | None:
        """Count the write that is about to be made; it is refused where there were as many as there may be."""
        limit = self._limits.get(action.kind)
        if limit is None:
            return None
        made, now = self._made[action.kind], self._clock()
        while made and made[0] <= now - MINUTE:
            made.popleft()
        if len(made) >= limit:
            why = f"held back: {limit} {action.kind} writes in the last minute (limits)"
            return outcome(action, FAILED, why)
        made.append(now)
        return None

    def answered(self, result: Outcome) -> None:
        """What became of a command that was counted: what wrote nothing does not count."""
        if result.result not in WRITES and self._made.get(result.kind):
            self._made[result.kind].pop()
