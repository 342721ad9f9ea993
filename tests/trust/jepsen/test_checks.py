"""Each of Jepsen's checks finds what it is for, and nothing where all is well."""

import pytest
from trust.jepsen.checks import (
    Sent,
    Write,
    by_former_owners,
    differences,
    diverging,
    lost,
    not_committed,
    out_of_order,
    repeated,
    replayed,
)

from underhost.streams.ports import Record

PODS = "underhost.pods"


def pod(uid: str, version: int) -> bytes:
    return f'{{"metadata":{{"name":"db","uid":"{uid}","resourceVersion":"{version}"}}}}'.encode()


def read(offset: int, key: str, value: bytes | None, event: str = "", term: str = "") -> Record:
    headers = [("ce_id", event.encode()), *([("ce_term", term.encode())] if term else [])]
    return Record(PODS, 0, offset, 0, key.encode(), value, tuple(headers))


def sent(event: str, worker: str = "w1", key: str = "s/pod/shop/db") -> Sent:
    return Sent(worker, PODS, key, event)


KEY = "s/pod/shop/db"
HISTORY = [read(0, KEY, pod("u", 1), "u/1"), read(1, KEY, pod("u", 2), "u/2"), read(2, KEY, None, "u/deleted")]


@pytest.mark.parametrize(
    ("acknowledged", "wrong"),
    [
        (["u/1", "u/2", "u/deleted"], []),
        (["u/1", "u/3"], [f"lost: {PODS} {KEY} u/3"]),
        (["u/1", "u/1"], [f"lost: {PODS} {KEY} u/1"]),
        ([], []),
    ],
    ids=["all are there", "one is missing", "one of two is missing", "nobody was told: it may be there"],
)
def test_a_record_that_was_acknowledged_is_in_its_topic(acknowledged: list[str], wrong: list[str]) -> None:
    assert lost(map(sent, acknowledged), HISTORY) == wrong


@pytest.mark.parametrize(
    ("acknowledged", "wrong"),
    [
        ([sent("u/1"), sent("u/2")], []),
        ([sent("u/2"), sent("u/1")], [f"out of order: {PODS} {KEY} u/1 of w1"]),
        ([sent("u/2", "w1"), sent("u/1", "w2")], []),
        ([sent("u/2"), sent("u/9")], []),
    ],
    ids=["as sent", "turned round", "two workers", "one that is lost is another check's"],
)
def test_records_of_a_key_lie_as_they_were_sent(acknowledged: list[Sent], wrong: list[str]) -> None:
    assert out_of_order(acknowledged, HISTORY) == wrong


@pytest.mark.parametrize(
    ("later", "wrong"),
    [
        (HISTORY, []),
        ([*HISTORY[:1], read(1, KEY, pod("u", 9), "u/9"), HISTORY[2]], [f"diverging: {PODS}[0] offset 1"]),
        (HISTORY[:2], [f"diverging: {PODS}[0] offset 2"]),
    ],
    ids=["the same", "another record at its offset", "cut off"],
)
def test_what_was_read_once_is_read_again(later: list[Record], wrong: list[str]) -> None:
    assert diverging(HISTORY, later) == wrong


@pytest.mark.parametrize(
    ("history", "row"),
    [
        (HISTORY[:2], pod("u", 2)),
        (HISTORY, None),
        ([HISTORY[1], HISTORY[0]], pod("u", 2)),
        ([read(0, KEY, pod("v", 9), "v/9"), read(1, KEY, None, "u/deleted")], pod("v", 9)),
        ([read(0, KEY, pod("u", 3), term="2"), read(1, KEY, pod("u", 4), term="1")], pod("u", 3)),
        ([read(0, KEY, pod("u", 3), term="2"), read(1, KEY, None, "u/deleted", "1")], pod("u", 3)),
    ],
    ids=["newest", "deleted", "older version", "tombstone of another uid", "older term", "tombstone of an older term"],
)
def test_a_replay_keeps_the_newest_and_refuses_what_is_late(history: list[Record], row: bytes | None) -> None:
    assert replayed(history)[PODS].get(KEY.encode()) == row


@pytest.mark.parametrize(
    ("offset", "keys"),
    [(3, set()), (2, {KEY.encode()}), (0, {KEY.encode()})],
    ids=["all was read", "the last one was not", "nothing was read"],
)
def test_a_key_is_not_compared_before_its_last_record_was_read(offset: int, keys: set[bytes]) -> None:
    assert not_committed(HISTORY, PODS, {f"{PODS}/0": offset}) == keys
    assert not_committed(HISTORY, "underhost.vms", {}) == set()


def test_a_topic_that_nobody_committed_is_no_excuse() -> None:
    with pytest.raises(KeyError, match=PODS):
        not_committed(HISTORY, PODS, {"underhost.vms/0": 3})


def test_tables_are_compared_byte_for_byte() -> None:
    assert differences("tables", {b"a": b"1", b"b": b"2"}, {b"a": b"1", b"b": b"2 ", b"c": b"3"}) == [
        "tables: b",
        "tables: c",
    ]


def bound(received: str, answered: str) -> Write:
    return Write("w1", "pods/binding", "shop/a", received, answered)


def gone(received: str, answered: str, name: str = "shop/a") -> Write:
    return Write("admin", "pods", name, received, answered, "deleted")


@pytest.mark.parametrize(
    ("writes", "twice"),
    [
        ([bound("01", "02"), bound("03", "04")], 1),
        ([bound("01", "02"), gone("03", "04"), bound("05", "06")], 0),
        ([bound("01", "02"), gone("03", "04"), bound("05", "06"), bound("07", "08")], 1),
        ([gone("02", "03"), bound("01", "04"), bound("05", "06")], 0),
        ([bound("01", "02"), gone("03", "06"), bound("04", "05")], 0),
        ([gone("01", "02"), bound("03", "04"), bound("05", "06")], 1),
        ([bound("01", "02"), gone("03", "04", "shop/b"), bound("05", "06")], 1),
    ],
    ids=[
        "twice",
        "deleted in between",
        "deleted once",
        "bound and deleted at a time, and the deletion was answered first",
        "deleted while the next one was bound already",
        "deleted before",
        "another one was deleted",
    ],
)
def test_a_pod_that_is_bound_twice_is_told_unless_it_may_be_another_one(writes: list[Write], twice: int) -> None:
    assert repeated(writes) == ["twice: pods/binding shop/a by w1"] * twice


def lease(holder: str, answered: str) -> Write:
    return Write(holder or "w1", "leases", "default/underhost-s-binder", answered, answered, holder)


@pytest.mark.parametrize(
    ("writes", "who"),
    [
        ([lease("w1", "01"), Write("w1", "pods/binding", "shop/a", "02", "03"), lease("w2", "04")], []),
        ([lease("w1", "01"), lease("w2", "04"), Write("w1", "pods/binding", "shop/a", "03", "05")], []),
        ([lease("w1", "01"), lease("w2", "04"), Write("w1", "pods/binding", "shop/a", "05", "06")], ["w1"]),
        ([lease("w1", "01"), lease("w1", "04"), Write("w1", "pods/binding", "shop/a", "05", "06")], []),
        ([lease("w2", "04"), Write("w1", "nodes", "n1", "05", "06")], []),
    ],
    ids=["its own", "on its way at the takeover", "after the takeover", "renewed", "of another role"],
)
def test_a_write_after_the_takeover_is_a_former_owners(writes: list[Write], who: list[str]) -> None:
    found = by_former_owners(writes, {"pods/binding": "underhost-s-binder"})
    assert [line.split()[2] for line in found] == who
