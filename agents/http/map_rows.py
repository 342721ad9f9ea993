"""The physical map of one site as rows: hosts, nodes on them, pods on those; and what changed since the last picture.

In: snapshots, open findings. Out: rows, and a `MapChange`. An object that is the very same as before costs one
comparison: a change of one pod among twenty thousand makes one row.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from underhost.agents.site.host_labels import proposed
from underhost.agents.site.not_judged import hosts_not_judged, namespaces_not_judged, pods_not_judged
from underhost.agents.site.owners import FINISHED, application_of, controller_of, pinned
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.documents import NotJudged
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.page import MapChange, MapHost, MapNode, MapPod, MapTotals, OpenFindings, SiteMap
from underhost.schemas.records import FindingEvent, pods_named
from underhost.schemas.vsphere import Host

R = TypeVar("R")

_PLACE = re.compile(
    r"(^|[./-])(zone|region|rack|row|room|datacent(er|re)|building|block|chassis|(fault|failure|update|power)-?domain"
    r"|(node-?)?pool)$"
)


@dataclass
class _Rows(Generic[R]):
    """Rows of one kind by name, and what each was made from."""

    rows: dict[str, R] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)

    def update(
        self,
        sources: Mapping[str, Any],
        make: Callable[[str, Any], R | None],
        stale: Iterable[str] = (),
        told: Callable[[R | None, R | None], None] = lambda old, row: None,
    ) -> tuple[list[R], list[str]]:
        """The rows that are other than before, and the names of those that are gone; `stale` ones are made again.

        `told` is told of each of them: the row before, and now.
        """
        again = set(stale)
        changed: list[R] = []
        gone: list[str] = []

        def drop(name: str) -> None:
            if (old := self.rows.pop(name, None)) is not None:
                gone.append(name)
                told(old, None)

        for name in self.sources.keys() - sources.keys():
            drop(name)
        before = self.sources
        self.sources = dict(sources)
        for name, source in sources.items():
            if before.get(name) is source and name not in again:
                continue
            row, old = make(name, source), self.rows.get(name)
            if row is None:
                drop(name)
            elif row != old:
                self.rows[name] = row
                changed.append(row)
                told(old, row)
        return changed, sorted(gone)


class MapRows:
    """One site's rows as they were when last asked."""

    def __init__(self) -> None:
        self._hosts: _Rows[MapHost] = _Rows()
        self._nodes: _Rows[MapNode] = _Rows()
        self._pods: _Rows[MapPod] = _Rows()
        self._findings: _Rows[FindingEvent] = _Rows()
        self._on: defaultdict[str, set[str]] = defaultdict(set)
        self._crowded: set[str] = set()
        self._snapshot = Snapshot()
        self._owners: dict[tuple[str, str, str], str] = {}
        self._not_judged: list[NotJudged] = []
        self._proposed = ""

    def site_map(self, site: str, version: str) -> SiteMap:
        """The rows now, but for the findings."""
        hosts, nodes, pods = self._hosts.rows, self._nodes.rows, self._pods.rows
        hosted = self._snapshot.vsphere or bool(hosts)
        return SiteMap(site, version, list(hosts.values()), list(nodes.values()), list(pods.values()), hosted)

    def outline(self, site: str, version: str) -> SiteMap:
        """The rows now, but of the pods only those that wait or that a finding names; of the others their number."""
        pods = self._pods.rows
        found = self.site_map(site, version)
        found.nodes = [msgspec.structs.replace(row, pods=len(self._on.get(row.name, ()))) for row in found.nodes]
        named = _named_by(self._findings.rows.values())
        found.pods = [pods[name] for name in sorted(named & pods.keys() | self._on.get("", set()))]
        own = [row for row in pods.values() if not row.pinned]
        workloads = {(row.name.partition("/")[0], row.workload) for row in own}
        found.totals = MapTotals(len(pods), len(own), len(workloads))
        return found

    def piece(self, site: str, version: str, nodes: Collection[str]) -> SiteMap:
        """These nodes and their pods."""
        found = [self._nodes.rows[name] for name in nodes if name in self._nodes.rows]
        pods = [self._pods.rows[pod] for row in found for pod in sorted(self._on.get(row.name, ()))]
        return SiteMap(site, version, [], found, pods, self._snapshot.vsphere)

    def open_findings(self, site: str, version: str) -> OpenFindings:
        """The findings now."""
        return OpenFindings(site, version, list(self._findings.rows.values()), self._not_judged)

    def findings_of(self, pod: str) -> list[FindingEvent]:
        """The findings that name a pod."""
        return [event for event in self._findings.rows.values() if pod == event.pod or pod in event.peers]

    def pod(self, name: str) -> MapPod | None:
        """One pod's row."""
        return self._pods.rows.get(name)

    def host_of(self, pod: MapPod) -> str:
        """The name of the host below the pod; "" where it is not known."""
        joined = self._snapshot.node_hosts.get(pod.node)
        return joined.host_name if joined is not None else ""

    def update(self, snapshot: Snapshot, findings: Mapping[str, FindingEvent]) -> MapChange:
        """Bring the rows up to date; what is other than before."""
        before, self._snapshot = self._snapshot, snapshot
        change = MapChange()
        if snapshot.hosts is not before.hosts:
            change.hosts, change.gone_hosts = self._hosts.update(snapshot.hosts, _host)
        moved = [
            name
            for name in before.node_hosts.keys() | snapshot.node_hosts.keys()
            if before.node_hosts.get(name) != snapshot.node_hosts.get(name)
        ]
        if snapshot.nodes is not before.nodes or snapshot.vms is not before.vms or moved:
            change.nodes, change.gone_nodes = self._nodes.update(snapshot.nodes, self._node, moved)
        adopted = self._adopted() if snapshot.workloads is not before.workloads else []
        if snapshot.pods is not before.pods or adopted:
            self._crowded.clear()
            change.pods, change.gone_pods = self._pods.update(snapshot.pods, self._pod, adopted, self._placed)
            change.counts = {node: len(self._on.get(node, ())) for node in sorted(self._crowded)}
        if snapshot.nodes is not before.nodes or moved:
            self._proposed = proposed(snapshot)
        change.findings, change.gone_findings = self._findings.update(findings, lambda _, event: event)
        if change.findings:
            change.pods += self._named(change)
        left_out = self._left_out()
        if left_out != self._not_judged:
            self._not_judged = change.not_judged = left_out
        return change

    def _placed(self, old: MapPod | None, row: MapPod | None) -> None:
        """A pod is there, elsewhere, or gone."""
        if old is not None and row is not None and old.node == row.node:
            return
        if old is not None:
            self._on[old.node].discard(old.name)
            if not self._on[old.node]:
                del self._on[old.node]
        if row is not None:
            self._on[row.node].add(row.name)
        self._crowded |= {each.node for each in (old, row) if each is not None and each.node}

    def _named(self, change: MapChange) -> list[MapPod]:
        """The pods that findings of a change name, but for those that are in it: a follower need not know them yet."""
        others = _named_by(change.findings) - {row.name for row in change.pods}
        return [self._pods.rows[name] for name in sorted(others & self._pods.rows.keys())]

    def _left_out(self) -> list[NotJudged]:
        """What the findings say nothing about."""
        rows = self._pods.rows.values()
        waiting = sum(not row.node for row in rows)
        hosts = hosts_not_judged(self._snapshot)
        if self._proposed:
            hosts = [NotJudged(one.what, f"{one.why}; hosts.label: {self._proposed} would say") for one in hosts]
        left_out = [*hosts, *namespaces_not_judged(self._snapshot)]
        return [*left_out, *pods_not_judged(len(rows), waiting, len(self._nodes.rows))]

    def _node(self, name: str, node: Node) -> MapNode:
        joined = self._snapshot.node_hosts.get(name)
        vm = self._snapshot.vms.get(joined.vm) if joined is not None else None
        conditions = {each.type: each.status for each in node.status.conditions or ()}
        return MapNode(
            name=name,
            host=joined.host if joined is not None else "",
            vm=vm.name if vm is not None and vm.name != name else "",
            vm_ref=joined.vm if joined is not None else "",
            since=joined.since if joined is not None else "",
            ready=conditions.get("Ready", "True") == "True",
            cordoned=node.spec.unschedulable,
            labels=places(node.metadata.labels),
        )

    def _pod(self, name: str, pod: Pod) -> MapPod | None:
        phase = pod.status.phase or ("Running" if pod.spec.node_name else "Pending")
        if phase in FINISHED:
            return None
        conditions = {each.type: each.status for each in pod.status.conditions or ()}
        return MapPod(
            name=name,
            node=pod.spec.node_name,
            workload=self._workload(pod),
            phase=sys.intern(phase),  # the default is left out where it is the very same text
            ready=conditions.get("Ready", "True") == "True",
            leaving=pod.metadata.deletion_timestamp is not None,
            pinned=pinned(pod),
        )

    def _workload(self, pod: Pod) -> str:
        owner = _owner_of(pod)
        if owner is None:
            return ""
        if owner not in self._owners:
            application = application_of(self._snapshot, pod)
            self._owners[owner] = "" if application is None else f"{application.kind}/{application.name}"
        return self._owners[owner]

    def _adopted(self) -> list[str]:
        """The pods whose application may be another, now that the workloads are other ones."""
        before, self._owners = self._owners, {}
        owned = ((name, pod, _owner_of(pod)) for name, pod in self._snapshot.pods.items())
        return [name for name, pod, owner in owned if owner and self._workload(pod) != before.get(owner)]


def _named_by(findings: Iterable[FindingEvent]) -> set[str]:
    """The pods that findings name."""
    return {name for event in findings for name in pods_named(event)}


def _owner_of(pod: Pod) -> tuple[str, str, str] | None:
    """Kind, namespace and name of the controller of a pod."""
    owner = controller_of(pod.metadata.owner_references)
    return (owner.kind, pod.metadata.namespace, owner.name) if owner is not None else None


def _host(ref: str, host: Host) -> MapHost:
    return MapHost(ref, host.name, host.cluster, host.state, dict(host.labels))


def places(labels: msgspec.Raw) -> dict[str, str]:
    """The labels of a node that name a place to group by."""
    return {key: value for key, value in sorted(readable_labels(labels).items()) if _PLACE.search(key)}
