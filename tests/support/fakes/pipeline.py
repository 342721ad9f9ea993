"""Fakes of the outside world of a worker: a cluster with a source and a writer, and an evaluator of two small rules."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from support.build import HOST, a_node, a_pod, term
from support.build import app as selecting_app

from underhost.agents.affinity.quorum import Quorum
from underhost.agents.compiled.model import compile
from underhost.agents.compiled.state import State
from underhost.agents.pipeline.connections import Connections
from underhost.agents.schedule.pending import PodDecision
from underhost.agents.sinks.bindings import OUR_SCHEDULER
from underhost.agents.sinks.labels.managers import FIELD_MANAGER
from underhost.agents.sinks.ports import Writers
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.errors import BackendError, Conflict, Gone
from underhost.schemas.keys import listed_key, object_key
from underhost.schemas.kubernetes import Node, Pod, encode
from underhost.schemas.records import Finding, Listed
from underhost.schemas.topics import HOSTS, KUBERNETES_TOPICS, NODES, PODS, VMS, VSPHERE_TOPICS, Topic
from underhost.schemas.vsphere import DrsRule, Host, Vm
from underhost.streams.ports import LiveLabels, Outgoing, Publisher, Source, TopicReader
from underhost.streams.simulated.objects import labels_of

TOPICS = {"kubernetes": KUBERNETES_TOPICS, "vsphere": VSPHERE_TOPICS}


@dataclass
class FakeCluster:
    """A Kubernetes cluster and a vCenter in one: state, the changes of it, and every write that was made to it.

    `bound` and `labelled` are the writes, in order. `refuses` maps a pod to the errors that binding it raises, one
    after another. `listed` is set once a source has listed; `shrunk` is what a source does not believe until somebody
    accepts it, `stale` why what it says is too old.
    """

    objects: dict[str, dict[str, tuple[Topic, msgspec.Struct]]] = field(
        default_factory=lambda: {"kubernetes": {}, "vsphere": {}}
    )
    bound: list[tuple[str, str]] = field(default_factory=list)
    labelled: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    refuses: dict[str, list[Exception]] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    watchers: dict[str, list["asyncio.Queue[tuple[Topic, str, bytes | None]]"]] = field(
        default_factory=lambda: {"kubernetes": [], "vsphere": []}
    )
    listed: dict[str, asyncio.Event] = field(
        default_factory=lambda: {"kubernetes": asyncio.Event(), "vsphere": asyncio.Event()}
    )
    shrunk: dict[str, list[str]] = field(default_factory=lambda: {"kubernetes": [], "vsphere": []})
    stale: dict[str, str] = field(default_factory=dict)
    sources: "list[FakeSource]" = field(default_factory=list)
    site: str = "default"
    version: int = 0

    # ---------------------------------------------------------------------------------------------------- its content
    def node(self, name: str, host: str | None = None) -> None:
        """A node, and the VM of the same name on the host."""
        vm = f"00000000-0000-0000-0000-{len(self.objects['vsphere']):012d}"
        node = a_node(name).metadata(uid=f"node-{name}", resourceVersion=self._next(), labels={})
        self.put(NODES, object_key(self.site, "node", name), node.spec(providerID=f"vsphere://{vm}").build())
        if host is not None:
            self.move(name, host)

    def move(self, vm: str, host: str) -> None:
        """The VM runs on this host now."""
        self.put(HOSTS, object_key(self.site, "host", f"moref-{host}"), Host(name=host, id=f"moref-{host}"))
        self.put(VMS, object_key(self.site, "vm", f"vm-{vm}"), Vm(name=vm, id=f"vm-{vm}", host=f"moref-{host}"))

    def pod(
        self,
        name: str,
        node: str = "",
        *,
        app: str = "",
        scheduler: str = "underhost",
        uid: str = "",
        apart: bool = False,
    ) -> None:
        """A pod of namespace `shop`; pods of one `app` must not share a host, `apart` says it in a term, too."""
        pod = a_pod(name).on(node).spec(schedulerName=scheduler).labels({"app": app} if app else {})
        pod = pod.apart(term(HOST, selecting_app(app))) if apart else pod
        pod = pod.metadata(uid=uid or f"pod-{name}", resourceVersion=self._next())
        self.put(PODS, self._pod_key(name), pod.build())

    def delete_pod(self, name: str) -> None:
        """The pod is gone."""
        self.put(PODS, self._pod_key(name), None)

    def _pod_key(self, name: str) -> str:
        return object_key(self.site, "pod", name, "shop")

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    def put(self, topic: Topic, key: str, value: msgspec.Struct | None) -> None:
        """Set or remove one object, and tell whoever watches."""
        source = topic.source or "kubernetes"
        if value is None:
            self.objects[source].pop(key, None)
        else:
            self.objects[source][key] = (topic, value)
        for queue in self.watchers[source]:
            queue.put_nowait((topic, key, encode(value) if value is not None else None))

    def doubt(self, source: str, line: str) -> None:
        """The source does not believe what it lists from now on, and says so in its markers."""
        self.shrunk[source].append(line)
        for each in self.sources:
            if each.name == source:
                each.mark()

    def garble(self, topic: Topic, key: str, data: bytes) -> None:
        """The watcher publishes bytes that are no record."""
        for queue in self.watchers[topic.source or "kubernetes"]:
            queue.put_nowait((topic, key, data))

    # ----------------------------------------------------------------------------------------------------- as a writer
    async def node_labels(self, node: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """See `ports.KubernetesWriter`."""
        labels = dict(self.labels.get(node, {}))
        return f"node-{node}", labels, dict.fromkeys(labels, FIELD_MANAGER)

    async def apply_node_labels(
        self, node: str, uid: str, labels: Mapping[str, str | None], *, force: bool = True
    ) -> None:
        """See `ports.KubernetesWriter`."""
        self.labelled.append((node, dict(labels)))
        self.labels[node] = {key: value for key, value in labels.items() if value is not None}
        key = object_key(self.site, "node", node)
        before = self.objects["kubernetes"][key][1]
        assert isinstance(before, Node)
        raw = msgspec.Raw(msgspec.json.encode(self.labels[node]))
        meta = msgspec.structs.replace(before.metadata, labels=raw, resource_version=self._next())
        self.put(NODES, key, msgspec.structs.replace(before, metadata=meta))

    async def node_taints(self, node: str) -> tuple[str, Sequence[Mapping[str, object]]]:
        """See `ports.KubernetesWriter`."""
        return f"node-{node}", []

    async def replace_taints(
        self, node: str, uid: str, before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
    ) -> None:
        """See `ports.KubernetesWriter`."""

    async def pod_node(self, namespace: str, name: str) -> tuple[str, str]:
        """See `ports.KubernetesWriter`."""
        pod = self.live(name)
        return pod.metadata.uid, pod.spec.node_name

    async def pod_scheduler(self, namespace: str, name: str) -> str:
        """See `ports.KubernetesWriter`."""
        return self.live(name).spec.scheduler_name

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """See `ports.KubernetesWriter`."""
        if self.refuses.get(name):
            raise self.refuses[name].pop(0)
        pod = self.live(name)
        if pod.metadata.uid != uid or pod.spec.node_name:
            raise Conflict(f"pod {name} is bound to {pod.spec.node_name!r}")
        self.bound.append((name, node))
        meta = msgspec.structs.replace(pod.metadata, resource_version=self._next())
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.put(PODS, self._pod_key(name), Pod(meta, spec, pod.status))

    async def pod_labels(self, namespace: str, name: str) -> LiveLabels:
        """See `ports.KubernetesWriter`."""
        metadata = self.live(name).metadata
        return LiveLabels(metadata.uid, metadata.resource_version, labels_of(metadata), {})

    async def merge_pod_labels(
        self, namespace: str, name: str, uid: str, version: str, labels: Mapping[str, str | None]
    ) -> None:
        """See `ports.KubernetesWriter`."""
        pod = self.live(name)
        merged = {key: value for key, value in {**labels_of(pod.metadata), **labels}.items() if value is not None}
        raw = msgspec.Raw(msgspec.json.encode(merged))
        meta = msgspec.structs.replace(pod.metadata, labels=raw, resource_version=self._next())
        self.put(PODS, self._pod_key(name), Pod(meta, pod.spec, pod.status))

    def live(self, name: str) -> Pod:
        """The pod as it is. Raises Gone."""
        entry = self.objects["kubernetes"].get(self._pod_key(name))
        if entry is None or not isinstance(entry[1], Pod):
            raise Gone(f"no pod {name}")
        return entry[1]

    async def rules(self, cluster: str) -> Sequence[DrsRule]:
        """See `ports.DrsWriter`."""
        return []

    async def add_rule(self, cluster: str, rule: DrsRule) -> None:
        """See `ports.DrsWriter`."""

    async def edit_rule(self, cluster: str, rule: DrsRule) -> None:
        """See `ports.DrsWriter`."""

    async def remove_rule(self, cluster: str, rule: DrsRule) -> None:
        """See `ports.DrsWriter`."""

    # ----------------------------------------------------------------------------------------------------- as sources
    def connections(self, *names: str, gates: Mapping[str, asyncio.Event] | None = None) -> Connections:
        """The sources of these names (both by default) and the writers; a gated source lists once its gate is open."""

        def make(site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
            return [
                FakeSource(name, self, publisher, reader, (gates or {}).get(name))
                for name in names or ("kubernetes", "vsphere")
            ]

        return Connections(make, Writers(kubernetes=self))


class FakeSource(Source):
    """Lists a fake cluster and follows it, as a live watcher does; `fails` is raised before the first list."""

    def __init__(
        self,
        name: str,
        cluster: FakeCluster,
        publisher: Publisher,
        reader: TopicReader,
        gate: asyncio.Event | None = None,
        fails: BackendError | None = None,
    ) -> None:
        self.name = name
        self.epoch = time.time_ns() // 1_000_000
        self._cluster, self._publisher, self._reader, self._gate, self._fails = cluster, publisher, reader, gate, fails
        self._changes: asyncio.Queue[tuple[Topic, str, bytes | None]] = asyncio.Queue()

    @property
    def shrunk(self) -> list[str]:
        """As a live watcher's."""
        return self._cluster.shrunk[self.name]

    @property
    def stale(self) -> str:
        """As a live watcher's."""
        return self._cluster.stale.get(self.name, "")

    def accept(self) -> list[str]:
        """As a live watcher's."""
        settled, self.shrunk[:] = list(self.shrunk), []
        self.mark()
        return settled

    def mark(self) -> None:
        """Say in the markers what is believed now."""
        marker = encode(Listed(self.epoch, 0, "; ".join(self.shrunk)))
        for topic in TOPICS[self.name]:
            self._changes.put_nowait((topic, listed_key(self._cluster.site, self.name), marker))

    async def run(self) -> None:
        """See `ports.Source`."""
        if self._fails is not None:
            raise self._fails
        if self._gate is not None:
            await self._gate.wait()
        site, objects = self._cluster.site, self._cluster.objects[self.name]
        changes = self._changes
        self._cluster.sources.append(self)
        self._cluster.watchers[self.name].append(changes)
        listed = {key: (topic, encode(value)) for key, (topic, value) in objects.items()}
        try:
            for topic in TOPICS[self.name]:
                held = await self._reader.state(topic, site)
                gone = [key for key in held if key not in listed and "/listed/" not in key]
                records = [Outgoing(topic, key, None, "gone") for key in gone]
                records += [
                    Outgoing(topic, key, data, "listed")
                    for key, (of, data) in listed.items()
                    if of is topic and held.get(key) != data
                ]
                marker = Listed(self.epoch, len(listed))
                await self._publisher.publish(
                    *records, Outgoing(topic, listed_key(site, self.name), encode(marker), str(self.epoch))
                )
            self._cluster.listed[self.name].set()
            while True:
                topic, key, data = await changes.get()
                await self._publisher.publish(Outgoing(topic, key, data, "change"))
        finally:
            self._cluster.watchers[self.name].remove(changes)
            self._cluster.sources.remove(self)


class FakeEvaluator:
    """An evaluator of two rules: pods of one `app` on one host are a finding; a pending pod goes to the first node
    that holds no pod of its app. `calls` counts the evaluations; `during` runs at the start of each."""

    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        self.calls = 0
        self.snapshots: list[Snapshot] = []
        self._during = during

    def renew(self) -> None:
        """See `PipelineEvaluator`: it keeps nothing."""

    def quorums(self, snapshot: Snapshot) -> list[Quorum]:
        """See `PipelineEvaluator`: there are none."""
        return []

    def update(self, snapshot: Snapshot) -> Report:
        """See `PipelineEvaluator`."""
        self.calls += 1
        self.snapshots.append(snapshot)
        self._during()
        by_place: dict[tuple[str, str], list[str]] = {}
        for name, pod in snapshot.pods.items():
            host = snapshot.node_hosts.get(pod.spec.node_name)
            if app_of(pod) and host is not None:
                by_place.setdefault((app_of(pod), host.host_name), []).append(name)
        findings = [
            Finding(
                id=f"{app}-{host}",
                severity="physical",
                rule="PhysicalHost",
                reason="node(s) didn't match pod anti-affinity rules",
                message=f"{len(pods)} pods of {app} on {host}",
                pod=min(pods),
                peers=sorted(pods)[1:],
            )
            for (app, host), pods in by_place.items()
            if len(pods) > 1
        ]
        return Report(findings, {}, {})

    def state(self, snapshot: Snapshot) -> State:
        """See `PipelineEvaluator`: compiled anew."""
        return State(compile(snapshot, Options()))

    def decide(self, snapshot: Snapshot, assumed: Mapping[str, str]) -> list[PodDecision]:
        """See `PipelineEvaluator`."""
        taken = {(app_of(pod), pod.spec.node_name) for pod in snapshot.pods.values() if pod.spec.node_name}
        taken |= {(app_of(snapshot.pods[name]), node) for name, node in assumed.items()}
        placed: list[PodDecision] = []
        for name, pod in sorted(snapshot.pods.items()):
            if pod.spec.node_name or name in assumed or pod.spec.scheduler_name != OUR_SCHEDULER:
                continue
            node = next((node for node in sorted(snapshot.nodes) if (app_of(pod), node) not in taken), None)
            failed = {} if node else {"node(s) didn't match pod anti-affinity rules": len(snapshot.nodes)}
            taken.add((app_of(pod), node or ""))
            placed.append(PodDecision(name, pod.metadata.uid, node, 0, 0, failed))
        return placed


def app_of(pod: Pod) -> str:
    """The pod's label `app`."""
    return str(msgspec.json.decode(pod.metadata.labels).get("app", ""))
