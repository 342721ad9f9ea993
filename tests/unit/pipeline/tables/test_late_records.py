"""What a former owner sent arrives after its successor's records: the tables stay as the successor has made them."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes.tables import StoredTables

from underhost.schemas.keys import listed_key, object_key
from underhost.schemas.kubernetes import Metadata, Node, Pod, PodSpec, encode
from underhost.schemas.records import FindingEvent, Listed
from underhost.schemas.topics import NODES, PODS, VIOLATIONS
from underhost.streams.watching.records import outgoing_of

SITE = "prod"
DB = object_key(SITE, "pod", "db-0", "shop")
HOUR = 3600.0
ENDLESS = "9" * 5000
"""More digits than Python makes a number of."""


def pod(version: str, *, name: str = "db-0", uid: str = "u1", node: str = "") -> Pod:
    return Pod(Metadata(name=name, namespace="shop", uid=uid, resource_version=version), PodSpec(node_name=node))


async def send(
    tables: StoredTables, value: Pod | None, term: int | str | None = None, *, uid: str = "u1", at: float = 1.0
) -> None:
    """A record of the pod, or (None) the tombstone of this uid."""
    record = outgoing_of(PODS, DB, value, uid)
    await tables.take(PODS, DB, record.value, term=term, id_=record.event_id, at=at)


def node_of(tables: StoredTables) -> str | None:
    """Where the picture shows the pod; None where it shows none. The row must say the same."""
    row = tables.row(PODS, DB)
    shown = tables.sites.state(SITE).rows(PODS).get("shop/db-0")
    assert (None if row is None else msgspec.json.decode(row, type=Pod)) == shown
    return None if shown is None else str(shown.spec.node_name)


@pytest.mark.parametrize(
    ("held", "late", "shown", "why"),
    [
        pytest.param((pod("7", node="n2"), 2), (pod("3", node="n1"), 1), "n2", "term", id="an older state"),
        pytest.param(
            (pod("7", node="n2"), 2), (pod("8", node="n1"), 1), "n2", "term", id="a newer one of a former owner"
        ),
        pytest.param((pod("7", node="n2"), None), (pod("3", node="n1"), None), "n2", "version", id="without leases"),
        pytest.param((pod("7", node="n2"), 1), (pod("3", node="n1"), 1), "n2", "version", id="of one owner, restarted"),
        pytest.param((pod("10", node="n2"), None), (pod("9", node="n1"), None), "n2", "version", id="as numbers"),
        pytest.param(
            (pod("7", uid="u2", node="n2"), None),
            (pod("3", node="n1"), None),
            "n2",
            "version",
            id="of the pod before it",
        ),
        pytest.param((pod("7", uid="u2", node="n2"), 2), (None, 1), "n2", "term", id="a tombstone of a former owner"),
        pytest.param((pod("7", uid="u2", node="n2"), None), (None, None), "n2", "uid", id="the former pod's tombstone"),
        pytest.param((pod("7", node="n2"), None), (pod("7", node="n1"), None), "n1", None, id="of the same version"),
        pytest.param((pod("x7", node="n2"), None), (pod("3", node="n1"), None), "n1", None, id="versions of no order"),
        pytest.param(
            (pod("7", node="n2"), None), (pod(ENDLESS, node="n1"), None), "n1", None, id="a version without an end"
        ),
        pytest.param(
            (pod(ENDLESS, node="n2"), None), (pod("8", node="n1"), None), "n1", None, id="after one without an end"
        ),
        pytest.param((pod("7", node="n2"), 1), (pod("8", node="n1"), None), "n1", None, id="of no term"),
        pytest.param((pod("7", node="n2"), 1), (pod("8", node="n1"), ENDLESS), "n1", None, id="a term without an end"),
        pytest.param((pod("7", node="n2"), 1), (None, 1), None, None, id="its own tombstone"),
    ],
)
async def test_what_a_former_owner_sent_does_not_undo_what_the_new_one_has_said(
    tmp_path: Path, held: tuple[Pod, int | None], late: tuple[Pod | None, int | str | None], shown: str, why: str | None
) -> None:
    tables = StoredTables(tmp_path, (PODS,))
    await send(tables, *held)
    await send(tables, *late)
    assert node_of(tables) == shown
    assert tables.late == ([("pods", why)] if why else [])


async def test_a_pod_that_the_new_owner_has_deleted_does_not_come_back(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, (PODS,))
    await send(tables, pod("3"), 1)
    await send(tables, None, 2)
    await send(tables, pod("3"), 1)
    assert node_of(tables) is None


@pytest.mark.parametrize("late", [pod("3", node="n1"), None], ids=["an older state", "a tombstone"])
async def test_a_late_record_is_no_record_that_will_do_until_the_right_one_follows(
    tmp_path: Path, late: Pod | None
) -> None:
    tables, right = StoredTables(tmp_path, (PODS,)), pod("7", node="n2")
    await send(tables, right, 2)
    await send(tables, late, 1)
    assert tables.in_topic(PODS, SITE) == {DB: b""}
    assert tables.in_topic(PODS, "other") == {}
    await send(tables, right, 2)
    assert tables.in_topic(PODS, SITE) == {DB: encode(right)}


async def test_the_newest_term_is_known_after_a_restart(tmp_path: Path) -> None:
    before = StoredTables(tmp_path, (PODS,))
    await send(before, pod("7", node="n2"), 2)
    after = await before.restarted()
    await send(after, None, 1)
    assert node_of(after) == "n2"
    assert [key for key, _ in after.rows(PODS)] == [DB.encode()]


async def test_terms_of_one_topic_do_not_concern_another(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, (NODES, PODS))
    await send(tables, pod("7", node="n2"), 2)
    node = encode(Node(Metadata(name="n1")))  # the former owner's, which was read after the new owner's pods
    await tables.take(NODES, object_key(SITE, "node", "n1"), node, term=1)
    assert list(tables.sites.state(SITE).rows(NODES)) == ["n1"]


@pytest.mark.parametrize(("after", "shown"), [(60.0, "n2"), (HOUR, "n1")], ids=["at once", "an hour later"])
async def test_leases_that_begin_anew_are_followed_once_nothing_can_be_late(
    tmp_path: Path, after: float, shown: str
) -> None:
    tables = StoredTables(tmp_path, (PODS,))
    await send(tables, pod("7", node="n2"), 5, at=HOUR)
    await send(tables, pod("8", node="n1"), 1, at=HOUR + after)
    assert node_of(tables) == shown


async def test_a_former_evaluators_finding_is_not_opened_again(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, (), (VIOLATIONS,))
    told: list[object] = []
    tables.watch(VIOLATIONS, lambda site, record: told.append(record))
    when = "2026-01-05T08:00:00.000Z"
    row = msgspec.json.encode(FindingEvent("f", "opened", SITE, "physical", "R", "r", "m", when, when, {}))
    await tables.take(VIOLATIONS, f"{SITE}/f", None, term=2)
    await tables.take(VIOLATIONS, f"{SITE}/f", row, term=1)
    assert (list(tables.rows(VIOLATIONS)), told) == ([], [])


# ---------------------------------------------------------------------------------------------- whatever the order is
class Sent(NamedTuple):
    """A record of one of two pods as an owner sends it; `name` "" is the marker."""

    name: str
    pod: Pod | None
    uid: str
    term: int


@st.composite
def stories(draw: st.DrawFn) -> tuple[dict[str, Pod], list[Sent]]:
    """(the pods as the API server has them at the end, the topic's records): a takeover while the cluster changes."""
    live: dict[str, Pod] = {}
    history: list[tuple[str, Pod | None, str]] = []
    for version in range(1, draw(st.integers(3, 12))):
        name = draw(st.sampled_from(["db-0", "db-1"]))
        before = live.get(name)
        if before is not None and draw(st.booleans()):
            del live[name]
            history.append((name, None, before.metadata.uid))
            continue
        uid = f"uid-{version}" if before is None else before.metadata.uid
        live[name] = pod(str(version), name=name, uid=uid, node=f"n{version}")
        history.append((name, live[name], uid))
    taken_over = draw(st.integers(0, len(history)))
    arrived = draw(st.integers(0, taken_over))
    former = [Sent(*each, term=1) for each in history[:taken_over]]
    shown = {name: value for name, value, _ in history[:arrived] if value is not None}
    shown = {name: value for name, value in shown.items() if last(history[:arrived], name) is not None}
    listed = {name: last(history[:taken_over], name) for name in ("db-0", "db-1")}
    new = [Sent("", None, "", 2)]
    new += [Sent(name, value, "", 2) for name, value in listed.items() if value != shown.get(name)]
    new += [Sent(*each, term=2) for each in history[taken_over:]]
    late, topic = former[arrived:], former[:arrived] + new[:1]
    rest = new[1:]
    while late or rest:
        topic.append((late if late and (not rest or draw(st.booleans())) else rest).pop(0))
    return live, topic


def last(history: list[tuple[str, Pod | None, str]], name: str) -> Pod | None:
    return next((value for of, value, _ in reversed(history) if of == name), None)


@given(stories(), st.integers(0, 20))
@settings(max_examples=500)
def test_the_tables_end_as_the_newest_owner_says_whatever_the_order(
    tmp_path_factory: pytest.TempPathFactory, story: tuple[dict[str, Pod], list[Sent]], restart: int
) -> None:
    live, topic = story
    folder = tmp_path_factory.getbasetemp()

    async def read() -> StoredTables:
        tables = StoredTables(folder, (PODS,))
        for number, sent in enumerate(topic):
            if number == restart:
                tables = await tables.restarted()
            if not sent.name:
                await tables.take(PODS, listed_key(SITE, "kubernetes"), encode(Listed(1, 2)), term=sent.term)
                continue
            key = object_key(SITE, "pod", sent.name, "shop")
            record = outgoing_of(PODS, key, sent.pod, sent.uid)
            await tables.take(PODS, key, record.value, term=sent.term, id_=record.event_id)
        return tables

    tables = asyncio.run(read())
    assert dict(tables.sites.state(SITE).rows(PODS)) == {f"shop/{name}": value for name, value in live.items()}
    rows = {key: value for key, value in tables.rows(PODS) if b"/listed/" not in key}
    assert rows == {object_key(SITE, "pod", name, "shop").encode(): encode(value) for name, value in live.items()}
