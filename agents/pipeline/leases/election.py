"""Whose is a lease: one worker's view of one lease, from what the API server has shown and when.

In: the lease as it was read, what became of our writes, and a clock that counts while the machine is suspended. Out:
what to write next, and whether this worker may act now. No I/O, and never two holders at one moment:

- A holder may act until two thirds of the lease's seconds after it SENT the last write that was accepted. What it has
  begun by then has the last third to end in.
- Everybody else waits the lease's full seconds, by the own clock, since they first SAW it as it is: never less than the
  holder counts on. No two machines' wall clocks are compared.

The term grows whenever a worker begins to hold. It is never less than the seconds since 2020, so that it grows even
where somebody has deleted the lease or restored an old one.
"""

import time
from collections.abc import Callable

from underhost.streams.faust.membership import now
from underhost.streams.kubernetes.leases import Lease, moment

ACTING = 2 / 3
"""The share of a lease's seconds in which its holder acts."""
RENEWED = 1 / 5
"""The share after which it is renewed, or looked at by those who do not hold it."""
TERMS_BEGIN = 1_577_836_800
"""The first second of 2020, since 1970. Terms are int32 in the API: this lasts until 2088."""


class Election:
    """One worker's view of one lease. `clock` is boot-time seconds, `wall` seconds since 1970.

    Attributes:
        name, seconds: the lease's; for how long this worker takes it.
        term: of this worker's hold; None where it does not hold the lease.
        known: whether the API server has said anything about it.
        decided: whether it has been known whose it is, or that it is not to be had, at any time.
        forbidden: whether the account lacks a right to it, as far as is known, and nobody else holds it.
    """

    def __init__(
        self,
        name: str,
        identity: str,
        seconds: int,
        *,
        clock: Callable[[], float] = now,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.seconds, self.clock = name, seconds, clock
        self._identity, self._wall = identity, wall
        self.term: int | None = None
        self.forbidden = False
        self.known = self.decided = self._read = False
        self._seen: Lease | None = None
        self._since = self._sent = self._unanswered = float("-inf")
        self._why = "it has not been asked for yet"

    # ------------------------------------------------------------------------------------------- told by the keeper
    def observe(self, lease: Lease | None) -> None:
        """The lease is like this; None: there is none."""
        if not self.known or lease != self._seen:
            self._seen, self._since = lease, self.clock()
        self.known = self._read = True
        self.decided = self.decided or self.is_anothers
        self.forbidden = self.forbidden and not self.is_anothers
        if not self.forbidden:  # who may read it may lack the right to write it
            self._why = ""
        if self.term is not None and (lease is None or (lease.holder, lease.term) != (self._identity, self.term)):
            self.term = None

    def candidate(self) -> Lease | None:
        """What to write now, to begin to hold the lease or to go on; None while it is another worker's."""
        seen = self._seen
        if seen is not None and self.term is not None:
            return seen._replace(seconds=self.seconds)
        term = max(0 if seen is None else seen.term + 1, int(self._wall()) - TERMS_BEGIN)
        ours = Lease(self._identity, term, self.seconds, moment(), "" if seen is None else seen.version)
        return None if self.is_anothers else ours

    def wrote(self, lease: Lease, sent: float) -> None:
        """Our write, sent at this time, was accepted; the lease as it is since."""
        self.forbidden = False
        self.observe(lease)
        self.term, self._sent, self.decided = lease.term, sent, True

    def outrun(self) -> None:
        """Somebody else has written: the lease has to be read before anything can be said."""
        self._read = False

    def unanswered(self, sent: float, why: str) -> None:
        """What was asked at this time has had no answer. It may have been done: the lease has to be read."""
        self._read, self._unanswered, self._why = False, sent, why

    def refused(self, why: str, *, forbidden: bool = False) -> None:
        """The API server does not let us, for a right that is missing or otherwise: this worker cannot hold it."""
        self.term, self.known, self._read, self._why = None, True, False, why
        self.forbidden, self.decided = forbidden, True

    def resign(self) -> None:
        """From now on this worker does not hold it, whatever the API server has."""
        self.term = None

    def given_back(self) -> Lease | None:
        """What to write so that another worker can take it at once; None where it is not ours."""
        seen = self._seen
        if seen is None or seen.holder != self._identity:
            return None
        return seen._replace(holder="", acquired="")

    # ------------------------------------------------------------------------------------------------- asked by all
    @property
    def must_read(self) -> bool:
        """Whether the lease has to be read before `candidate` can tell: who holds it knows its version."""
        return not self._read or self.term is None

    @property
    def holder(self) -> str:
        """Who holds it as far as is known, "" where nobody does."""
        return self._seen.holder if self._seen is not None else ""

    def doubt(self) -> str | None:
        """Why this worker may not write as the holder now, as one line; None while it may."""
        if self.term is not None and self.clock() < self._sent + self.seconds * ACTING:
            return None
        if self.term is None and not self._why and self.holder not in ("", self._identity):
            return f"lease {self.name} is held by {self.holder}"
        return f"lease {self.name} is not held: {self._why or 'it is about to be taken'}"

    def left(self) -> float:
        """Seconds until what was begun as the holder must have ended."""
        return self._sent + self.seconds - self.clock()

    def silence(self) -> str | None:
        """Why this worker may not publish as the holder now, as one line; None while it may.

        Where the API server is away nobody can take over, so the last holder goes on, in its last term: whoever reads
        refuses that term once there is a newer one. It must have asked not long ago: who was frozen asks first.
        """
        if self.term is not None and self.clock() < self._unanswered + self.seconds * ACTING:
            return None
        return self.doubt()

    def pause(self) -> float:
        """Seconds until the lease is to be looked at again."""
        pause = self.seconds * (1 if self.forbidden else RENEWED)  # a person grants rights, which takes longer
        if self.term is None and self._seen is not None and self.is_anothers:
            pause = min(pause, self._since + max(self._seen.seconds, self.seconds) - self.clock())
        return max(0.0, pause)

    @property
    def is_anothers(self) -> bool:
        """Whether another worker may count on it. Our own, from before a restart, is taken at once."""
        seen = self._seen
        if seen is None or seen.holder in ("", self._identity):
            return False
        return self.clock() < self._since + max(seen.seconds, self.seconds)

    def renewed_by_another(self, since: float) -> bool:
        """Whether another worker holds it and has written to it after this time, by the own clock."""
        return self.is_anothers and self._since > since
