"""The leases of a worker's roles: one for each role that publishes a source or writes to a cluster.

In: the roles, and the API of leases; None where the site's Kubernetes is files or simulated, or not configured. Out:
a `RoleLease` for each role, whose hold `changed` is told of. A role without a lease always acts, as far as its consumer
group lets it. Evaluator and alerts have none: they write to no cluster and publish no source, may judge sites whose
clusters this worker does not know, and need no account in any.

An account that may only read is refused the leases. It shows what it sees all the same: its sources go on as if they
had no lease where the worker's topics or its group have one owner. What writes to a cluster stands by.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

from underhost.agents.pipeline.leases.election import Election
from underhost.agents.pipeline.leases.keeper import Keeper, LeaseApi
from underhost.agents.pipeline.leases.within import Within
from underhost.streams.limits import Limits

log = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds between two looks whose a lease is."""


@dataclass(frozen=True)
class LeaseOrigin:
    """Where a worker's leases are, and who it is to them."""

    api: LeaseApi
    identity: str


class RoleLease:
    """One role's lease as those see it who act by it; without an election there is none, and never a doubt.

    `can_go_without` tells that the role may publish where its lease is forbidden.

    Attributes:
        is_sought: whether it is to be held as far as is known: else it is about to be given back, and nobody writes.
    """

    def __init__(self, election: Election | None = None, *, can_go_without: bool = False) -> None:
        self._election, self._can_go_without = election, can_go_without
        self.is_sought = True
        self._limits = Limits()

    @property
    def term(self) -> int | None:
        """The term in which it is held; None where it is not, or where there is no lease."""
        return self._election.term if self._election is not None else None

    @property
    def is_ours(self) -> bool:
        """Whether nobody else has begun to hold it, as far as is known; it may be too old to act by."""
        return self._election is None or self._election.term is not None or self.goes_without

    @property
    def goes_without(self) -> bool:
        """Whether it is forbidden, and this role publishes all the same; it never writes to a cluster."""
        return self._can_go_without and self._election is not None and self._election.forbidden

    @property
    def stands_by(self) -> bool:
        """Whether the API server has said that it is another worker's, or not to be had."""
        return self._election is not None and self._election.known and not self.is_ours

    def doubt(self) -> str | None:
        """Why nothing may be written in this role now; None while it may."""
        if self._election is None:
            return None
        if self._election.term is not None and not self.is_sought:
            return f"lease {self._election.name} is about to be given back"
        return self._election.doubt()

    async def falls_to_us(self, since: float) -> bool:
        """Whether what came at this time (seconds of the election's clock) is this worker's to do.

        It waits until it may act, or cannot, or another worker has shown by a renewal that it was alive after that
        time: the last holder may have died before, and then nobody else does it.
        """
        election = self._election
        while election is not None and election.doubt() is not None:
            if election.forbidden or election.renewed_by_another(since):
                return False
            await asyncio.sleep(LOOK)
        return True

    def silence(self, term: int | None) -> str | None:
        """Why nothing of this term may be published in this role now; None while it may."""
        if self._election is None:
            return None
        if self._election.term != term:
            return f"lease {self._election.name} was lost since"
        return None if self.goes_without else self._election.silence()

    def within(self) -> Within:
        """What is begun as the holder ends with the lease, however often that is renewed meanwhile.

        Only of a lease that is held.
        """
        election = self._election
        assert election is not None
        return Within(self._limits.begin(election.left()), f"no answer before the end of lease {election.name}")

    def renewed(self) -> None:
        """The lease ends later by now."""
        if self._election is not None and self._election.term is not None:
            self._limits.move(self._election.left())


class RoleLeases:
    """The leases of one run. `may_seek` tells whether a role's is to be held now, `changed` is told of its hold.

    `is_candidate` tells whether any of them might be: who is none need not know them to be ready.

    `publishing` are the roles that go on without a lease where it is forbidden.
    """

    def __init__(
        self,
        origin: LeaseOrigin | None,
        site: str,
        seconds: int,
        roles: Collection[str],
        *,
        publishing: Collection[str],
        is_candidate: Callable[[], bool],
        may_seek: Callable[[str], bool],
        changed: Callable[[str], Awaitable[None]],
        ended: Callable[["asyncio.Task[None]"], None],
    ) -> None:
        self._elections: dict[str, Election] = {}
        self._leases: dict[str, RoleLease] = {}
        self._keepers: dict[str, Keeper] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_candidate, self._may_seek, self._changed, self._ended = is_candidate, may_seek, changed, ended
        self._missing: set[str] = set()
        self._stood_by = ""
        for role in roles if origin is not None else ():
            assert origin is not None
            election = self._elections[role] = Election(lease_name(site, role), origin.identity, seconds)
            self._leases[role] = RoleLease(election, can_go_without=role in publishing)
            self._keepers[role] = Keeper(
                origin.api,
                election,
                partial(may_seek, role),
                partial(self._hold_changed, role),
                partial(self._looked, role),
            )

    def of(self, role: str) -> RoleLease:
        """The role's lease, or one that never doubts."""
        return self._leases.get(role) or RoleLease()

    def start(self) -> None:
        """Seek them from now on, unless that has begun."""
        if not self._tasks:
            for role, keeper in self._keepers.items():
                task = asyncio.get_running_loop().create_task(keeper.run(), name=f"lease of {role}")
                task.add_done_callback(self._ended)
                self._tasks.append(task)

    async def close(self) -> None:
        """Seek no more, and give back what is held."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(keeper.release() for keeper in self._keepers.values()))

    def unknown(self) -> dict[str, str]:
        """The leases of which nothing is known yet, or that are about to be taken for the first time."""
        waited = [
            each
            for role, each in (self._elections.items() if self._is_candidate() else ())
            if not each.known or (not each.decided and self._may_seek(role))
        ]
        return {f"lease {each.name}": each.doubt() or "" for each in waited}

    def standby(self) -> dict[str, str]:
        """The leases that are another worker's, or are not to be had, with the reason; empty where all are held."""
        without, unknown = self.without(), self.unknown()
        doubts = {f"lease {each.name}": each.doubt() for each in self._elections.values()}
        return {
            lease: doubt
            for lease, doubt in doubts.items()
            if doubt is not None and lease not in unknown and lease not in without
        }

    def without(self) -> dict[str, str]:
        """The leases that are forbidden and whose roles publish all the same, with the reason."""
        return {
            f"lease {self._elections[role].name}": f"it publishes without: {self._elections[role].doubt()}"
            for role, lease in self._leases.items()
            if lease.goes_without
        }

    def held(self) -> dict[str, bool]:
        """Whether each role that has a lease may act."""
        return {role: lease.doubt() is None for role, lease in self._leases.items()}

    async def _hold_changed(self, role: str) -> None:
        """A lease was won or lost. Who rests on it writes no more from now on, though its keeper may be busy."""
        self._look_what_is_sought()
        await self._changed(role)

    def _look_what_is_sought(self) -> None:
        for role, lease in self._leases.items():
            lease.is_sought = self._may_seek(role)

    def _looked(self, role: str) -> None:
        """A lease was looked at. What it means is said of all of them together, once all are known."""
        self._leases[role].renewed()
        self._look_what_is_sought()
        if all(election.known for election in self._elections.values()):
            self._say_what_is_missing()
            self._say_standby()

    def _say_what_is_missing(self) -> None:
        """One line for all the leases that are forbidden."""
        forbidden = {role for role, election in self._elections.items() if election.forbidden}
        if not forbidden <= self._missing:
            without = {role for role in forbidden if self._leases[role].goes_without}
            done = {"standing by": forbidden - without, "publishing all the same": without}
            told = "; ".join(f"{what}: {', '.join(sorted(roles))}" for what, roles in done.items() if roles)
            log.warning("a right to leases is missing; %s; %s", told, self._elections[min(forbidden)].doubt())
        self._missing = forbidden

    def _say_standby(self) -> None:
        """One line whenever other workers hold other leases than before, and who they are."""
        others = "; ".join(f"lease {each.name} is held by {each.holder}" for each in self._others())
        if others != self._stood_by:
            self._stood_by = others
            log.info("standing by: %s", others) if others else log.info("no lease is another worker's any more")

    def _others(self) -> list[Election]:
        return [each for each in self._elections.values() if each.term is None and each.is_anothers]


def lease_name(site: str, role: str) -> str:
    """The name of a role's lease."""
    return f"underhost-{site}-{role}"
