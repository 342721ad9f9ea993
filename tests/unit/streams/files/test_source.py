"""Files as sources: what they publish at first, when a file changes, and when it cannot be read."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from support.fakes.topics import FakeTopics
from support.watching import following

from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.kubernetes import Metadata, Node, Pod, decode
from underhost.schemas.records import Listed
from underhost.schemas.topics import (
    DRS_RULES,
    HOSTS,
    KUBERNETES_TOPICS,
    NODES,
    PODS,
    VMS,
    VSPHERE_TOPICS,
    WORKLOADS,
    Topic,
)
from underhost.streams.files.source import FileSource, dump_source, inventory_source
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings


def a_dump(*pods: str, **labels: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = [
        {"kind": "Pod", "metadata": {"name": name, "namespace": "n", "uid": f"u-{name}", "labels": labels}}
        for name in pods
    ]
    items.append({"kind": "Node", "metadata": {"name": "n1"}})
    items.append({"kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}, "spec": {"replicas": 2}})
    return {"kind": "List", "items": items}


def a_dump_source(path: Path, topics: FakeTopics) -> FileSource:
    return dump_source("s", KubernetesSettings(files=(path,)), topics, topics, look_again=0.01)


async def test_a_dump_is_published_with_the_markers_last(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a", "b", app="x"), indent=4))
    source = a_dump_source(path, topics)
    async with following(source):
        pass
    assert topics.keys(PODS) == ["s/pod/n/a", "s/pod/n/b"]
    assert topics.keys(NODES) == ["s/node//n1"]
    assert topics.keys(WORKLOADS) == ["s/deployment/n/d"]
    assert [record.key for record in topics.records[-6:]] == ["s/listed/kubernetes"] * 6
    markers = {
        topic.short: msgspec.json.decode(topics.live[topic.name]["s/listed/kubernetes"], type=Listed)
        for topic in KUBERNETES_TOPICS
    }
    assert markers["pods"] == Listed(epoch=source.epoch, count=2)
    assert markers["services"] == Listed(epoch=source.epoch, count=0)


async def test_the_records_travel_without_the_blanks_of_the_file(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a", app="x"), indent=4))
    async with following(a_dump_source(path, topics)):
        pass
    pod = decode(topics.live[PODS.name]["s/pod/n/a"], Pod)
    assert bytes(pod.metadata.labels) == b'{"app":"x"}'


async def test_a_second_run_publishes_only_markers_and_deletes_what_is_gone(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a", "b", "c")))
    async with following(a_dump_source(path, topics)):
        pass
    topics.records.clear()
    path.write_text(json.dumps(a_dump("a", "c")))
    async with following(a_dump_source(path, topics)):
        pass
    changes = {record.key: record.value for record in topics.records if "/listed/" not in record.key}
    assert changes == {"s/pod/n/b": None}


async def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a")))
    async with following(a_dump_source(path, topics)):
        path.write_text(json.dumps(a_dump("a", "new")))
        await topics.until(lambda seen: seen.keys(PODS) == ["s/pod/n/a", "s/pod/n/new"])


async def test_a_file_that_breaks_keeps_what_was_published_until_it_is_mended(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    held: list[list[str]] = []

    def read() -> dict[str, dict[str, Struct]]:
        held.append(topics.keys(NODES))
        path.write_text("x" * len(held))  # the file changes, so there is a next look
        if len(held) == 2:
            raise InputError("broken")
        names = [f"n{i}" for i in range(len(held))]
        return {NODES.name: {f"s/node//{name}": Node(metadata=Metadata(name=name)) for name in names}}

    path.write_text("")
    async with following(FileSource("kubernetes", "s", [NODES], [path], read, topics, topics, 0.01)):
        await topics.until(lambda seen: "s/node//n2" in seen.keys(NODES))
    assert held[:3] == [[], ["s/node//n0"], ["s/node//n0"]]


async def test_an_emptied_dump_deletes_nothing_and_says_so(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a", "b", "c")))
    async with following(a_dump_source(path, topics)):
        pass
    path.write_text('{"kind": "List", "items": []}')
    source = a_dump_source(path, topics)
    async with following(source):
        pass
    assert topics.keys(PODS) == ["s/pod/n/a", "s/pod/n/b", "s/pod/n/c"]
    assert [line.partition(":")[0] for line in source.shrunk] == ["nodes", "pods", "workloads"]


async def test_an_emptied_dump_that_a_person_accepts_is_deleted(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a", "b", "c")))
    async with following(a_dump_source(path, topics)):
        path.write_text('{"kind": "List", "items": []}')
        await topics.until(lambda seen: doubt_in(seen, PODS))
    source = a_dump_source(path, topics)
    async with following(source):
        assert len(source.shrunk) == 3  # it stays so over a restart
        assert len(source.accept()) == 3
        await topics.until(lambda seen: not doubt_in(seen, PODS))
        assert (topics.keys(PODS), topics.keys(NODES), source.shrunk) == ([], [], [])


def doubt_in(topics: FakeTopics, topic: Topic) -> str:
    return msgspec.json.decode(topics.live[topic.name]["s/listed/kubernetes"], type=Listed).doubt


async def test_a_broker_that_is_away_for_a_moment_does_not_lose_a_change(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a")))
    async with following(a_dump_source(path, topics)):
        topics.faults = [Unreachable("the broker is away")] * 2
        path.write_text(json.dumps(a_dump("a", "b")))
        await topics.until(lambda seen: "s/pod/n/b" in seen.keys(PODS))


async def test_files_that_cannot_be_read_at_the_start_are_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory"):
        async with following(a_dump_source(tmp_path / "missing.json", FakeTopics())):
            pass


async def test_a_broker_that_is_away_at_the_start_is_unreachable(tmp_path: Path) -> None:
    path, topics = tmp_path / "dump.json", FakeTopics()
    path.write_text(json.dumps(a_dump("a")))
    topics.faults = [Unreachable("the broker is away")]
    with pytest.raises(Unreachable):
        async with following(a_dump_source(path, topics)):
            pass


async def test_an_inventory_is_published_like_a_vcenter(tmp_path: Path) -> None:
    path, topics = tmp_path / "inventory.yaml", FakeTopics()
    path.write_text(
        "hosts: [{name: e1, id: host-1}]\n"
        "vms: [{name: v1, id: vm-1, host: e1}, {name: v2, host: host-1}]\n"
        "clusters: [{name: C0, rules: [{name: r, type: anti-affinity, vms: [v1, v2]}]}]\n"
    )
    async with following(inventory_source("s", VSphereSettings(inventory=path), topics, topics, look_again=0.01)):
        pass
    assert topics.keys(HOSTS) == ["s/host//host-1"]
    assert topics.keys(VMS) == ["s/vm//v2", "s/vm//vm-1"]
    assert topics.keys(DRS_RULES) == ["s/cluster//C0", "s/drs-rule//C0:r"]
    assert [record.key for record in topics.records[-3:]] == ["s/listed/vsphere"] * len(VSPHERE_TOPICS)
