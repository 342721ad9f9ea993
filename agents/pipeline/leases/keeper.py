"""Seeks one lease, keeps it, and gives it back.

In: the API of leases, an election, and whether this worker may seek it now. Out: a call of `changed` whenever this
worker begins or ceases to hold it, or learns whether it has the right to, before anything else happens; the same in the
log, but for the right, which is mostly missing for all leases at once. Runs until it is cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from underhost.agents.pipeline.leases.election import Election
from underhost.schemas.errors import Conflict, Forbidden, Gone, Refused, Retry, UnderhostError, Unreachable
from underhost.streams.kubernetes.leases import Lease

log = logging.getLogger(__name__)

LOOK = 0.2
"""Seconds between two looks whether it may still be sought."""
RELEASE_TRIES = 2
"""Writes that give a lease back: the version that we know may be older than one whose answer was lost."""


class LeaseApi(Protocol):
    """What `streams/kubernetes/leases.py` offers."""

    async def get(self, name: str) -> Lease | None:
        """The lease, None where there is none. Raises Forbidden, Refused, Retry or Unreachable."""

    async def put(self, name: str, lease: Lease) -> Lease:
        """Write it in the place of its version. Raises Conflict, Gone, Forbidden, Refused, Retry or Unreachable."""


class Keeper:
    """Keeps one lease.

    `may_seek` tells whether it is to be held now; `changed` is awaited after each change of the term that is held or of
    the right to it, `looked` is called after each look.
    """

    def __init__(
        self,
        api: LeaseApi,
        election: Election,
        may_seek: Callable[[], bool],
        changed: Callable[[], Awaitable[None]],
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        self._api, self._election, self._may_seek = api, election, may_seek
        self._changed, self._looked = changed, looked
        self._said = ""

    async def run(self) -> None:
        """Until cancelled. Who may not seek it looks as often: when it may, it knows since when it is as it is."""
        while True:
            may = self._may_seek()
            if not may:
                await self.release()
            await self.look(only_look=not may)
            await self._wait(self._election.pause(), while_it_may=may)

    async def _wait(self, seconds: float, *, while_it_may: bool) -> None:
        """So long, or until that has changed."""
        while seconds > 0 and self._may_seek() is while_it_may:
            await asyncio.sleep(min(LOOK, seconds))
            seconds -= LOOK

    async def look(self, *, only_look: bool = False) -> None:
        """Take the lease, renew it, or see whose it is; unless it may be sought, only that."""
        before = self._election.term, self._election.forbidden
        await self._ask(only_look=only_look)
        if (self._election.term, self._election.forbidden) != before:
            await self._changed()
        self._looked()
        if not only_look:
            self._say()

    async def _ask(self, *, only_look: bool) -> None:
        election = self._election
        sent = election.clock()
        try:
            if election.must_read:
                election.observe(await self._api.get(election.name))
            if not only_look and (lease := election.candidate()) is not None:
                sent = election.clock()
                election.wrote(await self._api.put(election.name, lease), sent)
        except Conflict:
            election.outrun()
        except (Unreachable, Retry) as error:
            election.unanswered(sent, str(error))
        except (Refused, Gone) as error:  # gone: there is no such namespace
            election.refused(str(error), forbidden=isinstance(error, Forbidden))

    async def release(self) -> None:
        """Hold it no more, and let another worker take it at once where the API server answers."""
        if self._election.term is None:
            return
        self._election.resign()
        await self._changed()
        try:
            await self._give_back()
        except UnderhostError as error:
            log.warning("lease %s was not given back, others wait until it ends: %s", self._election.name, error)
        else:
            log.info("lease %s was given back", self._election.name)
        self._said = ""

    async def _give_back(self) -> None:
        election = self._election
        for attempt in range(RELEASE_TRIES):
            lease = election.given_back()
            if lease is None:
                return
            try:
                return election.observe(await self._api.put(election.name, lease))
            except (Conflict, Gone):
                if attempt + 1 < RELEASE_TRIES:
                    election.observe(await self._api.get(election.name))

    def _say(self) -> None:
        """One line whenever it is held, is another's, or cannot be asked for."""
        election = self._election
        doubt = election.doubt()
        said = doubt or f"lease {election.name} is held by this worker, term {election.term}"
        if said != self._said:
            self._said = said
            if election.forbidden:
                return
            (log.info if doubt is None or election.holder else log.warning)("%s", said)
