"""Ends a pipeline that stands still where it cannot help itself, so that the worker makes a new one.

In: the membership of the consumer group, and how far the pipeline has come. Out: `failed` with KafkaAway. An outage
of Kafka, a frozen machine and a bug of a client all look the same from here: for too long no member, or for too long
not a record nearer to what the topics held. A new pipeline joins anew and reads on where the offsets were committed. A
worker must never be without its partitions unseen.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable

from underhost.schemas.errors import KafkaAway
from underhost.streams.faust.membership import Membership

log = logging.getLogger(__name__)

LOOK = 1.0
"""Seconds between two looks."""
SESSIONS = 4.0
"""Session timeouts without membership after which the pipeline is given up; a rebalance takes no longer than three."""
STILL = 60.0
"""Seconds after which a pipeline that has not caught up, and comes no nearer, is given up."""


class Watchdog:
    """One pipeline's. `behind` gives a value that changes as long as it catches up, None once it has caught up.

    `alive` is called at each look: this event loop runs.
    """

    def __init__(
        self,
        membership: Membership,
        session_timeout: float,
        *,
        behind: Callable[[], Hashable | None],
        alive: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._membership, self._behind, self._alive, self._failed = membership, behind, alive, failed
        self._lost = _Lasting(SESSIONS * session_timeout, clock)
        self._still = _Lasting(STILL, clock)
        self._said = False

    async def run(self) -> None:
        """Until it has failed, or is cancelled."""
        while True:
            error = self.look()
            if error is not None:
                return self._failed(error)
            await asyncio.sleep(LOOK)

    def look(self) -> KafkaAway | None:
        """What is to be given up now, if anything is."""
        self._alive()
        doubt = self._membership.doubt()
        self._say(doubt)
        if self._lost.too_long(None if doubt is None else "lost"):
            return KafkaAway(f"Kafka: this worker is out of its group: {doubt}")
        # Without membership nothing can come nearer.
        behind = self._behind() if doubt is None else None
        if self._still.too_long(behind):
            return KafkaAway(f"Kafka: nothing was read for {STILL:.0f} s, though there is something to read: {behind}")
        return None

    def _say(self, doubt: str | None) -> None:
        """One line when a doubt begins and one when it ends; Kafka's clients would say the same ten times a second."""
        if doubt is not None and not self._said:
            log.warning("nothing is written by this worker: %s", doubt)
        elif doubt is None and self._said:
            log.info("this worker is a member of its consumer group")
        self._said = doubt is not None


class _Lasting:
    """Whether something has been the same for `limit` seconds."""

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self._limit, self._clock = limit, clock
        self._what: Hashable | None = None
        self._since = clock()

    def too_long(self, what: Hashable | None) -> bool:
        """Look at it now; None is as it should be."""
        if what is None or what != self._what:
            self._what, self._since = what, self._clock()
        return what is not None and self._clock() - self._since > self._limit
