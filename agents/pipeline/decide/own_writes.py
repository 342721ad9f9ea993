"""Our own writes that the picture does not show yet: nothing further is done about their objects until it does.

In: commands as they are ordered, what became of them, and snapshots. Out: until when deciders leave an object alone,
and, for people, the writes that nothing has shown for too long. A picture that lacks our own write is older than the
write: what is decided from it may undo, or repeat, what was just done (read your writes, KEP-5647). What a write looks
like in a picture is each kind's own (`registry.py`). How pods that are being bound count is left to `placements.py`.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from underhost.agents.sinks.orders import APPLIED
from underhost.agents.sinks.registry import COMMANDS
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Action, Outcome

log = logging.getLogger(__name__)

BOUND = 60.0
"""Seconds after which a person is told of a write that no source shows, and its object is decided for again: a watch
shows a write within a second, a poll of vCenter within half a minute."""


@dataclass
class _Write:
    """The newest command for an object; `at` is when it was ordered, then when it was applied, monotonic seconds."""

    id: str
    shown: Callable[[Snapshot], bool]
    at: float
    applied: bool = False
    told: bool = False


class OwnWrites:
    """Of one site. What an earlier run has written, the first lists of this run show."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._writes: dict[tuple[str, str], _Write] = {}

    def order(self, actions: Iterable[Action], picture: Snapshot, now: float) -> None:
        """These are ordered, from this picture."""
        for action in actions:
            kind = COMMANDS.get(action.kind)
            if kind is not None and kind.shows is not None:
                self._writes[action.kind, action.target] = _Write(action.id, kind.shows(action, picture), now)

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of a command: one that wrote nothing has nothing to show."""
        place = (outcome.kind, outcome.target)
        write = self._writes.get(place)
        if write is None or write.id != outcome.id:
            return
        if outcome.result == APPLIED:
            write.applied, write.at = True, now
        else:
            del self._writes[place]

    def look(self, picture: Snapshot, now: float) -> None:
        """What this picture shows is over; so is, after the bound, a command without an outcome."""
        for (kind, target), write in list(self._writes.items()):
            late = now >= write.at + BOUND
            if write.shown(picture) if write.applied else late:
                del self._writes[kind, target]
            elif late and not write.told:
                write.told = True
                log.error("site %s: what was written is not seen after %.0f s: %s %s", self._site, BOUND, kind, target)

    def held_until(self, kind: str, target: str) -> float:
        """Until when nothing is ordered for the object unless the write is seen before; 0.0 where none is awaited."""
        write = self._writes.get((kind, target))
        return write.at + BOUND if write is not None and write.applied else 0.0

    @property
    def unseen(self) -> int:
        """How many writes nothing has shown within the bound."""
        return sum(write.told for write in self._writes.values())
