"""Our own writes that the picture does not show yet: nothing further is done about their objects until it does.

In: commands as they are ordered, what became of them, and snapshots. Out: until when deciders leave an object alone,
and, for people, the writes that nothing has shown for too long. A picture that lacks our own write is older than the
write: what is decided from it may undo, or repeat, what was just done (read your writes, KEP-5647). What a write looks
like in a picture is each kind's own (`sinks/registry.py`). How pods that are being bound count is left to
`placements.py`.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from underhost.agents.sinks.orders import APPLIED
from underhost.agents.sinks.registry import COMMANDS
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Action, Outcome

log = logging.getLogger(__name__)

_Place = tuple[str, str]  # the kind of a command, and its target
POD = "pod/"
"""How the target of a command begins that is a pod."""
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


class OwnWrites:
    """Of one site. What an earlier run has written, the first lists of this run show."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._writes: dict[_Place, _Write] = {}
        # A burst of bindings has thousands of writes under way, of which one picture shows few: what is written to a
        # pod is looked at where the pod is another one, or the write, or where one is late.
        self._touched: dict[_Place, None] = {}
        self._beside: dict[_Place, None] = {}
        self._kinds: dict[str, None] = {}
        self._late = float("inf")
        self._before = Snapshot()
        self._told: set[_Place] = set()

    def order(self, actions: Iterable[Action], picture: Snapshot, now: float) -> None:
        """These are ordered, from this picture."""
        for action in actions:
            kind = COMMANDS.get(action.kind)
            if kind is not None and kind.shows is not None:
                place = action.kind, action.target
                self._forget(place)
                self._writes[place] = _Write(action.id, kind.shows(action, picture), now)
                self._touch(place, now)

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of a command: one that wrote nothing has nothing to show."""
        place = (outcome.kind, outcome.target)
        write = self._writes.get(place)
        if write is None or write.id != outcome.id:
            return
        if outcome.result == APPLIED:
            write.applied, write.at = True, now
            self._touch(place, now)
        else:
            self._forget(place)

    def look(self, picture: Snapshot, now: float) -> None:
        """What this picture shows is over; so is, after the bound, a command without an outcome."""
        for place in self._to_look_at(picture, now):
            write = self._writes.get(place)
            if write is None:
                continue
            late = now >= write.at + BOUND
            if write.shown(picture) if write.applied else late:
                self._forget(place)
            elif late and place not in self._told:
                self._told.add(place)
                kind, target = place
                log.error("site %s: what was written is not seen after %.0f s: %s %s", self._site, BOUND, kind, target)
        self._touched.clear()

    def held_until(self, kind: str, target: str) -> float:
        """Until when nothing is ordered for the object unless the write is seen before; 0.0 where none is awaited."""
        write = self._writes.get((kind, target))
        return write.at + BOUND if write is not None and write.applied else 0.0

    @property
    def unseen(self) -> int:
        """How many writes nothing has shown within the bound."""
        return len(self._told)

    def _to_look_at(self, picture: Snapshot, now: float) -> Iterable[_Place]:
        """The writes that may be over, or late, unlike at the last look."""
        before, self._before = self._before, picture
        if now >= self._late:
            due = (write.at + BOUND for place, write in self._writes.items() if place not in self._told)
            self._late = min((at for at in due if at > now), default=float("inf"))
            return list(self._writes)
        pods = [f"{POD}{pod}" for pod in changed_keys(before.pods, picture.pods)] if self._kinds else []
        found = dict.fromkeys((*self._touched, *self._beside))
        found.update(dict.fromkeys((kind, pod) for pod in pods for kind in self._kinds))
        return found

    def _touch(self, place: _Place, now: float) -> None:
        """A write has come or changed."""
        kind, target = place
        self._touched[place] = None
        self._late = min(self._late, now + BOUND)
        if target.startswith(POD):
            self._kinds[kind] = None
        else:
            self._beside[place] = None

    def _forget(self, place: _Place) -> None:
        self._writes.pop(place, None)
        self._beside.pop(place, None)
        self._told.discard(place)
