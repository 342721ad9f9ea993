"""What one Alertmanager has been told, and what it has to be told now.

In: finding events, and that a message was taken. Out: the alerts of the next message. Pure: times are seconds that the
caller gives. Alertmanager forgets alerts that are not repeated, so all that fire are told again and again, and what is
resolved for some minutes, too. A finding that opened and ended while nobody answered is still told: first as firing,
for as long as it takes to be noticed, then as resolved.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from underhost.schemas.records import RESOLVED, FindingEvent

REPEATED = 300.0
"""Seconds for which a resolution is repeated."""
MOST = 20_000
"""Findings that are kept of those that ended before they could be told; the oldest are dropped."""


@dataclass
class _Entry:
    event: FindingEvent
    told: float | None = None
    """When it was first told as firing."""
    ended: float | None = None
    """When its end was heard of."""
    gone: bool = False
    """Whether its end was told."""


@dataclass(frozen=True)
class Due:
    """The next message: those that fire (until `ends_in` seconds from now), and those that have ended."""

    firing: list[FindingEvent]
    resolved: list[FindingEvent]
    ends_in: float

    def __bool__(self) -> bool:
        return bool(self.firing or self.resolved)


class NotificationLog:
    """One Alertmanager's. `repeat` is the interval of repetitions in seconds."""

    def __init__(self, repeat: float) -> None:
        self._repeat = repeat
        self._entries: dict[tuple[str, str], _Entry] = {}

    def observe(self, event: FindingEvent, now: float) -> bool:
        """A record of `violations`; whether there is something new to tell."""
        place = (event.site, event.id)
        entry = self._entries.get(place)
        if event.state != RESOLVED:
            if entry is None or entry.ended is not None:
                self._entries[place] = _Entry(event)
                return True
            new, entry.event = entry.event != event, event
            return new
        if entry is None or entry.ended is not None:
            return False  # it ended before our time, and whoever was told knows by its end time
        entry.event, entry.ended = event, now
        self._bound()
        return True

    def due(self, now: float) -> Due:
        """Everything that should be said now; nothing is remembered before `told`."""
        self._forget(now)
        firing: list[FindingEvent] = []
        resolved: list[FindingEvent] = []
        for _, entry in sorted(self._entries.items()):
            (resolved if self._has_ended(entry, now) else firing).append(entry.event)
        return Due(firing, resolved, 4 * self._repeat)

    def told(self, due: Due, now: float) -> None:
        """The message was taken."""
        for entry in self._of(due.firing):
            if entry.told is None:
                entry.told = now
        for entry in self._of(due.resolved):
            entry.gone = True

    def _has_ended(self, entry: _Entry, now: float) -> bool:
        if entry.ended is None or entry.told is None:
            return False
        # What was told only after its end fires for one repetition, or a group that waits would never show it.
        return now >= entry.told + (self._repeat if entry.told >= entry.ended else 0.0)

    def _of(self, events: Iterable[FindingEvent]) -> list[_Entry]:
        return [self._entries[place] for event in events if (place := (event.site, event.id)) in self._entries]

    def _forget(self, now: float) -> None:
        for place, entry in list(self._entries.items()):
            if entry.gone and entry.ended is not None and now >= entry.ended + REPEATED:
                del self._entries[place]

    def _bound(self) -> None:
        untold = [place for place, entry in self._entries.items() if entry.ended is not None and entry.told is None]
        for place in untold[: max(0, len(untold) - MOST)]:
            del self._entries[place]
