"""Ties the sites to Faust's rebalances: what is held, where the streams go on, the objects rebuilt from tables.

In: Faust's signals. Out: `Sites.suspend` the moment partitions may move, `Sites.resume` once the tables are recovered
and before the first live record, then `on_resumed`. Nothing here reads records.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import faust
from faust.types import TP
from msgspec import Struct

from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.site.objects import read_key, read_record, shared_parts
from underhost.schemas.errors import BadEvent
from underhost.schemas.keys import Key
from underhost.schemas.kubernetes import Pod
from underhost.schemas.pods.sharing import SharedParts
from underhost.schemas.topics import Topic

log = logging.getLogger(__name__)

SLICE = 500
"""Rows that are decoded at a time: some 10 ms."""

Hook = Callable[[], Awaitable[None]]


def attach(app: faust.App, sites: Sites, tables: Tables, *, on_suspended: Hook, on_resumed: Hook) -> None:
    """Follow the app's rebalances. `on_suspended` ends what may only run while a site is held, before it can move."""

    async def revoked(sender: Any, partitions: Any = None, **kwargs: Any) -> None:
        sites.suspend()
        await on_suspended()

    async def complete(sender: Any, **kwargs: Any) -> None:
        # Faust resumes the source partitions before it seeks them, and clears the agents' queues after: what is fetched
        # in between would be lost. Faust itself lets the flow go on once all that is done.
        app.consumer.stop_flow()
        turn = sites.turn
        mine = {topic.name: topic for topic in (*sites.read, *sites.followed)}
        held = {tp for tp in app.consumer.assignment() if tp.topic in mine}
        positions, highwaters = await _places(app, held)
        # Faust goes back to committed offsets only: where nothing is committed yet, what was fetched for an earlier
        # assignment would be left out.
        if positions:
            await app.consumer.seek_wait(positions)
        if sites.turn != turn:
            return  # the partitions moved meanwhile: another rebalance follows
        sites.resume(
            {tp.partition for tp in held},
            {(mine[tp.topic].short, tp.partition): offset for tp, offset in positions.items()},
            {(mine[tp.topic].short, tp.partition): offset for tp, offset in highwaters.items()},
        )
        tables.purge()
        turn = sites.turn
        for topic in sites.read:
            await rebuild(sites, tables, topic)
        if sites.turn != turn:
            return  # as above
        tables.look_for_orphans(time.time())
        log.info("holding %d partitions", len({tp.partition for tp in held}))
        await on_resumed()

    app.on_partitions_revoked.connect(revoked, weak=False)
    app.on_rebalance_complete.connect(complete, weak=False)


async def _places(app: faust.App, held: set[TP]) -> tuple[dict[TP, int], dict[TP, int]]:
    """(where the streams go on, where the topics end) by partition, as Faust is about to seek them."""
    if not held:
        return {}, {}
    highwaters = await app.consumer.highwaters(*held)
    earliest = await app.consumer.earliest_offsets(*held)
    committed = {TP(*tp): offset for tp, offset in (await app.consumer.seek_to_committed()).items()}
    # Places may be kept for longer than records: what was removed in between nobody brings any more.
    positions = {tp: max(committed.get(tp) or 0, earliest.get(tp) or 0) for tp in held}
    return positions, {tp: highwaters.get(tp) or 0 for tp in held}


async def rebuild(sites: Sites, tables: Tables, topic: Topic) -> None:
    """Decode the topic's table anew for every site that is held: the table is the truth after a recovery.

    The event loop has its turn every `SLICE` rows: probes are answered, and the lease is renewed, meanwhile.
    """
    rows: dict[str, list[tuple[Key, Struct]]] = {site: [] for site in sites.states}
    parts = defaultdict[str, SharedParts](shared_parts)
    for number, (key, record) in enumerate(_decoded(tables, topic)):
        if not number % SLICE:
            await asyncio.sleep(0)
        if sites.holds(key.site):
            record = parts[key.site].put(record) if isinstance(record, Pod) else record
            rows.setdefault(key.site, []).append((key, record))
    for site, of_site in rows.items():
        sites.state(site).replace(topic, of_site, parts[site])


def _decoded(tables: Tables, topic: Topic) -> Iterator[tuple[Key, Struct]]:
    for raw, value in tables.rows(topic):
        try:
            key = read_key(raw)
            record = read_record(topic, key, value)
        except BadEvent as error:
            # Only after an upgrade can a row that was read before be unreadable; the source's next list replaces it.
            log.warning("row %r of table %s cannot be read: %s", raw, topic.short, error)
            continue
        if record is not None:
            yield key, record
