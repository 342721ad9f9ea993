"""A cache of vCenter's inventory: changes in, records of the topics out. Pure.

It is filled from one full list and then kept up to date. A new session starts a new one.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from underhost.schemas.keys import object_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.topics import DRS_RULES, HOSTS, VMS, Topic
from underhost.schemas.vsphere import CONNECTED, DISCONNECTED, MAINTENANCE, Cluster, Host, Inventory, Vm
from underhost.streams.vsphere.changes import CLUSTER, HOST, LEAVE, PASSTHROUGH, VM, ClusterState, ObjectChange, Poll
from underhost.streams.vsphere.records import Records, cluster_name, inventory_records
from underhost.streams.vsphere.scope import may_be_node

TAG = "tag:"
"""What the label of a tag begins with, before its category."""


class Touched(NamedTuple):
    """Objects whose records may have changed. `everything`: a cluster changed, and all records depend on clusters."""

    everything: bool
    vms: set[str]
    hosts: set[str]


class InventoryCache:
    """The inventory of one vCenter as one site sees it.

    Attributes:
        site: whose records are made.
        only: names of the clusters that count; where empty, those that hold a node's VM (all, while no node is known).
        unreadable: morefs that exist but show us nothing (no permission): not listed, and not gone either.
    """

    def __init__(self, site: str, only: Iterable[str]) -> None:
        self.site = site
        self.only = frozenset(only)
        self.unreadable: set[str] = set()
        self._vms: dict[str, dict[str, Any]] = {}
        self._hosts: dict[str, dict[str, Any]] = {}
        self._clusters: dict[str, ClusterState] = {}
        self._names: dict[str, Any] = {}
        self._nodes: frozenset[str] = frozenset()
        self._scope: set[str] = set()
        """Morefs of the clusters that hold, or have held, the VM of a node: a run never looks away from one."""
        self._shared: frozenset[str] = frozenset()
        """Names that several clusters have, in folders or datacenters of their own."""
        self._attribute_names: Mapping[int, str] = {}
        self._placement: Mapping[str, Mapping[str, str]] = {}
        self._tags: Mapping[str, Mapping[str, str]] = {}

    def apply(self, changes: Iterable[ObjectChange]) -> Touched:
        """Apply changes; returns the objects that they touch."""
        touched = self._apply(changes)
        # Its VMs and hosts enter what we watch.
        return touched._replace(everything=True) if self._widen(touched.vms) else touched

    def know_nodes(self, identities: frozenset[str]) -> None:
        """What the VMs of the site's nodes are known by (`scope.py`)."""
        self._nodes = identities
        self._widen(self._vms)

    def know_tags(self, tags: Mapping[str, Mapping[str, str]]) -> None:
        """The tags of hosts, by moref and category, until the session has read them (`Poll.tags`)."""
        self._tags = tags

    def know_clusters(self, clusters: Iterable[ClusterState]) -> None:
        """The clusters as the topic has them: what of them may not be read stays so."""
        self._clusters = {state.ref: state for state in clusters}

    def left_out(self) -> set[str]:
        """Keys of objects in clusters that hold no node's VM: that they are not among the records is no loss."""
        if self.only:
            return set()
        hosts = {ref for ref in self._hosts if not self._is_watched(self._parent_of(ref))}
        vms = {self.vm_key(ref) for ref, vm in self._vms.items() if vm.get("runtime.host") in hosts}
        return vms | set(map(self.host_key, hosts))

    def _widen(self, vms: Iterable[str]) -> bool:
        """Watch the clusters of those of the VMs that may be nodes'; whether one is new."""
        if self.only or not self._nodes:
            return False
        known = (self._vms.get(ref, {}) for ref in vms)
        holding = {self._parent_of(vm.get("runtime.host") or "") for vm in known if may_be_node(vm, self._nodes)}
        before = len(self._scope)
        self._scope |= holding - {""}
        return len(self._scope) > before

    def _apply(self, changes: Iterable[ObjectChange]) -> Touched:
        touched = Touched(False, set(), set())
        for change in changes:
            if change.type == VM:
                self._apply_to(self._vms, change)
                touched.vms.add(change.ref)
            elif change.type == HOST:
                before = self._hosts.get(change.ref, {}).get("parent")
                self._apply_to(self._hosts, change)
                touched.hosts.add(change.ref)
                if (self.only or self._nodes) and self._hosts.get(change.ref, {}).get("parent") != before:
                    touched = touched._replace(everything=True)  # its VMs enter or leave what we watch
            elif change.type == CLUSTER:
                self._names[change.ref] = change.properties.get("name", self._names.get(change.ref))
                if change.kind == LEAVE:
                    self._names.pop(change.ref, None)
                    self._clusters.pop(change.ref, None)
                self._tell_apart()
                touched = touched._replace(everything=True)
        return touched

    def apply_poll(self, poll: Poll) -> None:
        """Apply what was polled; it may touch every object."""
        clusters = {}
        for state in poll.clusters:
            known = self._clusters.get(state.ref)
            if state.rules is None and known is not None:
                state = known._replace(name=state.name)  # no right to read it now: keep what was read last
            clusters[state.ref] = state
        self._clusters = clusters
        self._names.update({state.ref: state.name for state in poll.clusters})
        self._tell_apart()
        self._attribute_names = poll.attribute_names
        self._placement = poll.placement
        if poll.tags is not None:
            self._tags = poll.tags
        self.apply(change for change in poll.host_changes if change.ref in self._hosts)

    def cluster_names(self) -> list[str]:
        """Names of all clusters that vCenter shows, sorted, watched or not."""
        return sorted(name for name in map(self._called, self._names) if name)

    def missing_clusters(self) -> str:
        """One line about clusters that should be watched and are not shown; "" if there are none such."""
        missing = sorted(self.only - set(self.cluster_names()) - self._shared)
        if not missing:
            return ""
        seen = ", ".join(self.cluster_names()) or "none"
        return f"vSphere cluster {', '.join(missing)} is not there, or not ours to see (we see: {seen})"

    def host_refs(self) -> list[str]:
        """Morefs of all hosts, watched or not."""
        return list(self._hosts)

    def vm(self, ref: str) -> Vm | None:
        """The record of one VM; None if it is gone, a template, not in a watched cluster or not readable."""
        known = self._vms.get(ref)
        if known is None or ref in self.unreadable or known.get("config.template"):
            return None
        host = known.get("runtime.host") or ""
        if not self._is_watched(self._parent_of(host)):
            return None
        return _stamped(
            Vm(
                name=known.get("name") or ref,
                id=ref,
                uuid=(known.get("config.uuid") or "").lower(),
                host=host,
                hostname=known.get("guest.hostName") or "",
                cpus=known.get("config.hardware.numCPU") or 0,
                memory_mib=known.get("config.hardware.memoryMB") or 0,
                power="on" if known.get("runtime.powerState") == "poweredOn" else "off",
                reserved_mib=known.get("resourceConfig.memoryAllocation.reservation") or 0,
                datastores=known.get("datastore") or [],
                networks=known.get("network") or [],
                pinned=known.get(PASSTHROUGH) or "",
                uid=ref,
            )
        )

    def host(self, ref: str) -> Host | None:
        """The record of one host; None if it is gone, not in a watched cluster or not readable."""
        known = self._hosts.get(ref)
        if known is None or ref in self.unreadable:
            return None
        if not self._is_watched(self._parent_of(ref)):
            return None
        cores, mhz = known.get("summary.hardware.numCpuCores") or 0, known.get("summary.hardware.cpuMhz") or 0
        return _stamped(
            Host(
                name=known.get("name") or ref,
                id=ref,
                cluster=self._called(self._parent_of(ref)),
                state=_state(known),
                cpu_mhz=cores * mhz,
                memory_mib=(known.get("summary.hardware.memorySize") or 0) // (1024 * 1024),
                labels=self._labels(ref, known),
                datastores=known.get("datastore") or [],
                networks=known.get("network") or [],
                uid=ref,
            )
        )

    def inventory(self) -> Inventory:
        """Everything that is watched and readable; clusters sorted by name."""
        hosts = [host for host in map(self.host, self._hosts) if host is not None]
        vms = [vm for vm in map(self.vm, self._vms) if vm is not None]
        watched = [(self._called(ref), state) for ref, state in self._clusters.items() if self._is_watched(ref)]
        clusters = [
            Cluster(
                name=name,
                id=state.ref,
                drs=state.drs,
                ha=state.ha,
                automation=state.automation,
                overrides=dict(sorted(state.overrides.items())),
                admission=state.admission,
                rules=sorted(
                    (msgspec.structs.replace(rule, cluster=name) for rule in state.rules or ()),
                    key=lambda rule: (rule.name, rule.key),
                ),
                uid=state.ref,
            )
            for name, state in sorted(watched, key=itemgetter(0))
        ]
        return Inventory(hosts=hosts, vms=vms, clusters=clusters)

    def records(self) -> Records:
        """Every record that the topics should hold."""
        records = inventory_records(self.site, self.inventory())
        rules = records[DRS_RULES.name]
        return {**records, DRS_RULES.name: {key: _stamped(rule) for key, rule in rules.items()}}

    def vm_key(self, ref: str) -> str:
        """The record key of a VM."""
        return object_key(self.site, "vm", ref)

    def host_key(self, ref: str) -> str:
        """The record key of a host."""
        return object_key(self.site, "host", ref)

    def changed(self, touched: Touched) -> list[tuple[Topic, str, Struct | None]]:
        """The records of touched VMs and hosts, hosts first, sorted; None where there is none (any more)."""
        hosts = [(HOSTS, self.host_key(ref), self.host(ref)) for ref in sorted(touched.hosts)]
        return [*hosts, *((VMS, self.vm_key(ref), self.vm(ref)) for ref in sorted(touched.vms))]

    def protected(self) -> set[str]:
        """Keys of objects that exist but cannot be read now: their records stay as they are."""
        return {key for ref in self.unreadable for key in (self.vm_key(ref), self.host_key(ref))}

    def _apply_to(self, objects: dict[str, dict[str, Any]], change: ObjectChange) -> None:
        self.unreadable.discard(change.ref)
        if change.kind == LEAVE:
            objects.pop(change.ref, None)
            return
        known = objects.setdefault(change.ref, {})
        # A value that is hidden now is unknown, not the old one. But the configuration of a VM is unset while its
        # files are out of reach, and it still is the same VM with the same uuid.
        for path, value in {**change.properties, **dict.fromkeys(change.missing)}.items():
            if value is not None or path == PASSTHROUGH or not path.startswith("config."):
                known[path] = value
        if not known.get("name"):
            self.unreadable.add(change.ref)

    def _parent_of(self, host: str) -> str:
        return self._hosts.get(host, {}).get("parent") or ""

    def _called(self, cluster: str) -> str:
        """The name of a cluster, with its moref where another one has the same."""
        name = str(self._names.get(cluster) or "")
        return cluster_name(name, cluster) if name in self._shared else name

    def _tell_apart(self) -> None:
        count = Counter(str(name) for name in self._names.values())
        self._shared = frozenset(name for name, clusters in count.items() if clusters > 1)

    def _is_watched(self, cluster: str) -> bool:
        """Whether the cluster counts. A name that several clusters have names all of them.

        What is in an unknown cluster counts, unless clusters are named: we may only not be shown which it is.
        """
        if not self.only:
            return not self._scope or not cluster or cluster in self._scope
        return not self.only.isdisjoint((str(self._names.get(cluster) or ""), self._called(cluster)))

    def _labels(self, ref: str, host: Mapping[str, Any]) -> dict[str, str]:
        """Datacenter and folder of the host's cluster, tags (`tag:CATEGORY`), and custom attributes by their names.

        The nearest tag counts: the host's own before its cluster's. An attribute counts before a tag of its name.
        """
        parent = host.get("parent") or ""
        labels = dict(self._placement.get(parent, {}))
        for tags in (self._tags.get(parent, {}), self._tags.get(ref, {})):
            labels.update({TAG + category: name for category, name in tags.items()})
        for key, value in (host.get("customValue") or {}).items():
            name = self._attribute_names.get(key)
            if name and value:
                labels[name] = value
        return dict(sorted(labels.items()))


def _state(host: Mapping[str, Any]) -> str:
    if host.get("runtime.connectionState") != "connected":
        return DISCONNECTED
    return MAINTENANCE if host.get("runtime.inMaintenanceMode") else CONNECTED


S = TypeVar("S", bound=Struct)


def _stamped(record: S) -> S:
    """The record with a digest of its content as version: vSphere has none of its own."""
    return msgspec.structs.replace(record, resource_version=hashlib.sha256(encode(record)).hexdigest()[:16])
