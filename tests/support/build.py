"""The objects of a test's site, each written as what matters of it: `a_pod("db-1").labels(app="db").on("n1")`.

Every method returns a changed copy. `build()` is the object as the product decodes it, `json()` as the API has it;
`a_site` puts objects together. A selector is written as one, or as the labels that it matches.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Cluster, Host, Vm

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CREATED = "2026-01-01T00:00:00Z"
DELETED = "2026-01-01T01:00:00Z"
API_VERSIONS = {
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ReplicationController": "v1",
    "VirtualMachineInstance": "kubevirt.io/v1",
    "VirtualMachineInstanceReplicaSet": "kubevirt.io/v1",
}
"""Of the kinds of owners that are not in apps/v1."""
Json = dict[str, Any]
Selector = Mapping[str, Any] | None
B = TypeVar("B", bound="Built")
R = TypeVar("R", bound="WithPodSpec")


# ------------------------------------------------------------------------------------------------- selectors and terms
def app(name: str) -> Json:
    """The label selector of an application."""
    return {"matchLabels": {"app": name}}


def selecting(selector: Mapping[str, Any]) -> Json:
    """The label selector, which may be given as labels."""
    whole = not selector or selector.keys() & {"matchLabels", "matchExpressions"}
    return dict(selector) if whole else {"matchLabels": dict(selector)}


def term(key: str, selector: Selector, **more: Any) -> Json:
    """A term of pod affinity or anti-affinity; selector None is null."""
    found = {"topologyKey": key, **more}
    return found if selector is None else {**found, "labelSelector": selecting(selector)}


def spread(key: str, selector: Selector, skew: int = 1, soft: bool = False, **more: Any) -> Json:
    """A spread constraint; selector None is null."""
    when = "ScheduleAnyway" if soft else "DoNotSchedule"
    found = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, **more}
    return found if selector is None else {**found, "labelSelector": selecting(selector)}


def labelled(key: str, operator: str = "Exists", *values: str) -> Json:
    """A term of node affinity with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


# -------------------------------------------------------------------------------------------------------- the builders
class Built:
    """An object of the API server."""

    api_version, kind = "v1", ""
    struct: type[msgspec.Struct]

    def __init__(self, name: str, namespace: str = "", **fields: Any) -> None:
        self.name, self.namespace = name, namespace
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        self._object: Json = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields}

    @property
    def key(self) -> str:
        """`namespace/name`, as mappings of a snapshot have it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def put(self: B, *path: str, value: Any) -> B:
        """The object with this value at the path of field names."""
        found = copy.copy(self)
        found._object = _changed(self._object, path, value)
        return found

    def at(self, *path: str) -> Any:
        """What is at the path, or None."""
        found: Any = self._object
        for name in path:
            found = None if found is None else found.get(name)
        return found

    def labels(self: B, labels: Mapping[str, str | None] | None = None, **more: str | None) -> B:
        """Labels to add; None removes one."""
        asked = {**(labels or {}), **more}
        kept = {**(self.at("metadata", "labels") or {}), **asked}
        return self.put("metadata", "labels", value={key: value for key, value in kept.items() if value is not None})

    def metadata(self: B, **fields: Any) -> B:
        """Further fields of the metadata."""
        return self.put("metadata", value={**self._object["metadata"], **fields})

    def owned_by(self: B, owner: str) -> B:
        """`owner` is KIND/NAME."""
        kind, _, name = owner.partition("/")
        reference = {"apiVersion": API_VERSIONS.get(kind, "apps/v1"), "kind": kind, "name": name}
        return self.metadata(ownerReferences=[{**reference, "uid": f"{kind}-{name}", "controller": True}])

    def json(self) -> Json:
        """As the API server has it."""
        return copy.deepcopy(self._object)

    def sent(self) -> Json:
        """As somebody sends it to an API server, which itself gives the uid and the time."""
        found = self.json()
        for name in ("uid", "creationTimestamp"):
            found["metadata"].pop(name, None)
        return found

    def build(self) -> Any:
        """As the product decodes it."""
        return k8s.decode(json.dumps(self._object).encode(), self.struct)


def _changed(tree: Mapping[str, Any] | None, path: tuple[str, ...], value: Any) -> Json:
    first, *rest = path
    tree = tree or {}
    return {**tree, first: _changed(tree.get(first), tuple(rest), value) if rest else value}


class WithPodSpec(Built):
    """Something that has a pod's spec: a pod, or a manifest with a template."""

    spec_at: tuple[str, ...] = ("spec",)

    def spec(self: R, **fields: Any) -> R:
        """Fields of the pod's spec, by their names in the API."""
        return self.put(*self.spec_at, value={**(self.at(*self.spec_at) or {}), **fields})

    def needs(self: R, **requests: str) -> R:
        """One container with these requests."""
        named = {name.replace("_", "-"): amount for name, amount in requests.items()}
        return self.containers({"resources": {"requests": named}})

    def containers(self: R, *containers: Mapping[str, Any]) -> R:
        """These containers, with names and an image."""
        return self.spec(containers=[{"name": f"c{i}", "image": "app:1", **c} for i, c in enumerate(containers)])

    def ports(self: R, *ports: Mapping[str, Any]) -> R:
        """One container with these ports."""
        return self.containers({"ports": list(ports)})

    def apart(self: R, *terms: Mapping[str, Any]) -> R:
        """Required anti-affinity."""
        return self._affinity("podAntiAffinity", REQUIRED, list(terms))

    def near(self: R, *terms: Mapping[str, Any]) -> R:
        """Required affinity."""
        return self._affinity("podAffinity", REQUIRED, list(terms))

    def prefers_apart(self: R, weight: int, one: Mapping[str, Any]) -> R:
        """One more preferred anti-affinity."""
        return self._prefers("podAntiAffinity", {"weight": weight, "podAffinityTerm": one})

    def prefers_near(self: R, weight: int, one: Mapping[str, Any]) -> R:
        """One more preferred affinity."""
        return self._prefers("podAffinity", {"weight": weight, "podAffinityTerm": one})

    def node_terms(self: R, *terms: Mapping[str, Any]) -> R:
        """Required node affinity."""
        return self._affinity("nodeAffinity", REQUIRED, {"nodeSelectorTerms": list(terms)})

    def prefers_nodes(self: R, *terms: tuple[int, Mapping[str, Any]]) -> R:
        """Preferred node affinity."""
        weighted = [{"weight": weight, "preference": one} for weight, one in terms]
        return self._affinity("nodeAffinity", PREFERRED, weighted)

    def _prefers(self: R, side: str, one: Json) -> R:
        before = self.at(*self.spec_at, "affinity", side, PREFERRED) or []
        return self._affinity(side, PREFERRED, [*before, one])

    def _affinity(self: R, side: str, strength: str, value: Any) -> R:
        return self.put(*self.spec_at, "affinity", side, strength, value=value)

    def spreads(self: R, *constraints: Mapping[str, Any]) -> R:
        """Spread constraints."""
        return self.spec(topologySpreadConstraints=list(constraints))

    def tolerates(self: R, *tolerations: Mapping[str, Any]) -> R:
        """Tolerations."""
        return self.spec(tolerations=list(tolerations))


class PodBuilder(WithPodSpec):
    """A pod that waits for a node."""

    kind, struct = "Pod", k8s.Pod

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, namespace, status={"phase": "Pending"})
        self._object["metadata"] |= {"uid": f"uid-{namespace}-{name}", "creationTimestamp": CREATED}
        self._object["spec"] = {"containers": [{"name": "c", "image": "app:1"}]}

    def on(self, node: str) -> "PodBuilder":
        """It runs on the node and is ready; it goes on waiting where that is ""."""
        return self.spec(nodeName=node).finished("Running").ready() if node else self

    def ready(self, is_ready: bool = True) -> "PodBuilder":
        """It is ready, or it is not."""
        return self.put("status", "conditions", value=[{"type": "Ready", "status": str(is_ready)}])

    def finished(self, phase: str = "Succeeded") -> "PodBuilder":
        """It is in this phase."""
        return self.put("status", "phase", value=phase)

    def deleted(self) -> "PodBuilder":
        """It is being deleted."""
        return self.metadata(deletionTimestamp=DELETED)

    def nominated(self, node: str, priority: int = 0) -> "PodBuilder":
        """It waits for the room that it has been promised."""
        return self.put("status", "nominatedNodeName", value=node).spec(priority=priority)

    def created(self, time: str) -> "PodBuilder":
        """It was created at this time."""
        return self.metadata(creationTimestamp=time)


class NodeBuilder(Built):
    """A node with 4 CPUs, 8 GiB and room for 110 pods; its hostname label is its name."""

    kind, struct = "Node", k8s.Node

    def __init__(self, name: str) -> None:
        room = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        super().__init__(name, status={"allocatable": room})
        self._object["metadata"] |= {"uid": f"uid-{name}", "labels": {HOST: name}}

    def zone(self, zone: str) -> "NodeBuilder":
        """It is in the zone."""
        return self.labels({ZONE: zone})

    def spec(self, **fields: Any) -> "NodeBuilder":
        """Fields of the spec, by their names in the API."""
        return self.put("spec", value={**(self.at("spec") or {}), **fields})

    def has(self, **allocatable: str) -> "NodeBuilder":
        """So much of these resources may be used."""
        named = {name.replace("_", "-"): amount for name, amount in allocatable.items()}
        return self.put("status", "allocatable", value={**self.at("status", "allocatable"), **named})

    def tainted(self, *taints: str) -> "NodeBuilder":
        """Taints as key=value:Effect."""
        parsed = [(*taint.rpartition(":")[0].partition("=")[::2], taint.rpartition(":")[2]) for taint in taints]
        return self.spec(taints=[{"key": key, "value": value, "effect": effect} for key, value, effect in parsed])

    def cordoned(self) -> "NodeBuilder":
        """It takes no new pods."""
        return self.spec(unschedulable=True)

    def holds(self, image: str, mib: int) -> "NodeBuilder":
        """One more image that it holds."""
        images = [*(self.at("status", "images") or []), {"names": [image], "sizeBytes": mib << 20}]
        return self.put("status", "images", value=images)


class WorkloadBuilder(Built):
    """An owner of pods, as a cluster has it."""

    struct = k8s.Workload

    def __init__(self, kind: str, name: str, replicas: int | None, namespace: str) -> None:
        self.kind, self.api_version = kind, API_VERSIONS.get(kind, "apps/v1")
        super().__init__(name, namespace, spec={} if replicas is None else {"replicas": replicas})
        self._object["metadata"] |= {"uid": f"{kind}-{name}"}

    def selects(self, selector: object) -> "WorkloadBuilder":
        """Its selector, as this kind writes one."""
        return self.put("spec", "selector", value=selector)


class ManifestBuilder(WithPodSpec):
    """A workload as a person writes it, its pods labelled app=NAME."""

    spec_at = ("spec", "template", "spec")

    def __init__(self, kind: str, name: str, replicas: int | None, namespace: str) -> None:
        self.kind, self.api_version = kind, API_VERSIONS.get(kind, "apps/v1")
        spec = {"containers": [{"name": "c", "image": "app:1"}]}
        template = {"metadata": {"labels": {"app": name}}, "spec": spec}
        asked = {} if replicas is None else {"replicas": replicas}
        super().__init__(name, namespace, spec={"selector": app(name), "template": template, **asked})


class BudgetBuilder(Built):
    """A disruption budget."""

    kind, api_version, struct = "PodDisruptionBudget", "policy/v1", k8s.Budget


class NamespaceBuilder(Built):
    """A namespace."""

    kind, struct = "Namespace", k8s.Namespace


class ServiceBuilder(Built):
    """A service."""

    kind, struct = "Service", k8s.Service


# --------------------------------------------------------------------------------------------------------- the objects
def a_pod(name: str, namespace: str = "shop") -> PodBuilder:
    """A pod that waits for a node."""
    return PodBuilder(name, namespace)


def a_node(name: str) -> NodeBuilder:
    """A node with 4 CPUs, 8 GiB and room for 110 pods."""
    return NodeBuilder(name)


def nodes(*names: str) -> list[NodeBuilder]:
    """Nodes of these names."""
    return [a_node(name) for name in names]


def a_workload(kind: str, name: str, replicas: int | None = 3, namespace: str = "shop") -> WorkloadBuilder:
    """An owner of pods, as a cluster has it."""
    return WorkloadBuilder(kind, name, replicas, namespace)


def a_manifest(
    kind: str = "Deployment", name: str = "db", replicas: int | None = 3, namespace: str = "shop"
) -> ManifestBuilder:
    """A workload as a person writes it, its pods labelled app=NAME."""
    return ManifestBuilder(kind, name, replicas, namespace)


def a_budget(
    name: str = "db",
    selector: Selector = None,
    *,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    namespace: str = "shop",
    version: str = "policy/v1",
    **spec: Any,
) -> BudgetBuilder:
    """A disruption budget; selector None is null."""
    bounds = {"minAvailable": min_available, "maxUnavailable": max_unavailable}
    given = {field: bound for field, bound in bounds.items() if bound is not None}
    whole = None if selector is None else selecting(selector)
    made = BudgetBuilder(name, namespace, spec={"selector": whole, **given, **spec})
    return made.put("apiVersion", value=version).metadata(generation=1)


def a_namespace(name: str, **labels: str) -> NamespaceBuilder:
    """A namespace with these labels, and the one with its name that every namespace of an API server has."""
    return NamespaceBuilder(name).labels({**labels, "kubernetes.io/metadata.name": name})


def a_service(key: str, **labels: str) -> ServiceBuilder:
    """A service `namespace/name` in front of pods with these labels."""
    namespace, _, name = key.partition("/")
    return ServiceBuilder(name, namespace, spec={"selector": labels})


# ------------------------------------------------------------------------------------------------------------ the site
def a_site(
    *objects: Built | k8s.KubernetesObject,
    on: Mapping[str, str] | None = None,
    hosts: Iterable[Host] = (),
    clusters: Iterable[Cluster] = (),
    site: str = "default",
) -> Snapshot:
    """A snapshot of these objects.

    `on` is the ESXi host of each node, "" where it is not known: every node's VM is `vm-NODE`, and hosts that `hosts`
    does not name are made. Without `on` the site has no vSphere side.
    """
    decoded = [one.build() if isinstance(one, Built) else one for one in objects]
    named = {host.ref: host for host in hosts}
    for host in (on or {}).values():
        if host:
            named.setdefault(host, Host(id=host, name=f"esx-{host}", cluster="C0"))
    present = {one.metadata.name for one in decoded if isinstance(one, k8s.Node)}
    return Snapshot(
        site=site,
        nodes=_keyed(decoded, k8s.Node),
        pods=_keyed(decoded, k8s.Pod),
        namespaces=_keyed(decoded, k8s.Namespace),
        services=_keyed(decoded, k8s.Service),
        workloads={
            f"{one.kind}/{one.metadata.namespace}/{one.metadata.name}": one
            for one in decoded
            if isinstance(one, k8s.Workload)
        },
        budgets=_keyed(decoded, k8s.Budget),
        vms={f"vm-{node}": Vm(id=f"vm-{node}", name=node, host=host) for node, host in (on or {}).items()},
        hosts=named,
        clusters={cluster.name: cluster for cluster in clusters},
        node_hosts={
            node: NodeHost(node, f"vm-{node}", host, named[host].name if host else "", "name")
            for node, host in (on or {}).items()
            if node in present
        },
        vsphere=on is not None,
    )


def _keyed(objects: Iterable[Any], kind: type) -> dict[str, Any]:
    mine = [one for one in objects if isinstance(one, kind)]
    return {f"{one.metadata.namespace}/{one.metadata.name}".lstrip("/"): one for one in mine}
