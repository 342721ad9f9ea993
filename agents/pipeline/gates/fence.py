"""Nothing is written by a worker that may have lost partitions or lease: the fence before writers and publishers.

In: the membership of the consumer group, and the lease of a role. Out: the same writers and publishers, behind both. A
worker that was frozen goes on in the middle of what it did, while another one owns the site. Kafka's group tells nobody
which of two is right, and a cluster knows nothing of the group; so each write asks this worker's own clock whether the
group and the lease still count on it: when it begins, and at the last moment, in the client
(`streams/before_write.py`). What has left the process before is not to be had back: writes carry preconditions (uid,
rule name) for that, records their term.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import fields
from typing import Any

from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.pipeline.leases.roles import RoleLease
from underhost.agents.pipeline.leases.within import Within
from underhost.agents.sinks.ports import Writers
from underhost.schemas.errors import Unreachable
from underhost.schemas.records import Action, Outcome
from underhost.streams.before_write import WriteQuestion
from underhost.streams.cloudevents import TERM
from underhost.streams.faust.membership import LOOK, Membership
from underhost.streams.limits import Limits
from underhost.streams.ports import Outgoing, Publisher


class FencedPublisher:
    """Publishes once this worker is a member without a doubt. Where the site moves, whoever waits is cancelled."""

    def __init__(self, publisher: Publisher, membership: Membership) -> None:
        self._publisher, self._membership = publisher, membership

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        await self._membership.confirmed()
        await self._publisher.publish(*records)


class LeasedPublisher:
    """Publishes what one source sees, in the term in which that was started: later ones are another source's.

    Its records carry the term, so that whoever reads them can refuse what has been under way for too long.
    """

    def __init__(self, publisher: Publisher, membership: Membership, lease: RoleLease) -> None:
        self._publisher, self._membership, self._lease = publisher, membership, lease
        self._term = lease.term
        self._header = {} if self._term is None else {TERM: str(self._term).encode()}

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`. Where the lease is lost, whoever waits is cancelled."""
        while True:
            await self._membership.confirmed()
            if self._lease.silence(self._term) is None:
                break
            await asyncio.sleep(LOOK)
        await self._publisher.publish(*(each.with_headers(self._header) for each in records))


class MembershipGate(Gate):
    """Lets a command through once this worker is a member without a doubt.

    A command that nobody can wait with goes on, and finds the fence before its writer.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def refuses(self, action: Action) -> Outcome | None:
        """Nothing: it waits until the group counts on this worker again."""
        return None

    def is_unsure(self, action: Action) -> bool:
        """See `Gate.is_unsure`."""
        return self._membership.doubt() is not None

    async def settled(self, action: Action) -> None:
        """See `Gate.settled`. Where the site moves meanwhile, whoever waits is cancelled."""
        await self._membership.confirmed()


class FencedWriter:
    """A cluster's writer, whatever its methods are: each is Unreachable while membership or lease is in doubt.

    What has begun in time is ended with the lease, or where there is none with the membership as it is at the start:
    another worker may write from then on.
    """

    def __init__(self, writer: Any, membership: Membership, lease: RoleLease) -> None:
        self._writer, self._membership, self._lease = writer, membership, lease
        self._limits = Limits()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._writer, name)

        async def ask_and_call(*args: Any, **options: Any) -> Any:
            self._ask()
            with self._time(), WriteQuestion(self._ask):
                return await method(*args, **options)

        return ask_and_call

    def _time(self) -> Within:
        if self._lease.term is not None:
            return self._lease.within()
        limit = self._limits.begin(self._membership.left())
        return Within(limit, "no answer for as long as the consumer group counts on this worker")

    def _ask(self) -> None:
        doubt = self._membership.doubt() or self._lease.doubt()
        if doubt is not None:
            raise Unreachable(f"nothing is written by this worker: {doubt}")


def fenced(writers: Writers, membership: Membership, lease: RoleLease) -> Writers:
    """The same writers behind the fence of one role."""

    def behind(writer: Any) -> Any:
        return writer and FencedWriter(writer, membership, lease)

    return Writers(*(behind(getattr(writers, each.name)) for each in fields(writers)))
