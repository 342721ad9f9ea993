"""When one cluster was last heard of, kind by kind: what tells a quiet cluster from a silent one.

In: what the list and the watch of each kind receive, and the answers to a probe. Out: the kinds that nothing has been
heard of for a time. What is not written meanwhile is left to `agents/pipeline/gates`.

A watch is silent between two bookmarks, which come once a minute. So while a watch is open, an answer to the probe
counts as heard of its kind; a watch that sends not even bookmarks is ended by its own timeout (`Timing.inactivity`).
A kind whose watch is not open, because it is refused or its server gives no answer, is heard of by nothing else.
"""

import time
from collections.abc import Callable


class Contact:
    """The contact with one cluster. Times are monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[str, float] = {}
        self._open: set[str] = set()
        self._answered = self._oldest = float("-inf")

    def hear(self, kind: str) -> None:
        """A part of its list, a change or a bookmark has arrived."""
        self._heard[kind] = self._clock()

    def opened(self, kind: str) -> None:
        """Its watch has begun."""
        self._open.add(kind)
        self.hear(kind)

    def ended(self, kind: str) -> None:
        """Its watch has ended, however that came."""
        if kind in self._open:
            self._heard[kind] = self._last(kind)
            self._open.remove(kind)

    def absent(self, kind: str) -> None:
        """The kind is not there, and need not be: nobody waits to hear of it."""
        self._heard.pop(kind, None)

    def answered(self) -> None:
        """The server has answered the probe."""
        self._answered = self._clock()

    @property
    def since(self) -> float | None:
        """When the kind that has been silent for longest was heard of; None before the first list."""
        return min(map(self._last, self._heard), default=None)

    def silent(self, bound: float) -> str:
        """What has been silent for `bound` seconds or longer, for people; "" where nothing has."""
        now = self._clock()
        if now - self._oldest < bound:
            return ""  # asked before each write; no kind was heard of earlier than it was at the last look
        self._oldest = min(map(self._last, self._heard), default=self._oldest)
        kinds = sorted(kind for kind in self._heard if now - self._last(kind) >= bound)
        if not kinds:
            return ""
        if len(kinds) == len(self._heard):
            return f"the Kubernetes API has not answered for over {bound:g} s"
        return f"nothing has been heard of {', '.join(kinds)} for over {bound:g} s"

    def _last(self, kind: str) -> float:
        heard = self._heard[kind]
        return max(heard, self._answered) if kind in self._open else heard
