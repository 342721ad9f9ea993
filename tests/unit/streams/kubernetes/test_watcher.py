"""The watcher of a Kubernetes cluster, over a small API server on loopback that misbehaves as asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.build import a_node, a_pod
from support.fakes.kube import FakeKube, Fault
from support.fakes.topics import FakeTopics
from support.watching import following

from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.kubernetes import Node, decode
from underhost.schemas.records import Listed
from underhost.schemas.topics import (
    BUDGETS,
    DEAD_LETTERS,
    KUBERNETES_TOPICS,
    NAMESPACES,
    NODES,
    PODS,
    WORKLOADS,
    Topic,
)
from underhost.streams.kubernetes import watcher
from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.kubernetes.watcher import KubernetesSource
from underhost.streams.ports import Outgoing
from underhost.streams.settings.clusters import KubernetesSettings
from underhost.streams.timing import Timing
from underhost.streams.watching.records import marker_of, outgoing_of


class Naps:
    """Sleeps that are noted and pass at once."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def a_cluster() -> FakeKube:
    """Two nodes and two pods, at the same resourceVersions each time."""
    server = FakeKube()
    server.seed("namespaces", {"metadata": {"name": "shop"}})
    server.seed("nodes", a_node("n1"), a_node("n2"))
    server.seed("pods", a_pod("web-0").on("n1"), a_pod("web-1"))
    return server


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with a_cluster().serving() as server:
        yield server


@pytest.fixture
def topics() -> FakeTopics:
    return FakeTopics()


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def timing(naps: Naps) -> Timing:
    return Timing(sleep=naps, inactivity=5.0)


@asynccontextmanager
async def watching(settings: KubernetesSettings, topics: FakeTopics, timing: Timing) -> AsyncIterator[KubernetesSource]:
    """As `following`, a source of these settings."""
    source = KubernetesSource("prod", settings, topics, topics, timing=timing)
    async with following(source):
        yield source


async def soon(condition: Callable[[], object]) -> None:
    """Wait for what no event tells of."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_lists_every_kind_then_writes_a_marker_to_each_topic(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("deployments", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3}})
    kube.seed("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"minAvailable": 2}})
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        assert topics.keys(NODES) == ["prod/node//n1", "prod/node//n2"]
        assert topics.keys(PODS) == ["prod/pod/shop/web-0", "prod/pod/shop/web-1"]
        assert topics.keys(NAMESPACES) == ["prod/namespace//shop"]
        assert topics.keys(BUDGETS) == ["prod/poddisruptionbudget/shop/web"]
        deployment = json.loads(topics.live[WORKLOADS.name]["prod/deployment/shop/web"])
        assert (deployment["kind"], deployment["apiVersion"]) == ("Deployment", "apps/v1")
        assert deployment["spec"] == {"replicas": 3}
    markers = topics.records[-len(KUBERNETES_TOPICS) :]
    assert [(record.topic, record.key) for record in markers] == [
        (topic, "prod/listed/kubernetes") for topic in KUBERNETES_TOPICS
    ]
    counts = {r.topic.short: json.loads(r.value or b"") for r in markers}
    assert counts["pods"].pop("seen") >= source.epoch
    assert counts["pods"] == {"epoch": source.epoch, "count": 2}


async def test_a_change_is_published_with_its_uid_and_version_as_event_id(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        moved = await kube.put("pods", a_pod("web-1").on("n2"))
        await topics.until(lambda t: t.records[-1].key == "prod/pod/shop/web-1")
    assert topics.records[-1].event_id == f"uid-web-1/{moved['metadata']['resourceVersion']}"
    assert json.loads(topics.records[-1].value or b"")["spec"]["nodeName"] == "n2"


async def test_a_heartbeat_publishes_nothing(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        before = len(topics.records)
        beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}
        await kube.put("nodes", a_node("n1").put("status", "conditions", value=[beat]))  # the condition itself is news
        later = {**beat, "lastHeartbeatTime": "2026-01-01T00:00:20Z"}
        await kube.put("nodes", a_node("n1").put("status", "conditions", value=[later]))
        await kube.put("nodes", a_node("n3"))
        await topics.until(lambda t: t.records[-1].key == "prod/node//n3")
        assert [record.key for record in topics.records[before:]] == ["prod/node//n1", "prod/node//n3"]


async def test_an_object_that_a_watch_only_says_more_fully_than_the_list_publishes_nothing(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    budget = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"minAvailable": 2}}
    replicas = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2}}
    kube.seed("poddisruptionbudgets", budget)
    kube.seed("replicasets", replicas)
    async with watching(kube.settings(tmp_path), topics, timing):
        before = len(topics.records)
        for plural, obj in (("poddisruptionbudgets", budget), ("replicasets", replicas)):
            await kube.put(plural, obj)  # only its resourceVersion changes
            await kube.put(plural, {**obj, "metadata": {"name": "next", "namespace": "shop"}})
        await topics.until(lambda t: len(t.records) >= before + 2)
    assert {record.key for record in topics.records[before:]} == {
        "prod/poddisruptionbudget/shop/next",
        "prod/replicaset/shop/next",
    }


async def test_a_deleted_object_becomes_a_tombstone(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        await kube.delete("pods", "web-0", "shop")
        await topics.until(lambda t: t.records[-1].value is None)
    assert topics.records[-1].key == "prod/pod/shop/web-0"
    assert topics.records[-1].event_id == "uid-web-0/deleted"


def asked_for_pods(kube: FakeKube) -> list[tuple[str, str, str]]:
    """How the pods were listed: (verb, limit, continue) of each request before the first watch."""
    asked = [
        (request.verb, request.query.get("limit", ""), request.query.get("continue", ""))
        for request in kube.requests
        if request.plural == "pods"
    ]
    return asked[: [verb for verb, *_ in asked].index("watch")]


async def test_a_long_list_is_asked_for_at_once_and_is_no_older_than_its_first_page(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("pods", *(a_pod(f"p{number:04}") for number in range(2400)))
    async with watching(kube.settings(tmp_path), topics, timing):
        assert len(topics.keys(PODS)) == 2402
    assert asked_for_pods(kube) == [("list", "1000", ""), ("at once", "", "")]
    [at_once] = [request.query for request in kube.requests if request.verb == "at once"]
    assert at_once == {"resourceVersion": "2505", "resourceVersionMatch": "NotOlderThan"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            Fault("at once", "pods", status=504, message="Too large resource version"), id="has no such cache"
        ),
        pytest.param(Fault("at once", "pods", status=429, headers={"Retry-After": "1"}), id="throttles it"),
        pytest.param(Fault("at once", "pods", drop=100_000), id="ends it as it takes too long"),
        pytest.param(Fault("at once", "pods", status=400), id="does not know how"),
        pytest.param(Fault("at once", "pods", part=1500), id="gives a part of it all the same"),
    ],
)
async def test_a_long_list_is_read_page_by_page_where_the_server(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path, fault: Fault
) -> None:
    kube.seed("pods", *(a_pod(f"p{number:04}") for number in range(2400)))
    kube.faults = [fault]
    async with watching(kube.settings(tmp_path), topics, timing):
        assert len(topics.keys(PODS)) == 2402
    assert asked_for_pods(kube) == [
        ("list", "1000", ""),
        ("at once", "", ""),
        ("continue", "1000", "1000"),
        ("continue", "1000", "2000"),
    ]


async def test_an_expired_page_begins_the_list_anew_without_pages(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("pods", *(a_pod(f"p{number:04}") for number in range(1100)))
    kube.faults = [Fault("at once", "pods", status=504), Fault("continue", "pods", status=410)]
    async with watching(kube.settings(tmp_path), topics, timing):
        assert len(topics.keys(PODS)) == 1102
    assert asked_for_pods(kube)[2:] == [("continue", "1000", "1000"), ("list", "", "")]


async def test_a_page_that_is_throttled_is_asked_for_again_after_the_time_the_server_says(
    kube: FakeKube, topics: FakeTopics, timing: Timing, naps: Naps, tmp_path: Path
) -> None:
    kube.seed("pods", *(a_pod(f"p{number:04}") for number in range(1100)))
    kube.faults = [
        Fault("at once", "pods", status=504),
        Fault("continue", "pods", status=429, headers={"Retry-After": "7"}),
    ]
    async with watching(kube.settings(tmp_path), topics, timing):
        assert len(topics.keys(PODS)) == 1102
    assert 7.0 in naps.taken
    assert kube.count("list", "pods") == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault("watch", "pods", status=410), id="as the answer to a watch"),
        pytest.param(Fault("watch", "pods", error=410), id="as an event within a watch"),
    ],
)
async def test_an_expired_position_leads_to_a_new_list_that_finds_every_delete_of_the_gap(
    fault: Fault, kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("pods", *(a_pod(f"p{number:03}") for number in range(150)))
    # The first watch ends at once; what happens before the second one is seen by nobody but the list.
    kube.faults = [Fault("watch", "pods", drop=0), fault]
    gap = asyncio.Event()

    async def nap(seconds: float) -> None:
        await (gap.wait() if kube.count("watch", "pods") == 1 else asyncio.sleep(0))

    async with watching(kube.settings(tmp_path), topics, Timing(sleep=nap)) as source:
        for number in range(100):
            await kube.delete("pods", f"p{number:03}", "shop")
        await kube.put("pods", a_pod("born-in-the-gap"))
        gap.set()
        await topics.until(lambda t: "prod/pod/shop/born-in-the-gap" in t.keys(PODS))
        await topics.until(lambda t: len(t.keys(PODS)) == 53)
        assert source.relists["pods"] == 1
    tombstones = [record.key for record in topics.records if record.value is None]
    assert tombstones == [f"prod/pod/shop/p{number:03}" for number in range(100)]


async def test_throttling_waits_as_told_and_never_lists_again(
    kube: FakeKube, topics: FakeTopics, timing: Timing, naps: Naps, tmp_path: Path
) -> None:
    kube.faults = [
        Fault("watch", "pods", drop=0),
        *(Fault("watch", "pods", status=429, headers={"Retry-After": "5"}) for _ in range(4)),
        Fault("watch", "pods", error=429),
    ]
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        await kube.put("pods", a_pod("late"))
        await topics.until(lambda t: "prod/pod/shop/late" in t.keys(PODS))
        assert source.relists["pods"] == 0
    assert kube.count("list", "pods") == 1
    assert len([nap for nap in naps.taken if nap >= 5.0]) >= 4


async def test_a_thousand_dropped_connections_lose_no_change(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.faults = [Fault("watch", "pods", drop=1) for _ in range(1000)]
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        for number in range(1000):
            await kube.put("pods", a_pod(f"p{number:03}"))
            if number % 5 == 4:
                await kube.delete("pods", f"p{number:03}", "shop")
        expected = sorted(f"prod/pod/shop/p{number:03}" for number in range(1000) if number % 5 != 4)
        await topics.until(lambda t: t.keys(PODS) == [*expected, "prod/pod/shop/web-0", "prod/pod/shop/web-1"])
        assert kube.faults == []
        assert source.relists["pods"] == 0


async def test_a_stream_that_falls_silent_is_replaced(
    kube: FakeKube, topics: FakeTopics, naps: Naps, tmp_path: Path
) -> None:
    kube.faults = [Fault("watch", "pods", silent=True)]
    async with watching(kube.settings(tmp_path), topics, Timing(sleep=naps, inactivity=0.2)):
        await kube.put("pods", a_pod("unheard"))
        await topics.until(lambda t: "prod/pod/shop/unheard" in t.keys(PODS))
    assert kube.count("list", "pods") == 1


async def test_a_bookmark_moves_the_position_that_a_watch_resumes_from(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.faults = [Fault("watch", "pods", drop=1)]
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        await kube.asked("watch", "pods")
        await kube.put("nodes", a_node("n9"))  # pods' version moves on without any event of a pod
        await kube.bookmark("pods")  # and the connection is cut after this one event
        kube.compact()  # the version that pods were listed at is too old now, the bookmark's is not
        await kube.put("pods", a_pod("after"))
        await topics.until(lambda t: "prod/pod/shop/after" in t.keys(PODS))
        assert source.relists["pods"] == 0


async def test_watches_ask_the_server_to_end_them_after_five_to_ten_minutes_at_random(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        for plural in kube.served:
            await kube.asked("watch", plural)
    asked = [int(request.query["timeoutSeconds"]) for request in kube.requests if request.verb == "watch"]
    assert all(300 <= seconds <= 600 for seconds in asked)
    assert len(set(asked)) > 1
    assert all(request.query["allowWatchBookmarks"] == "true" for request in kube.requests if request.verb == "watch")


async def test_an_object_that_cannot_be_read_goes_to_dead_letters_and_the_stream_goes_on(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    broken = {"type": "ADDED", "object": {"metadata": {"name": "odd", "namespace": "shop", "resourceVersion": "1"}}}
    broken["object"]["spec"] = {"nodeName": 7}  # type: ignore[index]
    lines = (json.dumps(broken).encode(), b'{"type": "ADDED", "obj', b'{"type": "ADDED", "object": []}')
    kube.faults = [Fault("watch", "pods", lines=lines)]
    async with watching(kube.settings(tmp_path), topics, timing):
        await kube.put("pods", a_pod("good"))
        await topics.until(lambda t: "prod/pod/shop/good" in t.keys(PODS))
    letters = [record for record in topics.records if record.topic is DEAD_LETTERS]
    assert [(letter.key, letter.headers["stage"]) for letter in letters] == [
        ("prod/pod/shop/odd", b"watch"),
        ("prod/pod//?", b"watch"),
        ("prod/pod//?", b"watch"),
    ]
    assert letters[0].original == json.dumps(broken["object"]).encode()
    assert b"nodeName" not in (letters[0].value or b"")
    assert b"nodeName" in letters[0].headers["error"]
    assert letters[1].original == lines[1]


async def test_a_page_in_the_place_of_a_watch_is_no_change_and_nothing_is_heard_by_it(
    kube: FakeKube, topics: FakeTopics, naps: Naps, tmp_path: Path
) -> None:
    kube.faults = [Fault("watch", "pods", page="<html>\n<p>Sign in</p>\n")] * 4
    async with watching(kube.settings(tmp_path), topics, Timing(sleep=naps)):
        await kube.asked("watch", "pods", 5)
        await kube.put("pods", a_pod("good"))
        await topics.until(lambda t: "prod/pod/shop/good" in t.keys(PODS))
    assert [record.key for record in topics.records if record.topic is DEAD_LETTERS] == []
    assert any(nap >= 0.8 for nap in naps.taken)  # it is no hot loop


async def test_an_unreadable_object_of_the_first_list_keeps_what_is_held_of_it(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        pass
    kube.seed("pods", {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"nodeName": 7}})
    async with watching(kube.settings(tmp_path), topics, timing):
        assert topics.keys(PODS) == ["prod/pod/shop/web-0", "prod/pod/shop/web-1"]
    assert [record.key for record in topics.records if record.topic is DEAD_LETTERS] == ["prod/pod/shop/web-0"]


async def test_a_restart_publishes_only_what_changed_meanwhile_and_tombstones_what_went(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("pods", a_pod("web-2"), a_pod("web-3"))
    async with watching(kube.settings(tmp_path), topics, timing):
        before = len(topics.records)
    await kube.delete("pods", "web-3", "shop")
    await kube.put("pods", a_pod("web-1").on("n2"))
    await kube.put("nodes", a_node("n1"))  # only its resourceVersion changes
    async with watching(kube.settings(tmp_path), topics, timing):
        changed = [(record.key, record.value is None) for record in topics.records[before:]]
    assert changed[:-6] == [("prod/pod/shop/web-1", False), ("prod/pod/shop/web-3", True)]
    assert {key for key, _ in changed[-6:]} == {"prod/listed/kubernetes"}


async def test_a_list_older_than_the_topics_is_read_again_before_anything_is_deleted(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        await kube.put("pods", a_pod("web-2").on("n2"))
        await topics.until(lambda t: t.records[-1].key == "prod/pod/shop/web-2")
    before = len(topics.records)
    async with a_cluster().serving() as past:
        source = KubernetesSource("prod", past.settings(tmp_path), topics, topics, timing=timing)
        run = asyncio.create_task(source.run())
        await past.asked("list", "pods", 3)
        assert topics.records[before:] == []
        await past.put("pods", a_pod("web-2").on("n2"))
        await source.ready.wait()
        run.cancel()
        assert [record.key for record in topics.records[before:] if record.value is None] == []


async def test_a_server_that_goes_on_showing_the_past_is_believed_in_the_end(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "FIRST_ANSWER", 0.1)
    async with watching(kube.settings(tmp_path), topics, timing):
        await kube.put("pods", a_pod("web-2").on("n2"))
        await topics.until(lambda t: t.records[-1].key == "prod/pod/shop/web-2")
    async with a_cluster().serving() as past, watching(past.settings(tmp_path), topics, timing):
        assert topics.keys(PODS) == ["prod/pod/shop/web-0", "prod/pod/shop/web-1"]


def doubts_in(records: list[Outgoing]) -> list[str]:
    """What the markers say is not believed."""
    return [decode(record.value or b"", Listed).doubt for record in records if record.key == "prod/listed/kubernetes"]


COLLAPSED = "nodes: 7 of 8 objects of site prod are missing in the new list; not believed"


async def test_a_collapsed_list_at_a_restart_holds_back_deletions_and_nothing_else(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("nodes", *(a_node(f"n{number}") for number in range(3, 9)))
    async with watching(kube.settings(tmp_path), topics, timing):
        before = len(topics.records)
    for number in range(2, 9):
        await kube.delete("nodes", f"n{number}")
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        assert source.shrunk == [COLLAPSED]
        assert doubts_in(topics.records[before:]) == [COLLAPSED] * 6
        await kube.put("pods", a_pod("certain").on("n1"))
        await kube.put("nodes", a_node("n9"))
        await kube.delete("pods", "web-0", "shop")
        await kube.put("nodes", a_node("n2").labels({"zone": "b"}))  # it is there again
        await topics.until(lambda t: b"zone" in t.live[NODES.name]["prod/node//n2"])
        await topics.until(lambda t: "prod/node//n9" in t.keys(NODES))
        await topics.until(lambda t: t.keys(PODS) == ["prod/pod/shop/certain", "prod/pod/shop/web-1"])
        assert topics.keys(NODES) == [f"prod/node//n{number}" for number in range(1, 10)]
        assert (kube.count("list", "nodes"), kube.count("list", "pods")) == (2, 2)  # one a start, and no polling
        assert source.accept() == [COLLAPSED]
        await topics.until(lambda t: doubts_in(t.records)[-6:] == [""] * 6)
        assert topics.keys(NODES) == ["prod/node//n1", "prod/node//n2", "prod/node//n9"]
        assert source.shrunk == []
    gone = [record.key for record in topics.records[before:] if record.value is None]
    assert gone == ["prod/pod/shop/web-0", *(f"prod/node//n{number}" for number in range(3, 9))]


async def test_nothing_that_a_person_accepts_is_deleted_if_it_is_there_all_the_same(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    """Its list was wrong, and its watch has no reason to tell of it."""
    async with watching(kube.settings(tmp_path), topics, timing):
        await topics.publish(*(outgoing_of(NODES, f"prod/node//lost-{number}", node_of(number)) for number in range(4)))
        before = len(topics.records)
    kube.seed("nodes", *(a_node(f"lost-{number}") for number in range(2)))
    kube.hidden = {"lost-0", "lost-1"}
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        kube.hidden = set()
        source.accept()
        await topics.until(lambda t: doubts_in(t.records)[-6:] == [""] * 6)
    assert topics.keys(NODES) == [f"prod/node//{name}" for name in ("lost-0", "lost-1", "n1", "n2")]
    gone = [record.key for record in topics.records[before:] if record.value is None]
    assert gone == ["prod/node//lost-2", "prod/node//lost-3"]


def node_of(number: int) -> Node:
    return a_node(f"lost-{number}").build()


async def test_what_is_accepted_while_the_server_is_away_is_doubted_until_it_is_deleted(
    kube: FakeKube, topics: FakeTopics, tmp_path: Path
) -> None:
    timing = Timing(sleep=lambda seconds: asyncio.sleep(min(seconds, 0.05)))
    kube.seed("nodes", *(a_node(f"n{number}") for number in range(3, 9)))
    async with watching(kube.settings(tmp_path), topics, timing):
        pass
    for number in range(2, 9):
        await kube.delete("nodes", f"n{number}")
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        kube.faults = [Fault("list", "nodes", status=503) for _ in range(3)]
        source.accept()
        await kube.asked("list", "nodes", 4)
        assert set(doubts_in(topics.records)[-6:]) == {COLLAPSED}
        await topics.until(lambda t: doubts_in(t.records)[-6:] == [""] * 6)
        assert topics.keys(NODES) == ["prod/node//n1"]


async def test_a_doubt_of_an_earlier_run_is_remembered(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    marker = marker_of("prod", "kubernetes", NODES, Listed(7, 2, "nodes: 7 of 8 were missing"))
    await topics.publish(marker)
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        assert topics.keys(NODES) == ["prod/node//n1", "prod/node//n2"]
        assert source.shrunk == ["nodes: 7 of 8 were missing"]
        assert set(doubts_in(topics.records)[-6:]) == {"nodes: 7 of 8 were missing"}
        source.accept()
        await topics.until(lambda t: doubts_in(t.records)[-6:] == [""] * 6)
        assert source.shrunk == []


async def test_an_empty_list_while_running_deletes_nothing(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.faults = [Fault("watch", "nodes", drop=0), Fault("watch", "nodes", status=410)]
    gap = asyncio.Event()

    async def nap(seconds: float) -> None:
        await (gap.wait() if kube.count("watch", "nodes") == 1 else asyncio.sleep(0.01))

    async with watching(kube.settings(tmp_path), topics, Timing(sleep=nap)) as source:
        await kube.delete("nodes", "n1")
        await kube.delete("nodes", "n2")
        gap.set()
        await soon(lambda: source.shrunk)
        assert topics.keys(NODES) == ["prod/node//n1", "prod/node//n2"]
        await topics.until(lambda t: doubts_in(t.records)[-1] == "; ".join(source.shrunk))
        source.accept()
        await topics.until(lambda t: t.keys(NODES) == [])
        await topics.until(lambda t: doubts_in(t.records)[-1] == "")
        await kube.put("nodes", a_node("n2"))
        await topics.until(lambda t: t.keys(NODES) == ["prod/node//n2"])


async def test_a_cluster_whose_nodes_are_all_deleted_keeps_them_until_a_person_accepts_it(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.seed("nodes", *(a_node(f"n{number}") for number in range(3, 6)))
    async with watching(kube.settings(tmp_path), topics, timing) as source:
        for number in range(1, 6):
            await kube.delete("nodes", f"n{number}")
        stopped = "nodes: 5 of 5 were deleted at once; not believed"
        await topics.until(lambda t: doubts_in(t.records)[-6:] == [stopped] * 6)
        assert topics.keys(NODES) == ["prod/node//n3", "prod/node//n4", "prod/node//n5"]
        assert source.accept() == [stopped]
        await topics.until(lambda t: doubts_in(t.records)[-1] == "")
        assert (topics.keys(NODES), source.shrunk) == ([], [])


async def test_a_broker_that_is_away_for_a_while_costs_no_change(
    kube: FakeKube, topics: FakeTopics, timing: Timing, naps: Naps, tmp_path: Path
) -> None:
    async with watching(kube.settings(tmp_path), topics, timing):
        topics.faults = [Unreachable("the broker is away")] * 3
        await kube.put("pods", a_pod("kept"))
        await topics.until(lambda t: "prod/pod/shop/kept" in t.keys(PODS))
    assert len([nap for nap in naps.taken if nap >= 0.8]) >= 2


async def test_a_required_kind_that_may_not_be_listed_ends_the_start(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.faults = [Fault("list", "pods", status=403, message='pods is forbidden: User "u" cannot list')]
    with pytest.raises(Refused, match=r'pods is forbidden: User "u" cannot list \(403\)'):
        async with watching(kube.settings(tmp_path), topics, timing):
            pass
    assert topics.records == []


async def test_a_required_kind_that_is_not_served_ends_the_start(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    del kube.served["poddisruptionbudgets"]
    with pytest.raises(Refused, match="does not serve poddisruptionbudgets"):
        async with watching(kube.settings(tmp_path), topics, timing):
            pass


async def test_a_server_that_throttles_the_first_list_for_too_long_is_given_up(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    kube.faults = [Fault("list", "pods", status=429, headers={"Retry-After": "60"})]
    with pytest.raises(Unreachable, match="a fault was asked for"):
        async with watching(kube.settings(tmp_path), topics, timing):
            pass


async def test_kubevirt_is_watched_where_the_api_serves_it_and_skipped_where_it_does_not(
    kube: FakeKube, topics: FakeTopics, tmp_path: Path
) -> None:
    absent = asyncio.Event()

    async def nap(seconds: float) -> None:
        await (absent.wait() if seconds == 600.0 else asyncio.sleep(0))

    async with watching(kube.settings(tmp_path), topics, Timing(sleep=nap)):
        assert topics.keys(WORKLOADS) == []
        kube.served["virtualmachineinstancereplicasets"] = next(kind for kind in KINDS if kind.optional)
        kube.seed("virtualmachineinstancereplicasets", {"metadata": {"name": "vms", "namespace": "shop"}})
        absent.set()  # KubeVirt is installed, and asked for again after a while
        await topics.until(lambda t: t.keys(WORKLOADS) == ["prod/virtualmachineinstancereplicaset/shop/vms"])


async def test_credentials_that_are_no_longer_taken_are_read_again(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underhost.streams.kubernetes.client.RENEW_INTERVAL", 0.0)
    kube.token = "first"
    kube.faults = [Fault("watch", "pods", drop=1)]
    async with watching(kube.settings(tmp_path, token="first"), topics, timing):
        await kube.asked("watch", "pods")
        kube.token = "second"
        kube.settings(tmp_path, token="second")  # the file is rewritten, as a rotation does
        await kube.put("pods", a_pod("before"))
        await kube.put("pods", a_pod("after"))
        await topics.until(lambda t: {"prod/pod/shop/before", "prod/pod/shop/after"} <= set(t.keys(PODS)))


# ------------------------------------------------------------------------------------------------ silence of the server
def impatient(kube: FakeKube, folder: Path, token: str = "secret") -> KubernetesSettings:
    """Settings with the smallest bound there is: two seconds."""
    return kube.settings(folder, token).model_copy(update={"stale_after": 2.0})


def seen_in(topics: FakeTopics) -> set[int]:
    """What the markers of the nodes say of when the server was heard of."""
    markers = [record for record in topics.records if (record.topic, record.key) == (NODES, "prod/listed/kubernetes")]
    return {decode(record.value or b"", Listed).seen for record in markers}


async def test_a_cluster_in_which_nothing_happens_is_never_called_silent(
    kube: FakeKube, topics: FakeTopics, timing: Timing, tmp_path: Path
) -> None:
    async with watching(impatient(kube, tmp_path), topics, timing) as source:
        for times in range(1, 9):  # four seconds, without a change or a bookmark
            await kube.asked("readyz", "", times)
            assert source.stale == ""
        await soon(lambda: len(seen_in(topics)) >= 3)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param("revoked", "the Kubernetes API has not answered for over 2 s", id="its token is revoked"),
        pytest.param("pods", "nothing has been heard of pods for over 2 s", id="it may not read pods any more"),
        pytest.param("unready", "the Kubernetes API has not answered for over 2 s", id="its server lost etcd"),
    ],
)
async def test_a_watcher_that_hears_nothing_says_so_until_it_does_again(
    fault: str, said: str, kube: FakeKube, topics: FakeTopics, tmp_path: Path
) -> None:
    kube.token = "first"
    if fault == "pods":
        kube.faults = [Fault("watch", "pods", status=403) for _ in range(1000)]
    timing = Timing(sleep=lambda seconds: asyncio.sleep(min(seconds, 0.1)))
    async with watching(impatient(kube, tmp_path, "first"), topics, timing) as source:
        if fault == "revoked":
            kube.token = "second"
        elif fault == "unready":
            kube.faults = [Fault("readyz", status=500) for _ in range(1000)]
        await soon(lambda: source.stale == said)
        silent = seen_in(topics)
        asked = kube.count("readyz")
        await kube.asked("readyz", "", asked + 3)
        assert (source.stale, seen_in(topics)) == (said, silent)
        kube.token, kube.faults = "first", []
        await soon(lambda: source.stale == "")
        await soon(lambda: seen_in(topics) > silent)


async def test_an_optional_kind_that_was_heard_of_and_is_refused_is_silent(
    kube: FakeKube, topics: FakeTopics, tmp_path: Path
) -> None:
    vmirs = next(kind for kind in KINDS if kind.optional)
    kube.served[vmirs.plural] = vmirs
    kube.faults = [Fault("watch", vmirs.plural, drop=1)]
    timing = Timing(sleep=lambda seconds: asyncio.sleep(min(seconds, 0.1)))
    async with watching(impatient(kube, tmp_path), topics, timing) as source:
        await kube.asked("watch", vmirs.plural)
        refused = [Fault("list", vmirs.plural, status=403) for _ in range(1000)]
        kube.faults = [Fault("watch", vmirs.plural, error=410), *refused]
        await kube.put(vmirs.plural, {"metadata": {"name": "vms", "namespace": "shop"}})
        await soon(lambda: source.stale == f"nothing has been heard of {vmirs.plural} for over 2 s")
        kube.faults = []
        await soon(lambda: source.stale == "")


# ------------------------------------------------------------------------------------------- what the topics hold
async def test_what_a_former_owner_published_late_and_what_is_lost_is_published_again(
    kube: FakeKube, topics: FakeTopics, naps: Naps, tmp_path: Path
) -> None:
    timing = Timing(sleep=naps, inactivity=0.3, compare=0.1, settle=0.01)
    async with watching(kube.settings(tmp_path), topics, timing):
        pods = topics.live[PODS.name]
        right = dict(pods)
        pods["prod/pod/shop/web-0"] = right["prod/pod/shop/web-0"].replace(b'"n1"', b'"n2"')
        del pods["prod/pod/shop/web-1"]
        pods["prod/pod/shop/gone"] = right["prod/pod/shop/web-0"]
        await soon(lambda: pods == right)


async def test_an_error_that_ends_a_running_source_is_raised_as_it_is(kube: FakeKube, tmp_path: Path) -> None:
    """It came in a group with the ends of the watches, which no supervisor knows: the worker ended with it."""
    error = InputError("kafka.sasl.passwordFile: /etc/kafka/password: empty")

    class Unreadable(FakeTopics):
        async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
            if source.ready.is_set():
                raise error
            return await super().state(topic, site)

    topics = Unreadable()
    source = KubernetesSource("prod", kube.settings(tmp_path), topics, topics, timing=Timing(compare=0.01))
    with pytest.raises(InputError) as caught:
        await source.run()
    assert caught.value is error
