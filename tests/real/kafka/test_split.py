"""The roles of a site over several workers on a real Kafka broker: watchers, evaluator, the hands, and pages."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.fakes.leases import FakeLeases
from support.fakes.pipeline import FakeCluster
from support.processes.kafka import KafkaProcess
from support.processes.kwok import HOST_LABEL
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.workers.fleet import until
from support.workers.pipeline import Running, running
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.agents.pipeline.leases.roles import LeaseOrigin
from underhost.agents.sinks.ports import Writers
from underhost.schemas.records import Placement
from underhost.schemas.topics import ACTIONS, NODE_HOSTS, OUTCOMES, PLACEMENTS, PODS, VIOLATIONS
from underhost.streams.derived import outgoing
from underhost.streams.ports import PodState
from underhost.streams.publish import KafkaPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import LeaseSettings, Settings
from underhost.streams.settings.sinks import SinkSettings

pytestmark = pytest.mark.real


@pytest.fixture
def settings(parts: Path, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a broker of the test's own."""
    broker = KafkaProcess(tmp_path, parts)
    broker.start()
    yield Settings(
        site="prod",
        kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=4, session_timeout=6),
        vsphere=VSphereSettings(simulated="of the test"),
        sinks=SinkSettings(labels=True, bindings=True, events=True),
    )
    broker.kill()


async def test_each_worker_does_its_part_and_nothing_else(settings: Settings) -> None:
    cluster = FakeCluster(site="prod")
    for number in (1, 2, 3):
        cluster.node(f"n{number}", f"h{number}")
        cluster.pod(f"db-{number}", app="db")
    told = Heard()
    telling = replace(cluster.connections(), writers=Writers(cluster, events=told))
    async with AsyncExitStack() as stack:
        # The hands come first and find nothing to do; the evaluator finds topics without a listed site.
        hands = await stack.enter_async_context(running(settings, cluster, roles=("labeller", "binder")))
        mouth = await stack.enter_async_context(running(settings, telling, roles=("events",)))
        evaluator = await stack.enter_async_context(running(settings, cluster, roles=("evaluator",)))
        watchers = await stack.enter_async_context(running(settings, cluster, roles=("kubernetes", "vsphere")))
        await hands.until(lambda: len(cluster.bound) == len(cluster.labelled) == 3)
        await hands.until(lambda: len(hands.records_of(OUTCOMES)) == 6)
        # Else a label that is replaced before a busy mouth has told of it may be told of once.
        await mouth.until(lambda: len(mouth.records_of(OUTCOMES)) == 6)
        cluster.move("n2", "h1")
        await evaluator.until(lambda: len(evaluator.records(VIOLATIONS)) == 1)
        await evaluator.until(lambda: len(evaluator.records(NODE_HOSTS)) == 4)
        await mouth.until(lambda: len(mouth.records_of(OUTCOMES)) == 11)
    assert sorted(cluster.bound) == [("db-1", "n1"), ("db-2", "n2"), ("db-3", "n3")]
    assert {record.topic for record in watchers.published} == set()
    assert {record.topic.short for record in evaluator.published} == {
        "node-hosts", "placements", "violations", "actions",
    }  # fmt: skip
    assert {record.topic.short for record in hands.published} == {"actions", "outcomes"}
    assert {record.topic.short for record in mouth.published} == {"outcomes"}
    assert sorted(told.heard) == sorted([
        *((f"db-{n}", "HostShared", SHARED) for n in (1, 2)),
        *((f"db-{n}", "Scheduled", f"Successfully assigned shop/db-{n} to n{n}") for n in (1, 2, 3)),
        ("n1", "HostLabel", f"set {HOST_LABEL}=h1"),
        ("n1", "HostShared", COUNTED),
        ("n2", "HostLabel", f"set {HOST_LABEL}=h1"),
        ("n2", "HostLabel", f"set {HOST_LABEL}=h2"),
        ("n2", "HostShared", COUNTED),
        ("n3", "HostLabel", f"set {HOST_LABEL}=h3"),
    ])  # fmt: skip
    assert len(evaluator.records(PLACEMENTS)) == 3
    assert {key for key, _ in hands.records(ACTIONS)} == {f"prod/node//n{number}" for number in (1, 2, 3)}


SHARED = "2 pods of db on h1"
COUNTED = "2 pods: node(s) didn't match pod anti-affinity rules (PhysicalHost). Finding db-h1."
"""On a node's Event, which everybody may read: no pod is named."""


class Heard:
    """Implements `ports.EventWriter`: (object, reason, words) of whatever is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str]] = []
        self._events: dict[str, tuple[str, str]] = {}

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """See `ports.EventWriter`."""
        return name

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """See `ports.EventWriter`: db-1 was bound to n1."""
        return PodState(f"pod-{name}", "1", f"n{name[-1]}", {}, "underhost")

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        """See `ports.EventWriter`."""
        about = event["regarding"]["name"], event["reason"]
        self._events[event["metadata"]["name"]] = about
        self.heard.append((*about, event["note"]))

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, Any]) -> None:
        """See `ports.EventWriter`."""
        self.heard.append((*self._events[name], changes["message"]))


async def test_what_a_watcher_does_not_believe_stops_every_worker_until_a_person_resumes(settings: Settings) -> None:
    cluster = FakeCluster(site="prod")
    cluster.node("n1", "h1")
    async with AsyncExitStack() as stack:
        watchers = await stack.enter_async_context(running(settings, cluster, roles=("kubernetes", "vsphere")))
        await cluster.listed["vsphere"].wait()
        binder = await stack.enter_async_context(running(settings, cluster, roles=("binder",)))
        thinker = await stack.enter_async_context(running(settings, cluster, roles=("evaluator", "labeller")))
        await thinker.until(lambda: len(cluster.labelled) == 1)
        cluster.doubt("vsphere", "vms: 39 of 40 are missing")
        await thinker.until(lambda: len(thinker.records(VIOLATIONS)) == 1)
        # Whatever is published for the binder by hand now, or was on its way, it refuses.
        cluster.pod("db-1", app="db")
        order = Placement("shop/db-1", "pod-db-1", "n1", 0, 0, {}, {})
        async with KafkaPublisher(settings.kafka, 4) as publisher:
            await publisher.publish(outgoing(PLACEMENTS, "prod/pod/shop/db-1", order))
        await binder.until(lambda: len(binder.records(OUTCOMES)) == 1)
        cluster.move("n1", "h2")
        await thinker.until(lambda: thinker.states(NODE_HOSTS, "hostName")[-1:] == [("prod/node//n1", "h2")])
        assert (len(cluster.labelled), cluster.bound) == (1, [])

        command = ["resume", "prod", "--bootstrap-servers", str(settings.kafka.bootstrap_servers)]
        done = await asyncio.to_thread(CliRunner().invoke, build(), command)
        assert (done.exception, done.output) == (None, "Site prod goes on. Accepted:\n  vms: 39 of 40 are missing\n")
        await thinker.until(lambda: len(cluster.labelled) == 2)
        await binder.until(lambda: cluster.bound == [("db-1", "n1")])
    [refused, *_] = [value for _, value in binder.records(OUTCOMES)]
    assert (refused["result"], refused["reason"]) == ("failed", "writes stop: vms: 39 of 40 are missing")
    assert [value["kind"] for _, value in watchers.records(OUTCOMES)] == ["resume"]


async def test_a_standby_of_the_same_roles_takes_the_site_over(settings: Settings) -> None:
    cluster = FakeCluster(site="prod")
    cluster.node("n1", "h1")
    cluster.pod("db-1", app="db")
    async with AsyncExitStack() as stack:
        async with running(settings, cluster) as first:
            await first.until(lambda: len(cluster.bound) == 1 and len(first.records(OUTCOMES)) == 2)
            standby = await stack.enter_async_context(running(settings, cluster))
        # However far the second one has come: the first has left, and what happens now is seen by the second.
        cluster.node("n2", "h2")
        cluster.pod("db-2", app="db")
        await standby.until(lambda: len(cluster.bound) == 2)
    assert cluster.bound == [("db-1", "n1"), ("db-2", "n2")]
    assert standby.states(PLACEMENTS, "node") == [("prod/pod/shop/db-2", "n2")]


async def test_one_change_is_one_record_where_two_replicas_may_watch(settings: Settings) -> None:
    cluster, leases = FakeCluster(site="prod"), FakeLeases()
    cluster.node("n1", "h1")

    def replica(name: str) -> AbstractAsyncContextManager[Running]:
        made = replace(cluster.connections(), leases=LeaseOrigin(leases, name))
        short = settings.model_copy(update={"lease": LeaseSettings(seconds=3)})
        return running(short, made, roles=("kubernetes", "vsphere"))

    async with AsyncExitStack() as stack:
        async with replica("one"):
            await cluster.listed["kubernetes"].wait()
            await cluster.listed["vsphere"].wait()
            await stack.enter_async_context(replica("two"))
            await until(lambda: len(set(leases.asked)) * 2 < len(leases.asked))
            cluster.pod("db-1", app="db")
            await until(lambda: not changes(cluster))
            assert [source.name for source in cluster.sources] == ["kubernetes", "vsphere"]
        # The first one has left: what changes now is the second one's to say, in a later term.
        await until(lambda: len(cluster.sources) == 2)
        cluster.pod("db-2", app="db")
        await until(lambda: not changes(cluster))
        reader = open_reader(settings.kafka)
        pods = [record async for record in reader.history([PODS]) if b"/pod/" in (record.key or b"")]
        await reader.close()
    terms = [int(dict(record.headers)["ce_term"]) for record in pods]
    assert [record.key for record in pods] == [b"prod/pod/shop/db-1", b"prod/pod/shop/db-2"]
    assert terms[0] < terms[1]


def changes(cluster: FakeCluster) -> int:
    """The changes that a source has not taken yet."""
    return sum(queue.qsize() for queues in cluster.watchers.values() for queue in queues)


async def test_a_page_in_a_process_of_its_own_shows_what_others_decide_and_follows_it(
    settings: Settings, tmp_path: Path
) -> None:
    cluster = FakeCluster(site="prod")
    for number in (1, 2, 3):
        cluster.node(f"n{number}", f"h{number}")
        cluster.pod(f"db-{number}", f"n{number}", app="db")
    cluster.move("n2", "h1")
    async with AsyncExitStack() as stack:
        evaluator = await stack.enter_async_context(running(settings, cluster, roles=("evaluator",)))
        await stack.enter_async_context(running(settings, cluster, roles=("kubernetes", "vsphere")))
        await evaluator.until(lambda: len(evaluator.records(VIOLATIONS)) == 1)
        # Two pages, as a Deployment of two has them: each sees everything, from its start on.
        for name in ("one", "two"):
            page = await stack.enter_async_context(a_page(settings, tmp_path / name))
            assert await page.get("api/v1/sites") == {
                "apiVersion": "underhost/v1", "kind": "Sites", "features": ["history", "repair", "whatif"],
                "sites": [{
                    "site": "prod", "ready": True, "reason": "",
                    "hosts": 3, "nodes": 3, "pods": 3, "findings": {"physical": 1},
                }],
            }  # fmt: skip
        found = await page.get("api/v1/findings")
        assert [(one["pod"], one["peers"]) for one in found["findings"]] == [("shop/db-1", ["shop/db-2"])]
        assert {node["name"]: node["host"] for node in (await page.get("api/v1/map"))["nodes"]} == {
            "n1": "moref-h1", "n2": "moref-h1", "n3": "moref-h3",
        }  # fmt: skip
        explained = await page.get("api/v1/pods/shop/db-1")
        assert sorted(explained["verdict"]["nodes"]) == ["n1", "n2", "n3"]
        plan = await page.post("api/v1/whatif", {"site": "prod", "steps": [{"fail": "host/h3"}]})
        assert (plan["kind"], [move["from"] for move in plan["vmMoves"]]) == ("WhatIf", ["h3"])
        repair = await page.post("api/v1/repair", {"site": "prod"})
        # The finding is of the evaluator of these tests; by the rules, which pages plan by, nothing is wrong.
        assert (repair["kind"], repair["objective"]["findingsLeft"], repair["steps"]) == ("RepairPlan", 0, [])
        rolling = await page.post("api/v1/maintain", {"site": "prod", "hosts": ["host/h3"]})
        assert [wave["hosts"] for wave in rolling["waves"]] == [["h3"]]

        async with page.following(found["version"]) as events:
            cluster.move("n2", "h2")
            changes = [await anext(events)]
            while not any("goneFindings" in change for change in changes):
                changes.append(await anext(events))
        assert [row["host"] for change in changes for row in change.get("nodes", ())] == ["moref-h2"]
        assert (await page.get("api/v1/findings"))["findings"] == []
    assert {record.topic.short for record in evaluator.published} == {"node-hosts", "violations"}


@dataclass
class Page:
    """The web of a worker in another process."""

    base: str
    client: aiohttp.ClientSession

    async def get(self, path: str) -> Any:
        """The document."""
        async with self.client.get(f"{self.base}/{path}") as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def post(self, path: str, body: object) -> Any:
        """The document that answers this one."""
        async with self.client.post(f"{self.base}/{path}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    @asynccontextmanager
    async def following(self, version: str) -> AsyncIterator[AsyncIterator[Any]]:
        """The changes after a version, as they come."""

        async def changes() -> AsyncIterator[Any]:
            while True:
                block = (await answer.content.readuntil(b"\n\n")).decode()
                if "event: change\n" in block:
                    yield json.loads(block.split("data: ", 1)[1])

        async with asyncio.timeout(60), self.client.get(f"{self.base}/api/v1/events?since={version}") as answer:
            yield changes()


def _configured(settings: Settings, folder: Path, port: int) -> Path:
    """A configuration of nothing but the site's name, Kafka and an address."""
    folder.mkdir()
    tree = {
        "apiVersion": "underhost/v1",
        "kind": "Config",
        "site": settings.site,
        "kafka": {"bootstrapServers": settings.kafka.bootstrap_servers, "partitions": settings.kafka.partitions},
        "web": {"listen": f"127.0.0.1:{port}"},
    }
    path = folder / "underhost.yaml"
    path.write_text(json.dumps(tree))
    return path


@asynccontextmanager
async def a_page(settings: Settings, folder: Path) -> AsyncIterator[Page]:
    """`underhost run --agents web` over the same Kafka."""
    [port] = free_ports(1)
    config = _configured(settings, folder, port)
    command = [UNDERHOST, "run", "--config", str(config), "--agents", "web"]
    with (folder / "underhost.log").open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out, cwd=folder)
    try:
        async with aiohttp.ClientSession() as client:
            async with asyncio.timeout(60):
                while not await _is_ready(client, f"http://127.0.0.1:{port}/readyz"):
                    assert process.returncode is None, (folder / "underhost.log").read_text()
                    await asyncio.sleep(0.05)  # another process announces nothing
            yield Page(f"http://127.0.0.1:{port}", client)
        process.terminate()
        assert await process.wait() == 0, (folder / "underhost.log").read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _is_ready(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False
