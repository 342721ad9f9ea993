"""The queue between the hand-over and a stream: mode's, but that events go in together and come out in one step.

In: the events of one partition. Out: one event after another. mode goes through a dozen calls for each, in and out.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mode.utils.queues import ThrowableQueue


class EventQueue(ThrowableQueue):  # type: ignore[misc]
    """What is put and taken otherwise goes mode's way."""

    def has_room(self, count: int) -> bool:
        """Whether so many more events fit."""
        return not 0 < self.maxsize < len(self._queue) + count

    def put_together(
        self, events: Sequence[Any], *, on_pressure_high: Callable[[], None], on_pressure_drop: Callable[[], None]
    ) -> None:
        """Put events for which there is room; `on_pressure_high` where few more fit, later `on_pressure_drop`."""
        self._queue.extend(events)
        if self.in_pressure_high_state(on_pressure_drop):
            on_pressure_high()
        self._wakeup_next(self._getters)

    def take(self) -> Any | None:
        """The next event, None where there is none. Raises what was thrown into the queue."""
        if self._errors:
            raise self._errors.popleft()
        if not self._queue:
            return None
        if self._pending_pressure_drop_callbacks:
            self.maybe_endorse_pressure_drop()
        event = self._queue.popleft()
        if self._putters:
            self._wakeup_next(self._putters)
        return event
