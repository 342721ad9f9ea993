"""A whole list into the topics: what differs, then the `listed` markers; what is not believed is left as it is.

In: what the topics hold, and what a server or a file shows now. Out: published records, and doubts for a person. What
changes after it is left to the source.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct

from underhost.schemas.topics import Topic
from underhost.streams.ports import Outgoing, Publisher
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.reconcile import plan_listing
from underhost.streams.watching.records import AT_ONCE, deliverable


async def publish_list(
    site: str,
    source: str,
    topics: Sequence[Topic],
    held: Mapping[str, Mapping[str, bytes]],
    listed: Mapping[str, Mapping[str, Struct]],
    epoch: int,
    doubts: Doubts,
    publisher: Publisher,
    first: Sequence[Outgoing] = (),
    *,
    seen: int = 0,
    certain: bool = False,
) -> frozenset[str]:
    """Publish the records in `first`, then how the list differs from what is held; for the rest see `plan_listing`.

    Returns the keys of what has vanished and is not believed to be gone.
    """
    accepted = doubts.accepted
    # Off the event loop: with 100,000 pods this is a second of work.
    plan = await asyncio.to_thread(
        plan_listing,
        site,
        source,
        topics,
        held,
        listed,
        epoch,
        accepted=accepted,
        doubt=str(doubts),
        seen=seen,
        certain=certain,
    )
    doubts.see(plan.shrunk, plan.missing)
    records = chain(first, map(deliverable, plan.records()))
    while some := await asyncio.to_thread(list, islice(records, AT_ONCE)):
        await publisher.publish(*some)
    doubts.settle(accepted)
    return frozenset(plan.missing)
