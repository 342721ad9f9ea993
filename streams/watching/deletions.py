"""Deletions of one kind that are not believed: they are held back, while everything else goes on.

In: the changes of a watch, in order, and what a list no longer shows. Out: the changes without the deletions that are
held back until the object appears again or a person accepts them. Which objects of a list are doubted is left to the
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
    """Judges the deletions of one kind of object (`name`, for messages); doubted ones go into `doubts`.

    Where the kind is `guarded`, too many deletions of a watch within a minute are doubted.

    Attributes:
        kept: the deletions that are held back, by key.
    """

    def __init__(self, name: str, doubts: Doubts, clock: Callable[[], float], *, guarded: bool = True) -> None:
        self._name, self._doubts, self._clock, self._guarded = name, doubts, clock, guarded
        self._believed: deque[float] = deque()
        self.kept: dict[str, Seen] = {}

    def believed(self, changes: Iterable[Seen | Unreadable], held: Collection[str]) -> list[Seen | Unreadable]:
        """The changes to publish; `held` are the keys of all objects that are there so far."""
        found: list[Seen | Unreadable] = []
        gone = 0
        for change in changes:
            if isinstance(change, Unreadable) or change.value is not None:
                self.release(change.key)
            elif self._guarded and change.key in held and not self._believes(len(held) - gone):
                self.kept[change.key] = change
                total = len(held) - gone + len(self._believed)
                lost = len(self._believed) + len(self.kept)
                self._doubts.see([f"{self._name}: {lost} of {total} were deleted at once; not believed"], self.kept)
                continue
            else:
                gone += 1
                self.release(change.key)  # a list did not show it, and now its watch says so as well
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

    def hold(self, missing: Iterable[Seen], doubt: Iterable[str] = ()) -> None:
        """Hold back what a list lacks, because of the `doubt`; without one where somebody else tells of it."""
        self.kept.update((each.key, each) for each in missing)
        self._doubts.see(doubt, self.kept)

    def release(self, key: str) -> Seen | None:
        """Hold this deletion back no longer; None where it was not."""
        kept = self.kept.pop(key, None)
        if kept is not None:
            self._doubts.see([], self.kept)
        return kept
