"""What the simulated site publishes: lists, markers, changes and tombstones, in the discipline of the live watchers."""

from typing import Any

import msgspec
import pytest
from support.fakes.topics import FakeTopics
from support.simulation.operated import a_site
from support.sites.simulated import turns, watched

from underhost.schemas.errors import InputError
from underhost.schemas.keys import parse_key
from underhost.schemas.kubernetes import Pod, decode
from underhost.schemas.records import Listed
from underhost.schemas.topics import SOURCE_TOPICS
from underhost.streams.ports import Source
from underhost.streams.simulated.site import SimulatedSite
from underhost.streams.simulated.store import ObjectKey


async def test_every_topic_gets_its_objects_first_and_then_its_marker() -> None:
    topics = FakeTopics()
    async with watched(a_site(), topics):
        pass
    counts = {}
    for topic in SOURCE_TOPICS:
        *objects, marker = [record for record in topics.records if record.topic is topic]
        assert marker.key == f"demo/listed/{topic.source}"
        assert {parse_key(record.key).kind for record in objects} <= set(topic.kinds)
        assert marker.value is not None
        counts[topic.short] = msgspec.json.decode(marker.value, type=Listed).count
        assert counts[topic.short] == len(objects)
    assert counts == {
        "nodes": 7, "pods": 32, "namespaces": 4, "services": 4, "workloads": 7, "disruption-budgets": 3,
        "vms": 7, "hosts": 4, "drs-rules": 1,
    }  # fmt: skip


async def test_records_decode_as_the_topics_records_and_carry_uid_and_version_as_event_id() -> None:
    topics = FakeTopics()
    async with watched(a_site(), topics):
        pass
    for record in topics.records:
        kind = parse_key(record.key).kind
        if kind != "listed":
            assert record.value is not None
            value = decode(record.value, record.topic.kinds[kind])
            holder: Any = getattr(value, "metadata", value)
            assert holder.uid and holder.resource_version
            assert record.event_id == f"{holder.uid}/{holder.resource_version}"


async def test_each_change_follows_in_order_and_a_deletion_is_a_tombstone() -> None:
    site, topics = a_site(), FakeTopics()
    name = "varnish-cache-54489f9fc9-5pbr2"
    async with watched(site, topics):
        uid, _ = await site.kubernetes.pod_node("customapp", name)
        await site.kubernetes.bind_pod("customapp", name, uid, "kni-worker5")
        site.advance(1)
        site.delete_pod("customapp", name)
        site.advance(1)
        await turns()
    values = [record.value for record in topics.records if record.key == f"demo/pod/customapp/{name}"]
    seen = [None if value is None else decode(value, Pod) for value in values]
    story = [
        pod and (pod.spec.node_name, pod.status.phase, pod.metadata.deletion_timestamp is not None) for pod in seen
    ]
    assert story == [
        ("", "Pending", False),
        ("kni-worker5", "Pending", False),
        ("kni-worker5", "Running", False),
        ("kni-worker5", "Running", True),
        None,
    ]


async def test_a_source_that_restarts_publishes_only_what_differs_and_deletes_what_is_gone() -> None:
    site, topics = a_site(), FakeTopics()
    async with watched(site, topics):
        pass
    before = len(topics.records)
    site.kubernetes.store.drop(ObjectKey("pod", "customapp", "varnish-cache-54489f9fc9-5pbr2"))
    site.move_vm("kni-worker6", "esx-1")
    site.advance(2)
    async with watched(site, topics):
        pass
    new = [record for record in topics.records[before:] if "/listed/" not in record.key]
    changed = {record.key for record in new if record.value is not None}
    assert "demo/vm//vm-107" in changed
    assert {key for key in changed if "/pod/" in key} == {
        key for key in changed if key.startswith("demo/pod/customapp/varnish-cache-54489f9fc9-")
    }
    assert [record.key for record in new if record.value is None] == [
        "demo/pod/customapp/varnish-cache-54489f9fc9-5pbr2"
    ]


async def test_a_new_site_of_the_same_seed_finds_its_topics_as_it_would_leave_them() -> None:
    topics = FakeTopics()
    async with watched(a_site(seed=3), topics):
        pass
    before = len(topics.records)
    async with watched(a_site(seed=3), topics):
        pass
    assert [record.key for record in topics.records[before:] if "/listed/" not in record.key] == []


async def a_busy_quarter_of_an_hour(seed: int) -> list[object]:
    site, topics = a_site(seed=seed), FakeTopics()
    async with watched(site, topics):
        for _, pod in sorted(site.kubernetes.pods().items()):
            if not pod.spec.node_name:
                await site.kubernetes.bind_pod("customapp", pod.metadata.name, pod.metadata.uid, "kni-worker3")
        for minute in range(15):
            site.move_vm("kni-worker6", f"esx-{1 + minute % 2}")
            if minute == 5:
                site.drain("kni-worker3")
            site.advance(60)
            await turns()
    return list(topics.records)


async def test_equal_seeds_give_equal_records_and_other_seeds_other_names() -> None:
    first, second, other = [await a_busy_quarter_of_an_hour(seed) for seed in (1, 1, 2)]
    assert first == second
    assert first != other


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no simulated site 'nowhere'; there is: kubevirt"):
        SimulatedSite("nowhere")


async def test_the_sources_are_named_as_the_markers_expect() -> None:
    topics = FakeTopics()
    sources: list[Source] = list(a_site().sources("demo", topics, topics))
    assert [(source.name, source.epoch) for source in sources] == [
        ("kubernetes", 1_600_000_000_000),
        ("vsphere", 1_600_000_000_000),
    ]
