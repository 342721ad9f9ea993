"""What happens once Faust has recovered the tables: the objects are decoded anew, and others have their turn."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from support.build import a_pod
from support.fakes.tables import StoredTables

from underhost.agents.pipeline.tables import recovery
from underhost.schemas.keys import object_key, parse_key
from underhost.schemas.kubernetes import Metadata, Pod, decode, encode
from underhost.schemas.topics import PODS

SITE, MANY = "prod", 5 * recovery.SLICE


class Rebalances:
    """A Faust app, as far as recoveries need it: it holds the one partition of pods."""

    def __init__(self) -> None:
        self.hooks: list[Callable[..., Awaitable[None]]] = []
        self.on_partitions_revoked = self.on_rebalance_complete = self
        self.consumer = SimpleNamespace(
            stop_flow=lambda: None,
            assignment=lambda: {TP(PODS.name, 0)},
            highwaters=self._offsets,
            earliest_offsets=self._offsets,
            seek_to_committed=self._offsets,
            seek_wait=self._offsets,
        )

    def connect(self, hook: Callable[..., Awaitable[None]], weak: bool) -> None:
        """See `mode.Signal`."""
        self.hooks.append(hook)

    async def _offsets(self, *of: object) -> dict[TP, int]:
        return {}

    async def begin(self) -> None:
        """The partitions may move."""
        await self.hooks[0](self)

    async def complete(self) -> None:
        """The tables are recovered."""
        await self.hooks[1](self)


def offsets(found: dict[TP, int]) -> Callable[..., Awaitable[dict[TP, int]]]:
    """A question to the consumer with this answer."""

    async def answer(*of: object) -> dict[TP, int]:
        return found

    return answer


async def many_rows(folder: Path, app: Rebalances, told: list[str]) -> StoredTables:
    """A worker whose table holds many pods, of which nothing is decoded yet."""
    tables = StoredTables(folder, (PODS,))
    for number in range(MANY):
        key = object_key(SITE, "pod", f"p{number}", "shop").encode()
        tables._tables[PODS.short][key] = encode(Pod(Metadata(name=f"p{number}", namespace="shop")))

    def say(what: str) -> Callable[[], Awaitable[None]]:
        async def said() -> None:
            told.append(what)

        return said

    anything: Any = app
    recovery.attach(anything, tables.sites, tables, on_suspended=say("suspended"), on_resumed=say("resumed"))
    return tables


async def test_while_many_rows_are_decoded_the_event_loop_has_its_turn(tmp_path: Path) -> None:
    app, told, turns = Rebalances(), list[str](), 0
    tables = await many_rows(tmp_path, app, told)
    completing = asyncio.ensure_future(app.complete())
    while not completing.done():
        await asyncio.sleep(0)
        turns += 1
    await completing
    assert turns >= MANY // recovery.SLICE
    assert (len(tables.sites.state(SITE).rows(PODS)), told) == (MANY, ["resumed"])


async def test_partitions_that_move_while_rows_are_decoded_are_not_resumed(tmp_path: Path) -> None:
    app, told = Rebalances(), list[str]()
    await many_rows(tmp_path, app, told)
    completing = asyncio.ensure_future(app.complete())
    await asyncio.sleep(0)
    await app.begin()
    await completing
    assert told == ["suspended"]


async def test_partitions_that_move_while_kafka_is_asked_are_not_held(tmp_path: Path) -> None:
    app, told, asked = Rebalances(), list[str](), asyncio.Event()

    async def ends(*of: object) -> dict[TP, int]:
        await asked.wait()
        return {}

    app.consumer.highwaters = ends
    tables = await many_rows(tmp_path, app, told)
    completing = asyncio.ensure_future(app.complete())
    await asyncio.sleep(0)
    await app.begin()
    asked.set()
    await completing
    assert (told, tables.sites.holds(SITE)) == (["suspended"], False)


async def test_recovered_pods_share_parts_and_so_do_those_that_come_after(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, (PODS,))
    owner = [{"kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}]
    pods = {
        f"web-{number}": a_pod(f"web-{number}").put("metadata", "ownerReferences", value=owner).sent()
        for number in (0, 1, 2)
    }
    for name in ("web-0", "web-1"):
        tables._tables[PODS.short][object_key(SITE, "pod", name, "shop").encode()] = encode(pods[name])
    tables.sites.resume({0}, {}, {})
    await recovery.rebuild(tables.sites, tables, PODS)
    state = tables.sites.state(SITE)
    state.put(PODS, parse_key(object_key(SITE, "pod", "web-2", "shop")), decode(encode(pods["web-2"]), Pod))
    rows = state.rows(PODS)
    assert sorted(rows) == ["shop/web-0", "shop/web-1", "shop/web-2"]
    assert len({id(row.spec.containers) for row in rows.values()}) == 1


async def test_a_place_before_the_start_of_an_emptied_topic_is_none_to_wait_for(tmp_path: Path) -> None:
    """Kafka keeps places for longer than records: what is between was waited for, for ever."""
    app, told, place = Rebalances(), list[str](), TP(PODS.name, 0)
    sought: list[dict[TP, int]] = []

    async def seek(places: dict[TP, int]) -> None:
        sought.append(places)

    app.consumer.seek_to_committed, app.consumer.seek_wait = offsets({place: 7}), seek
    app.consumer.earliest_offsets = app.consumer.highwaters = offsets({place: 10})
    tables = await many_rows(tmp_path, app, told)
    await app.complete()
    assert sought == [{place: 10}]
    assert (tables.sites.behind(), tables.sites.unready(SITE)) == (0, None)


@pytest.mark.parametrize(("committed", "following"), [(None, 4), (0, 4), (4, 4), (7, 7), (12, 12)])
async def test_streams_go_on_where_they_were_committed_within_what_the_topic_still_holds(
    committed: int | None, following: int, tmp_path: Path
) -> None:
    app, place = Rebalances(), TP(PODS.name, 0)
    app.consumer.seek_to_committed = offsets({} if committed is None else {place: committed})
    app.consumer.earliest_offsets, app.consumer.highwaters = offsets({place: 4}), offsets({place: 12})
    tables = await many_rows(tmp_path, app, [])
    await app.complete()
    assert tables.sites.following(PODS, 0) == following
