"""From topic to evaluated finding: changes per second, latency and memory, on both transports.

A site of 1,000 nodes on 250 ESXi hosts with 10,000 pods (2,000 applications of five replicas that must not share a
host). One worker with the evaluator; its sources are this program, which publishes as the live watchers do and
reads the findings back through the worker's own publishing.
"""

import asyncio
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Raw

from underhost.agents.pipeline.connections import Connections
from underhost.agents.worker import run_worker
from underhost.schemas.keys import object_key
from underhost.schemas.kubernetes import Container, Metadata, Node, NodeSpec, NodeStatus, Pod, PodSpec, PodStatus
from underhost.schemas.records import Listed
from underhost.schemas.topics import HOSTS, KUBERNETES_TOPICS, NODES, PODS, VIOLATIONS, VMS, VSPHERE_TOPICS
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.ports import Outgoing, Publisher, Source, TopicReader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings
from underhost.streams.watching.records import marker_of, outgoing_of

SITE = "bench"
NODES_PER_HOST, REPLICAS = 4, 5
HOST_KEY = "node.cluster.x-k8s.io/esxi-host"


class Sizes:
    """How large the site is and how much is changed."""

    def __init__(self, nodes: int = 1000, pods: int = 10_000, changes: int = 20_000, singles: int = 200) -> None:
        self.nodes, self.pods, self.changes, self.singles = nodes, pods, changes, singles
        self.hosts = nodes // NODES_PER_HOST


def pod(number: int, node: int, version: int = 0) -> Outgoing:
    """Replica `number % 5` of application `number // 5`, on a node."""
    application = f"app-{number // REPLICAS}"
    term = f'{{"labelSelector":{{"matchLabels":{{"app":"{application}"}}}},"topologyKey":"{HOST_KEY}"}}'
    affinity = f'{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{term}]}}}}'
    name = f"{application}-{number % REPLICAS}"
    value = Pod(
        Metadata(
            name=name,
            namespace="bench",
            uid=f"pod-{number}",
            resource_version=str(version),
            labels=Raw(f'{{"app":"{application}"}}'.encode()),
        ),
        PodSpec(
            node_name=f"node-{node}",
            affinity=Raw(affinity.encode()),
            containers=[Container(name="c", resources=Raw(b'{"requests":{"cpu":"50m","memory":"64Mi"}}'))],
        ),
        PodStatus(phase="Running"),
    )
    return outgoing_of(PODS, object_key(SITE, "pod", name, "bench"), value)


def home(number: int, sizes: Sizes) -> int:
    """The node of a replica: its application's replicas are on five different hosts."""
    application, replica = divmod(number, REPLICAS)
    host = (application + replica * (sizes.hosts // REPLICAS)) % sizes.hosts
    return host * NODES_PER_HOST + application % NODES_PER_HOST


def kubernetes_objects(sizes: Sizes) -> Iterator[Outgoing]:
    """Nodes and pods as a first list publishes them."""
    allocatable = Raw(b'{"cpu":"64","memory":"256Gi","pods":"110"}')
    for number in range(sizes.nodes):
        name = f"node-{number}"
        node = Node(
            Metadata(name=name, uid=name, resource_version="0", labels=Raw(b"{}")),
            NodeSpec(provider_id=f"vsphere://{number:032x}"),
            NodeStatus(allocatable=allocatable),
        )
        yield outgoing_of(NODES, object_key(SITE, "node", name), node)
    for number in range(sizes.pods):
        yield pod(number, home(number, sizes))
    # One violation from the start tells that the first evaluation is done.
    yield pod(0, home(1, sizes), 1)


def vsphere_objects(sizes: Sizes) -> Iterator[Outgoing]:
    """Hosts and VMs as a first list publishes them."""
    for number in range(sizes.hosts):
        ref = f"host-{number}"
        host = Host(name=f"esx-{number}", id=ref, cluster="C0", uid=ref, resource_version="0")
        yield outgoing_of(HOSTS, object_key(SITE, "host", ref), host)
    for number in range(sizes.nodes):
        ref = f"vm-{number}"
        vm = Vm(
            name=f"node-{number}",
            id=ref,
            uuid=f"{number:032x}",
            host=f"host-{number // NODES_PER_HOST}",
            uid=ref,
            resource_version="0",
        )
        yield outgoing_of(VMS, object_key(SITE, "vm", ref), vm)


class Load:
    """The sources of the bench, and its stop-watch."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.found: dict[str, asyncio.Event] = {}
        self.figures: dict[str, float] = {}
        self.stop = asyncio.Event()
        self.began = 0.0

    def sources(self, site: str, publisher: Publisher, reader: TopicReader) -> Sequence["ChangeFeed"]:
        """One source a side; the Kubernetes one drives the measurement."""
        return [
            ChangeFeed("vsphere", publisher, list(vsphere_objects(self.sizes)), None),
            ChangeFeed("kubernetes", publisher, list(kubernetes_objects(self.sizes)), self),
        ]

    def heard(self, record: Outgoing) -> None:
        """Every derived record once it is published."""
        if record.topic is VIOLATIONS and record.value is not None:
            for word, event in self.found.items():
                if word.encode() in record.value:
                    event.set()

    async def until(self, word: str, timeout: float = 300) -> None:
        """Until a finding that names this is published."""
        await asyncio.wait_for(self.found[word].wait(), timeout)

    def expect(self, word: str) -> None:
        """Begin to listen for a finding that names this."""
        self.found[word] = asyncio.Event()

    async def measure(self, publisher: Publisher) -> None:
        """A storm of changes, then single ones."""
        sizes = self.sizes
        await self.until("bench/app-0-0")
        self.figures["objects listed and evaluated, s"] = time.perf_counter() - self.began
        last = sizes.pods // REPLICAS - 1
        word = f"bench/app-{last}-0"
        self.expect(word)
        storm = [
            pod(10 + number % (sizes.pods - 20), home(10 + number % (sizes.pods - 20), sizes), number + 1)
            for number in range(sizes.changes)
        ]
        started = time.perf_counter()
        for first in range(0, len(storm), 500):
            await publisher.publish(*storm[first : first + 500])
        await publisher.publish(pod(last * REPLICAS, home(last * REPLICAS + 1, sizes), 1))
        await self.until(word)
        self.figures["changes per second"] = (sizes.changes + 1) / (time.perf_counter() - started)
        waits = []
        for number in range(1, sizes.singles + 1):
            word = f"bench/app-{number}-0"
            self.expect(word)
            started = time.perf_counter()
            # Younger than the storm left it: an older version would be left out of the tables.
            await publisher.publish(pod(number * REPLICAS, home(number * REPLICAS + 1, sizes), sizes.changes + 1))
            await self.until(word)
            waits.append(time.perf_counter() - started)
        waits.sort()
        self.figures["change to finding p50, ms"] = waits[len(waits) // 2] * 1e3
        self.figures["change to finding p99, ms"] = waits[int(len(waits) * 0.99)] * 1e3
        self.stop.set()


class ChangeFeed(Source):
    """A ports.Source that publishes a list and then, on one side, the load."""

    def __init__(self, name: str, publisher: Publisher, listed: list[Outgoing], load: Load | None) -> None:
        self.name, self.epoch = name, int(time.time() * 1000)
        self.ready = asyncio.Event()
        self._publisher, self._listed, self._load = publisher, listed, load

    async def run(self) -> None:
        """List, mark, and measure."""
        if self._load is not None:
            self._load.expect("bench/app-0-0")
            self._load.began = time.perf_counter()
        for first in range(0, len(self._listed), 500):
            await self._publisher.publish(*self._listed[first : first + 500])
        topics = KUBERNETES_TOPICS if self.name == "kubernetes" else VSPHERE_TOPICS
        marker = Listed(self.epoch, len(self._listed))
        await self._publisher.publish(*(marker_of(SITE, self.name, topic, marker) for topic in topics))
        self.ready.set()
        if self._load is not None:
            await self._load.measure(self._publisher)
        await asyncio.Event().wait()


async def measure(kafka: KafkaSettings, sizes: Sizes) -> dict[str, float]:
    """The figures of one transport."""
    load = Load(sizes)
    settings = Settings(site=SITE, kafka=kafka, vsphere=VSphereSettings(inventory=Path("bench")))
    await run_worker(
        settings,
        roles={"kubernetes", "vsphere", "evaluator"},
        connections=Connections(load.sources),
        on_event=load.heard,
        stop=load.stop,
        web=False,
    )
    load.figures["largest memory, MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return load.figures


def main() -> None:
    """`bench.pipeline TRANSPORT [NODES PODS CHANGES SINGLES]`; TRANSPORT is `embedded` or a bootstrap server."""
    logging.basicConfig(level=logging.WARNING)
    transport, sizes = sys.argv[1], Sizes(*map(int, sys.argv[2:]))
    with tempfile.TemporaryDirectory() as folder:
        kafka = (
            KafkaSettings(embedded=Path(folder) / "bench.db")
            if transport == "embedded"
            else KafkaSettings(bootstrap_servers=transport)
        )
        for name, value in asyncio.run(measure(kafka, sizes)).items():
            print(f"{name}\t{value:.1f}")


if __name__ == "__main__":
    main()
