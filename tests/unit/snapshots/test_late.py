"""The past says what the tables said then: late records are left out, and none came in the future."""

import time

import msgspec
import pytest
from msgspec import Struct
from support.published import a_finding
from support.sites.remembered import RememberedTopics

from underhost.agents.snapshots.history import SiteHistory
from underhost.schemas.keys import finding_key, listed_key, object_key
from underhost.schemas.kubernetes import Metadata, Pod, PodSpec
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES_TOPICS, PODS, VIOLATIONS, Topic
from underhost.streams.cloudevents import TERM
from underhost.streams.ports import Record

SITE = "prod"
YEAR = 365 * 24 * 60
"""Minutes."""
MINUTE = 60_000
"""Milliseconds."""


def sent(topic: Topic, key: str, value: Struct | None, minutes_ago: float, term: int = 0, uid: str = "") -> Record:
    """A record, timed from the test's own time; `term` is its publisher's, `uid` that of what its tombstone ends."""
    headers = [(TERM, str(term).encode())] if term else []
    headers += [("ce_id", f"{uid}/deleted".encode())] if uid else []
    data = msgspec.json.encode(value) if value is not None else None
    return Record(topic.name, 0, 0, int(-minutes_ago * MINUTE), key.encode(), data, tuple(headers))


def seen(name: str, node: str, minutes_ago: float, *, version: int = 1, term: int = 0) -> Record:
    """A pod on a node at that time."""
    metadata = Metadata(name=name, namespace="shop", uid=f"uid-{name}-{node}", resource_version=str(version))
    value = Pod(metadata, PodSpec(node_name=node))
    return sent(PODS, object_key(SITE, "pod", name, "shop"), value, minutes_ago, term)


def gone(name: str, node: str, minutes_ago: float) -> Record:
    """The tombstone of the pod that was on that node."""
    return sent(PODS, object_key(SITE, "pod", name, "shop"), None, minutes_ago, uid=f"uid-{name}-{node}")


def told(id_: str, state: str, minutes_ago: float, term: int = 0) -> Record:
    """A finding was published."""
    return sent(VIOLATIONS, finding_key(SITE, id_), a_finding(id_, "shop/db-0", state=state), minutes_ago, term)


LISTED_ALL = [sent(topic, listed_key(SITE, "kubernetes"), Listed(1, 0), 55) for topic in KUBERNETES_TOPICS]


async def past_of(*records: Record, budget: int | None = None) -> SiteHistory:
    """The past that these records tell, after a first list 55 minutes ago."""
    topics, now = RememberedTopics(), int(time.time() * 1000)
    topics.add(*(record._replace(timestamp=now + record.timestamp) for record in (*LISTED_ALL, *records)))
    return await SiteHistory.read(topics, SITE, budget=budget)  # type: ignore[arg-type]


def where(past: SiteHistory, minutes_ago: float) -> dict[str, str]:
    """The node of each pod then."""
    snapshot = past.at(int((time.time() - minutes_ago * 60) * 1000))
    return {name: pod.spec.node_name for name, pod in snapshot.pods.items()}


UNREADABLE = seen("db-0", "n1", 10)._replace(value=b"{")
LATE = [
    pytest.param(
        [seen("db-0", "n2", 30, version=7), seen("db-0", "n1", 10, version=5)], {"shop/db-0": "n2"}, id="an older state"
    ),
    pytest.param(
        [seen("db-0", "n1", 30), seen("db-0", "n2", 20, version=2), gone("db-0", "n1", 10)],
        {"shop/db-0": "n2"},
        id="the tombstone of the pod before",
    ),
    pytest.param([seen("db-0", "n1", 30), gone("db-0", "n1", 10)], {}, id="its own tombstone"),
    pytest.param(
        [seen("db-0", "n2", 30, term=2), seen("db-1", "n1", 28, term=1), seen("db-0", "n1", 27, version=2, term=1)],
        {"shop/db-0": "n2"},
        id="a former owner's",
    ),
    pytest.param(
        [seen("db-0", "n2", 30, term=2), seen("db-0", "n1", 10, version=2, term=1)],
        {"shop/db-0": "n1"},
        id="of leases that have begun anew",
    ),
    pytest.param([seen("db-0", "n2", 30), UNREADABLE], {"shop/db-0": "n2"}, id="a dead letter"),
]


@pytest.mark.parametrize("budget", [None, 9_000])
@pytest.mark.parametrize(("records", "expected"), LATE)
async def test_the_past_leaves_out_what_the_tables_left_out(
    records: list[Record], expected: dict[str, str], budget: int | None
) -> None:
    more = [seen("web-0", f"n{number}", 5, version=number + 1) for number in range(30)]
    past = await past_of(*records, *more, budget=budget)
    found = where(past, 0)
    is_thinned = past.begins > time.time() * 1000 - 50 * MINUTE
    assert (is_thinned, found.pop("shop/web-0")) == (budget is not None, "n29")
    assert found == expected


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param([told("f1", "resolved", 10)], [], id="its end"),
        pytest.param([told("f1", "resolved", 10)._replace(value=None)], [], id="its tombstone"),
        pytest.param([told("f1", "resolved", 10)._replace(value=b"{")], ["f1"], id="a dead letter"),
        pytest.param([told("f2", "opened", 29, 2), told("f1", "resolved", 28, 1)], ["f1", "f2"], id="a former owner's"),
    ],
)
async def test_findings_of_the_past_are_those_that_the_tables_held(later: list[Record], expected: list[str]) -> None:
    past = await past_of(told("f1", "opened", 30, 1), *later)
    assert sorted(past.published(int(time.time() * 1000))) == expected


async def test_a_record_of_the_future_counts_from_the_next_one_that_is_none_of_it() -> None:
    past = await past_of(
        seen("db-0", "n1", 30), seen("db-0", "n2", -YEAR, version=2), seen("web-0", "n3", 10), seen("web-1", "n3", 5)
    )
    assert [where(past, minutes) for minutes in (20, 8, 0)] == [
        {"shop/db-0": "n1"},
        {"shop/db-0": "n2", "shop/web-0": "n3"},
        {"shop/db-0": "n2", "shop/web-0": "n3", "shop/web-1": "n3"},
    ]


async def test_the_past_of_a_record_of_the_future_that_is_the_last_one_ends_now() -> None:
    past = await past_of(seen("db-0", "n1", 30), seen("db-0", "n2", -YEAR, version=2))
    assert past.ends <= time.time() * 1000
    assert [where(past, minutes) for minutes in (20, 0)] == [{"shop/db-0": "n1"}, {"shop/db-0": "n2"}]


async def test_a_finding_of_the_future_is_open_from_the_next_one_on() -> None:
    past = await past_of(told("f1", "opened", -YEAR), told("f2", "opened", 10), told("f1", "resolved", 5))
    now = time.time()
    assert [sorted(past.published(int((now - minutes * 60) * 1000))) for minutes in (20, 8, 2)] == [
        [],
        ["f1", "f2"],
        ["f2"],
    ]


async def test_a_term_that_began_in_the_future_ends_as_the_tables_ended_it() -> None:
    """A Lease was deleted: another owner begins with a smaller term, ten minutes after the last one began."""
    past = await past_of(
        seen("web-0", "n3", 40, term=1),
        seen("db-0", "n1", -YEAR, term=2),
        seen("db-0", "n2", 10, version=2, term=1),
    )
    assert where(past, 0) == {"shop/db-0": "n2", "shop/web-0": "n3"}
