"""The page's picture where another worker decides: made from records alone, whole before it is shown."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager

import msgspec
import pytest

from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.observer import Pictures, TopicObserver
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.keys import finding_key, listed_key, object_key
from underhost.schemas.kubernetes import Metadata, Node, Pod, PodSpec, encode
from underhost.schemas.records import FindingEvent, Listed, NodeHost
from underhost.schemas.topics import KUBERNETES_TOPICS, NODE_HOSTS, NODES, PODS, VIOLATIONS, VSPHERE_TOPICS, Topic
from underhost.streams.cloudevents import TERM
from underhost.streams.derived import node_key
from underhost.streams.partition import partition_of
from underhost.streams.ports import Record
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

SITE = "prod"
HERE = partition_of(SITE, 4)
SETTINGS = Settings(site=SITE, kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1", partitions=4))
VSPHERE = SETTINGS.model_copy(update={"vsphere": VSphereSettings(simulated="of the test")})


def record(topic: Topic, key: str, value: bytes | None, *, partition: int = HERE, offset: int = 0) -> Record:
    return Record(topic.name, partition, offset, 1_767_600_000_000, key.encode(), value, ())


def node(name: str) -> Record:
    return record(NODES, object_key(SITE, "node", name), encode(Node(Metadata(name=name, uid=name))))


def pod(name: str, on: str) -> Record:
    value = Pod(Metadata(name=name, namespace="shop", uid=name), PodSpec(node_name=on))
    return record(PODS, object_key(SITE, "pod", name, "shop"), encode(value))


def on_host(name: str, host: str) -> Record:
    row = NodeHost(name, f"vm-{name}", host, f"esx-{host}", "name")
    return record(NODE_HOSTS, node_key(SITE, name), msgspec.json.encode(row))


def finding(id_: str, state: str = "opened") -> Record:
    when = "2026-01-05T08:00:00.000Z"
    event = FindingEvent(id_, state, SITE, "physical", "PhysicalHost", "r", "m", when, when, {}, "shop/db-0")
    return record(VIOLATIONS, finding_key(SITE, id_), msgspec.json.encode(event))


def listed(source: str, topics: Iterable[Topic], **marker: str) -> list[Record]:
    value = encode(Listed(1, 0, **marker))  # type: ignore[arg-type]
    return [record(topic, listed_key(SITE, source), value) for topic in topics]


KUBERNETES = listed("kubernetes", KUBERNETES_TOPICS)
BEGUN = [node("n1"), pod("db-0", "n1"), on_host("n1", "h1"), finding("f1"), *KUBERNETES]


def pictures(*records: Record, settings: Settings = SETTINGS) -> Pictures:
    made = Pictures(settings)
    for each in records:
        made.apply(each)
    return made


def shown(decided: Decisions) -> tuple[list[str], dict[str, str], list[str]]:
    """Pods, the host of each node, ids of open findings."""
    hosts = {name: row.host for name, row in decided.snapshot.node_hosts.items()}
    return sorted(decided.snapshot.pods), hosts, sorted(decided.findings.open if decided.findings else [])


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param([], (["shop/db-0"], {"n1": "h1"}, ["f1"]), id="as it was read"),
        pytest.param([on_host("n1", "h2")], (["shop/db-0"], {"n1": "h2"}, ["f1"]), id="a VM moves"),
        pytest.param([finding("f1", "resolved")], (["shop/db-0"], {"n1": "h1"}, []), id="resolved"),
        pytest.param(
            [record(VIOLATIONS, finding_key(SITE, "f1"), None)], (["shop/db-0"], {"n1": "h1"}, []), id="a tombstone"
        ),
        pytest.param(
            [record(PODS, object_key(SITE, "pod", "db-0", "shop"), None)], ([], {"n1": "h1"}, ["f1"]), id="a pod goes"
        ),
        pytest.param(
            [record(NODES, object_key(SITE, "node", "n1"), None)],
            (["shop/db-0"], {}, ["f1"]),
            id="a node goes before its host is withdrawn",
        ),
        pytest.param(
            [record(NODES, f"{SITE}/node//n2", b"{"), record(VIOLATIONS, "", b"{"), record(NODES, "x", b"{}")],
            (["shop/db-0"], {"n1": "h1"}, ["f1"]),
            id="what cannot be read is left out",
        ),
        pytest.param(
            [record(VIOLATIONS, finding_key(SITE, "f1"), None, partition=(HERE + 1) % 4)],
            (["shop/db-0"], {"n1": "h1"}, ["f1"]),
            id="a record of the site in a partition that is not its own counts nowhere",
        ),
    ],
)
def test_the_picture_is_what_the_records_say(later: list[Record], expected: object) -> None:
    made = pictures(*BEGUN, *later)
    assert made.sites.unready(SITE) is None
    assert shown(made.decisions(SITE)) == expected


def test_a_site_is_not_shown_before_every_source_that_it_has_is_listed() -> None:
    made = pictures(*BEGUN, settings=VSPHERE)
    assert made.sites.unready(SITE) == "vsphere has not listed vms"
    for each in listed("vsphere", VSPHERE_TOPICS):
        made.apply(each)
    assert made.sites.unready(SITE) is None
    assert made.decisions(SITE).snapshot.vsphere


def test_a_site_not_configured_here_has_a_vsphere_side_once_it_shows_one() -> None:
    made = pictures(*BEGUN, *listed("vsphere", VSPHERE_TOPICS)[:1])
    assert made.sites.unready(SITE) == "vsphere has not listed hosts"


def of_term(term: int, sent: Record) -> Record:
    """The record, sent by the owner of this term."""
    return sent._replace(headers=(*sent.headers, (TERM, str(term).encode())))


def deleted(uid: str) -> Record:
    """The tombstone of db-0 when it had this uid."""
    gone = record(PODS, object_key(SITE, "pod", "db-0", "shop"), None)
    return gone._replace(headers=(("ce_id", f"{uid}/deleted".encode()),))


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param([deleted("db-0")], ([], {"n1": "h1"}, ["f1"]), id="its own tombstone"),
        pytest.param([deleted("before")], (["shop/db-0"], {"n1": "h1"}, ["f1"]), id="the former pod's tombstone"),
        pytest.param(
            [of_term(2, pod("db-1", "n1")), of_term(1, deleted("db-0")), of_term(1, pod("db-2", "n1"))],
            (["shop/db-0", "shop/db-1"], {"n1": "h1"}, ["f1"]),
            id="objects",
        ),
        pytest.param(
            [of_term(2, on_host("n1", "h2")), of_term(1, on_host("n1", "h1"))],
            (["shop/db-0"], {"n1": "h2"}, ["f1"]),
            id="where a VM was before",
        ),
        pytest.param(
            [of_term(2, finding("f1", "resolved")), of_term(1, finding("f1"))],
            (["shop/db-0"], {"n1": "h1"}, []),
            id="a finding that has ended",
        ),
        pytest.param(
            [of_term(2, node("n2")), of_term(1, pod("db-1", "n1"))],
            (["shop/db-0", "shop/db-1"], {"n1": "h1"}, ["f1"]),
            id="the term of one topic tells nothing of another's",
        ),
    ],
)
def test_what_a_former_owner_sent_changes_the_picture_as_little_as_the_tables(
    later: list[Record], expected: object
) -> None:
    assert shown(pictures(*BEGUN, *later).decisions(SITE)) == expected


class Topics:
    """A TopicReader: what is put there comes, `caught_up` is said between; an exception is raised.

    Attributes:
        away: what `check` raises, None while all is well. checked: how often it was asked.
    """

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Record | str | Exception] = asyncio.Queue()
        self.away: Exception | None = None
        self.checked = 0

    async def follow(
        self, topics: Iterable[Topic], *, from_beginning: bool, caught_up: asyncio.Event
    ) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        assert from_beginning
        while True:
            each = await self.queue.get()
            if isinstance(each, Exception):
                raise each
            if isinstance(each, str):
                caught_up.set()
            else:
                yield each

    async def check(self) -> None:
        """See `ports.TopicReader`."""
        self.checked += 1
        if self.away is not None:
            raise self.away


@asynccontextmanager
async def looking(latest: LatestDecisions, topics: Topics, *, at_once: bool = True) -> AsyncIterator[TopicObserver]:
    observer = TopicObserver(SETTINGS, latest, topics, at_once=at_once)  # type: ignore[arg-type]
    async with aclosing(observer.running(None)) as life:  # type: ignore[type-var]
        await anext(life)
        yield observer
        await anext(life, None)


async def put(latest: LatestDecisions) -> str:
    """The site that is shown next."""
    news: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    deaf = latest.listen(lambda site, _: news.done() or news.set_result(site))
    async with asyncio.timeout(20):
        site = await news
    deaf()
    return site


async def test_nothing_is_shown_before_all_that_is_there_is_read_and_then_every_change() -> None:
    latest, topics = LatestDecisions(), Topics()
    async with looking(latest, topics) as observer:
        assert observer.unready() == {"worker": "it reads what the topics hold"}
        for each in BEGUN:
            topics.queue.put_nowait(each)
        while not topics.queue.empty():  # noqa: ASYNC110 (taken in, all the same)
            await asyncio.sleep(0)
        assert latest.sites() == []
        topics.queue.put_nowait("caught up")
        assert await put(latest) == SITE
        assert (observer.unready(), observer.reasons(), observer.stopped()) == ({}, {}, {})
        topics.queue.put_nowait(pod("db-1", "n1"))
        await put(latest)
        newest = latest.of(SITE)
        assert newest is not None
        assert shown(newest)[0] == ["shop/db-0", "shop/db-1"]


async def test_beside_other_work_it_begins_with_the_first_look_and_holds_nothing_up() -> None:
    latest, topics = LatestDecisions(), Topics()
    for each in (*BEGUN, "caught up"):
        topics.queue.put_nowait(each)
    async with looking(latest, topics, at_once=False) as observer:
        for _ in range(100):
            await asyncio.sleep(0)
        assert (topics.queue.qsize(), observer.unready()) == (len(BEGUN) + 1, {})
        observer.look()
        assert await put(latest) == SITE


async def test_a_fault_is_said_while_the_last_picture_stays() -> None:
    latest, topics = LatestDecisions(), Topics()
    async with looking(latest, topics) as observer:
        for each in (*BEGUN, "caught up"):
            topics.queue.put_nowait(each)
        await put(latest)
        topics.queue.put_nowait(Unreachable("Kafka at b:9092 does not answer"))
        while not observer.unready():  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0)
        again = "they are read from the beginning again after a fault"
        assert observer.unready() == observer.reasons() == {"topics": f"{again}: Kafka at b:9092 does not answer"}
        assert latest.sites() == [SITE]


async def said(observer: TopicObserver, expected: dict[str, str]) -> None:
    """Wait until the observer, which tells nobody, gives these reasons, and that it is not ready for them."""
    try:
        async with asyncio.timeout(20):
            while observer.reasons() != expected or observer.unready() != expected:  # noqa: ASYNC110
                await asyncio.sleep(0)
    except TimeoutError:
        assert (observer.reasons(), observer.unready()) == (expected, expected)


async def asked_twice(topics: Topics) -> None:
    """Wait until Kafka has been asked twice more whether it is there."""
    before = topics.checked
    async with asyncio.timeout(20):
        while topics.checked < before + 2:  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr("underhost.agents.pipeline.observer.AGAIN", 0.001)


@asynccontextmanager
async def showing() -> AsyncIterator[tuple[TopicObserver, LatestDecisions, Topics]]:
    """An observer that shows the site."""
    latest, topics = LatestDecisions(), Topics()
    async with looking(latest, topics) as observer:
        for each in (*BEGUN, "caught up"):
            topics.queue.put_nowait(each)
        await put(latest)
        yield observer, latest, topics


STILL = {"page": "it stands still: ZeroDivisionError: division by zero"}
AWAY = Unreachable("Kafka at b:9092 does not answer")
NO_PASSWORD = InputError("kafka.sasl.passwordFile: /run/password: empty")


@pytest.mark.usefixtures("soon")
async def test_a_page_that_stands_still_says_so_until_it_shows_what_is_there_again() -> None:
    async with showing() as (observer, latest, topics):
        deaf = latest.listen(lambda site, decisions: 1 / 0)  # type: ignore[arg-type, return-value]
        topics.queue.put_nowait(pod("db-1", "n1"))
        await said(observer, STILL)
        deaf()
        await asked_twice(topics)
        assert observer.reasons() == observer.unready() == STILL, "that Kafka is there does not make it move"
        for each in (AWAY, *BEGUN, pod("db-1", "n1"), "caught up"):
            topics.queue.put_nowait(each)
        await put(latest)
        assert observer.reasons() == observer.unready() == {}


@pytest.mark.usefixtures("soon")
async def test_a_page_that_reads_the_topics_anew_says_so_until_it_has_read_them() -> None:
    async with showing() as (observer, latest, topics):
        topics.queue.put_nowait(AWAY)
        expected = {"topics": "they are read from the beginning again after a fault: Kafka at b:9092 does not answer"}
        await said(observer, expected)
        await asked_twice(topics)
        assert observer.reasons() == observer.unready() == expected
        for each in (*BEGUN, "caught up"):
            topics.queue.put_nowait(each)
        await put(latest)
        assert observer.reasons() == observer.unready() == {}


@pytest.mark.usefixtures("soon")
async def test_that_kafka_is_away_is_said_until_it_is_there_again() -> None:
    async with showing() as (observer, _, topics):
        topics.away = AWAY
        await said(observer, {"kafka": "Kafka at b:9092 does not answer"})
        topics.away = NO_PASSWORD
        await said(observer, {"kafka": "kafka.sasl.passwordFile: /run/password: empty"})
        topics.away = None
        await said(observer, {})


@pytest.mark.usefixtures("soon")
async def test_a_password_file_that_is_empty_for_a_while_does_not_end_the_page() -> None:
    async with showing() as (observer, latest, topics):
        topics.queue.put_nowait(NO_PASSWORD)
        again = "they are read from the beginning again after a fault"
        await said(observer, {"topics": f"{again}: kafka.sasl.passwordFile: /run/password: empty"})
        for each in (*BEGUN, pod("db-1", "n1"), "caught up"):
            topics.queue.put_nowait(each)
        await put(latest)
        newest = latest.of(SITE)
        assert newest is not None
        assert shown(newest)[0] == ["shop/db-0", "shop/db-1"]
        assert observer.reasons() == {}


@pytest.mark.usefixtures("soon")
async def test_a_page_that_a_bug_has_ended_says_so_for_good() -> None:
    async with showing() as (observer, _, topics):
        topics.queue.put_nowait(ZeroDivisionError("division by zero"))
        followed = {"topics": "they are not followed any more: ZeroDivisionError: division by zero"}
        await said(observer, followed)
        topics.away = ZeroDivisionError("division by zero")
        asked = "nobody asks any more whether it is there: ZeroDivisionError: division by zero"
        await said(observer, {**followed, "kafka": asked})


async def test_what_a_watcher_does_not_believe_is_said_as_by_the_worker_that_decides() -> None:
    latest, topics = LatestDecisions(), Topics()
    async with looking(latest, topics) as observer:
        for each in (*BEGUN, *listed("kubernetes", KUBERNETES_TOPICS, doubt="pods: 9 of 10 are missing"), "caught up"):
            topics.queue.put_nowait(each)
        await put(latest)
        assert observer.stopped() == {f"site {SITE}": "writes stop: pods: 9 of 10 are missing"}
