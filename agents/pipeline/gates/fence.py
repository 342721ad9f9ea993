"""Nothing is written by a worker that may have lost its partitions: the fence in front of every writer and publisher.

In: the membership of the consumer group. Out: the same writers and publishers, behind it. A
worker that was frozen goes on in the middle of what it did, while another one owns the site. Kafka's group tells nobody
which of two is right, and a cluster knows nothing of the group; so each write asks this worker's own clock at the last
moment whether the group still counts on it. What has left the process before is not to be had back: writes carry
preconditions (uid, rule name) for that.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.sinks.ports import Writers
from underhost.schemas.errors import Unreachable
from underhost.schemas.records import Action, Outcome
from underhost.streams.faust.membership import Membership
from underhost.streams.ports import Outgoing, Publisher


class FencedPublisher:
    """Publishes once this worker is a member without a doubt. Where the site moves, whoever waits is cancelled."""

    def __init__(self, publisher: Publisher, membership: Membership) -> None:
        self._publisher, self._membership = publisher, membership

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        await self._membership.confirmed()
        await self._publisher.publish(*records)


class MembershipGate(Gate):
    """Lets a command through once this worker is a member without a doubt.

    A command that nobody can wait with goes on, and finds the fence before its writer.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def refuses(self, action: Action) -> Outcome | None:
        """Nothing: it waits until the group counts on this worker again."""
        return None

    async def waits(self, action: Action) -> bool:
        """See `Gate.waits`. Where the site moves meanwhile, whoever waits is cancelled."""
        in_doubt = self._membership.doubt() is not None
        if in_doubt:
            await self._membership.confirmed()
        return in_doubt


class FencedWriter:
    """A cluster's writer, whatever its methods are: each is Unreachable while membership is in doubt."""

    def __init__(self, writer: Any, membership: Membership) -> None:
        self._writer, self._membership = writer, membership

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._writer, name)

        async def ask_and_call(*args: Any, **options: Any) -> Any:
            doubt = self._membership.doubt()
            if doubt is not None:
                raise Unreachable(f"nothing is written by this worker: {doubt}")
            return await method(*args, **options)

        return ask_and_call


def fenced(writers: Writers, membership: Membership) -> Writers:
    """The same writers behind the fence."""

    def behind(writer: Any) -> Any:
        return writer and FencedWriter(writer, membership)

    return Writers(behind(writers.kubernetes), behind(writers.drs), behind(writers.events))
