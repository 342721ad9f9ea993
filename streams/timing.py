"""How long watchers wait, and why: timeouts, pauses, and the back-off after failures."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Timing:
    """Times in seconds, with the reasons for them; `sleep` and `rng` are others in tests.

    Attributes:
        inactivity: a watch that is silent for longer is dead (the API server sends a bookmark every minute).
        watch_timeout: range of the time after which the server is asked to end a watch: spreads the load of many
            clients, as client-go does.
        first_delay, longest_delay: of the back-off after a second failure in a row; the first is retried at once.
        steady: a watch that lasted so long has worked, even if nothing happened.
        absent: pause before a kind that the API did not serve is asked for again.
        compare: between two comparisons of a topic with what was listed; six times that where the topic itself is read.
        settle: what differs must differ so much later, too: it may just be on its way.
    """

    inactivity: float = 70.0
    watch_timeout: tuple[float, float] = (300.0, 600.0)
    first_delay: float = 0.8
    longest_delay: float = 30.0
    steady: float = 1.0
    absent: float = 600.0
    compare: float = 600.0
    settle: float = 5.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)


class Backoff:
    """Delays after failures: none, then `first_delay` doubling up to `longest_delay`, each with up to 100 % jitter."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._failures = 0

    def reset(self) -> None:
        """The last attempt succeeded."""
        self._failures = 0

    def next(self) -> float:
        """Seconds to wait after one more failure."""
        self._failures += 1
        if self._failures == 1:
            return 0.0
        base = min(self._timing.first_delay * 2.0 ** min(self._failures - 2, 32), self._timing.longest_delay)
        return base * (1.0 + self._timing.rng.random())
