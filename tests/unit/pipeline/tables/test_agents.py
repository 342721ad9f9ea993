"""What becomes of one record on its way into a table, and what is thrown out of the tables of a worker."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from support.fakes.tables import StoredTable

from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.orders import order
from underhost.schemas.errors import BadEvent
from underhost.schemas.topics import ACTIONS, OUTCOMES, PODS, Topic
from underhost.streams.faust.app import build_app
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

POD = b'{"metadata": {"name": "db-0", "namespace": "shop"}}'
OUTCOME = b'{"id": "1", "kind": "label", "target": "node/n1", "result": "applied", "reason": ""}'


async def nothing(stream: Any) -> None:
    """An agent that is never started."""


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Tables of an app that is never started; sites `a` and `b` are in partitions 1 and 2, and only `a` is wanted."""
    app = build_app(Settings(kafka=KafkaSettings(embedded=tmp_path / "log.db", partitions=4)), app_id="t")
    sites = Sites(
        (PODS,),
        (OUTCOMES,),
        partition_of={"a": 1, "b": 2}.__getitem__,
        sources=lambda state: frozenset(),
        only=frozenset({"a"}),
    )

    async def live(topic: Topic, site: str) -> list[str]:
        return []

    made = Tables(app, sites, live, lambda topic, why: None)
    made.add(PODS, nothing)
    made.add(OUTCOMES, nothing)
    return made


def message(key: bytes | None, value: bytes | None, partition: int = 1) -> Any:
    return SimpleNamespace(key=key, value=value, partition=partition, timestamp=1.0, headers=[])


async def test_a_record_in_another_partition_than_its_sites_is_refused(tables: Tables) -> None:
    with pytest.raises(BadEvent, match="a record of site 'a' in partition 3"):
        await tables.keep(PODS, message(b"a/pod/shop/db-0", POD, partition=3))


async def test_the_record_of_a_site_that_is_not_wanted_is_left_alone(tables: Tables) -> None:
    await tables.keep(PODS, message(b"b/pod/shop/db-0", POD, partition=2))
    assert list(tables.rows(PODS)) == []
    assert tables.sites.states == {}


@pytest.mark.parametrize("topic", [PODS, OUTCOMES], ids=lambda topic: topic.short)
async def test_a_worker_of_one_site_does_not_decode_what_is_of_other_sites(tables: Tables, topic: Topic) -> None:
    await tables.keep(topic, message(b"b/pod/shop/db-0", b"not to be read", partition=2))
    assert list(tables.rows(topic)) == []


@pytest.mark.parametrize(
    ("topic", "key", "value", "why"),
    [
        pytest.param(OUTCOMES, None, OUTCOME, "the record has no key", id="no key"),
        pytest.param(OUTCOMES, b"a/\xff", OUTCOME, "bad key: 'utf-8' codec", id="a key that is no text"),
        pytest.param(OUTCOMES, b"a", OUTCOME, "bad key: b'a'", id="a key without a site"),
        pytest.param(OUTCOMES, b"a/node//n1", b"{}", "not a Outcome: ", id="a record without its fields"),
        pytest.param(PODS, b"a/pod/shop/db-0", b"{}", "not a Pod: ", id="a pod without metadata"),
        pytest.param(
            PODS,
            b"a/listed/kubernetes",
            b'{"epoch": 1, "count": 1, "seen": 1%s}' % (b"0" * 400),
            "not a Listed: Expected `int` <= 253402300799999 - at `$.seen`",
            id="a marker of a time that is none",
        ),
    ],
)
async def test_what_cannot_be_read_is_refused(
    tables: Tables, topic: Topic, key: bytes | None, value: bytes, why: str
) -> None:
    with pytest.raises(BadEvent) as error:
        await tables.keep(topic, message(key, value))
    assert str(error.value).startswith(why)


def test_rows_of_sites_that_are_not_held_are_thrown_out_of_the_store(tables: Tables) -> None:
    store = tables._tables[PODS.short].data.data
    store |= {b"a/pod/shop/db-0": POD, b"b/pod/shop/db-0": POD}
    tables.sites.resume({1, 2}, {}, {})
    tables.purge()
    assert [key for key, _ in tables.rows(PODS)] == [b"a/pod/shop/db-0"]
    tables.sites.resume({2}, {}, {})
    tables.purge()
    assert list(tables.rows(PODS)) == []


def test_rows_can_be_asked_for_by_site_and_one_by_one(tables: Tables) -> None:
    tables._tables[PODS.short].data.data |= {b"a/pod/shop/db-0": POD, b"ab/pod/shop/db-0": POD}
    assert list(tables.rows(PODS, "a")) == [(b"a/pod/shop/db-0", POD)]
    assert tables.row(PODS, "a/pod/shop/db-0") == POD
    assert tables.row(PODS, "a/pod/shop/db-1") is None


def eviction(at: str, kind: str = "evict") -> bytes:
    return msgspec.json.encode(order(kind, "pod/shop/x", {"uid": "u", "at": at}, "", {}))


async def test_evictions_of_pods_long_gone_are_forgotten(tables: Tables) -> None:
    store = StoredTable(
        {
            b"a/node//n1": eviction("", "label"),
            b"a/pod/shop/old": eviction("2026-01-01T00:00:00.000Z"),
            b"a/pod/shop/young": eviction("2026-01-07T00:00:00.000Z"),
            b"b/pod/shop/old": eviction("2026-01-01T00:00:00.000Z"),
        }
    )
    tables._tables[ACTIONS.short] = store
    new = message(b"a/pod/shop/new", eviction("2026-01-08T12:00:00.000Z"))
    new.timestamp = 1_767_873_600.0  # 2026-01-08T12:00:00Z
    await tables.keep(ACTIONS, new)
    assert sorted(store) == [b"a/node//n1", b"a/pod/shop/new", b"a/pod/shop/young", b"b/pod/shop/old"]


async def test_rows_are_looked_through_for_old_evictions_once_in_ten_minutes(tables: Tables) -> None:
    """Of a site that leaves thousands of findings to a person twenty are told each second."""
    store = tables._tables[ACTIONS.short] = StoredTable()
    left = []
    for second in (0, 599, 600):
        store[b"a/pod/shop/old"] = eviction("2026-01-01T00:00:00.000Z")
        new = message(b"a/pod/shop/new", eviction("2026-01-08T12:00:00.000Z"))
        new.timestamp = 1_767_873_600.0 + second
        await tables.keep(ACTIONS, new)
        left.append(b"a/pod/shop/old" in store)
    assert left == [False, True, False]


async def test_a_command_with_an_id_of_other_content_takes_nobodys_row(
    tables: Tables,
) -> None:
    ordered = eviction("2026-01-07T00:00:00.000Z")
    store = tables._tables[ACTIONS.short] = StoredTable({b"a/pod/shop/x": ordered})
    with pytest.raises(BadEvent, match=r"nobody has ordered this: its id '\w{24}' is not its content's, \w{24}"):
        await tables.keep(ACTIONS, message(b"a/pod/shop/x", ordered.replace(b'"u"', b'"v"')))
    assert store == {b"a/pod/shop/x": ordered}
