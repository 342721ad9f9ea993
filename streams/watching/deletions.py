"""Deletions that a watch reports: too many within a minute are not believed.

In: the changes of a watch, in order, and the objects that are held. Out: the changes without the deletions that are
held back until the object appears again or a person accepts them. Objects that a list no longer shows are left to the
reflector.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable

from underhost.streams.watching.changes import Seen, Unreadable
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.reconcile import is_collapse

WITHIN = 60.0
"""Seconds in which deletions count as one collapse."""


class Deletions:
    """Judges the deletions of one kind of object (`name`, for messages); doubted ones go into `doubts`."""

    def __init__(self, name: str, doubts: Doubts, clock: Callable[[], float]) -> None:
        self._name, self._doubts, self._clock = name, doubts, clock
        self._believed: deque[float] = deque()
        self._kept: dict[str, Seen | Unreadable] = {}

    def believed(self, changes: Iterable[Seen | Unreadable], held: Collection[str]) -> list[Seen | Unreadable]:
        """The changes to publish; `held` are the keys of all objects that are there so far."""
        found: list[Seen | Unreadable] = []
        gone = 0
        for change in changes:
            if isinstance(change, Unreadable) or change.value is not None:
                if self._kept.pop(change.key, None) is not None:
                    self._doubts.see([], self._kept)
            elif change.key in held and not self._believes(len(held) - gone):
                self._kept[change.key] = change
                total = len(held) - gone + len(self._believed)
                lost = len(self._believed) + len(self._kept)
                self._doubts.see([f"{self._name}: {lost} of {total} were deleted at once; not believed"], self._kept)
                continue
            else:
                gone += 1
            found.append(change)
        return found

    def _believes(self, held: int) -> bool:
        now = self._clock()
        while self._believed and self._believed[0] <= now - WITHIN:
            self._believed.popleft()
        gone, total = len(self._believed) + 1, held + len(self._believed)
        if self._doubts or is_collapse(gone, total) or gone >= total:
            return False
        self._believed.append(now)
        return True

    def take_accepted(self) -> list[Seen | Unreadable]:
        """The deletions that were held back and that a person has accepted since."""
        keys = sorted(self._kept.keys() & self._doubts.accepted)
        self._doubts.settle(keys)
        return [self._kept.pop(key) for key in keys]

    def forget(self) -> None:
        """Drop what is held back: a new list shows which objects exist."""
        self._kept.clear()
