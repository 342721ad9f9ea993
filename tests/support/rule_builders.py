"""Pods and nodes for the tests of rules, each written as what matters: a_pod("db-1").labels(app="db").on("n1")."""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.documents import NodeVerdict, PodVerdict
from underhost.schemas.records import NodeHost

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def app(name: str) -> dict[str, Any]:
    """The label selector of an application."""
    return {"matchLabels": {"app": name}}


def term(key: str, selector: Mapping[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A term of pod affinity or anti-affinity; selector None is null."""
    found = {"topologyKey": key, **more}
    return found if selector is None else {**found, "labelSelector": selector}


def spread(
    key: str, selector: Mapping[str, Any] | None, skew: int = 1, soft: bool = False, **more: Any
) -> dict[str, Any]:
    """A spread constraint."""
    when = "ScheduleAnyway" if soft else "DoNotSchedule"
    found = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, **more}
    return found if selector is None else {**found, "labelSelector": selector}


class PodBuilder:
    """A pod; every method returns a changed copy."""

    def __init__(self, name: str, namespace: str = "shop") -> None:
        self.name, self.namespace = name, namespace
        self._object: dict[str, Any] = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{namespace}-{name}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"containers": [{"name": "c", "image": "app:1"}]},
            "status": {"phase": "Pending"},
        }

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def _with(self, path: str, value: Any) -> "PodBuilder":
        found = copy.deepcopy(self)
        *parents, last = path.split(".")
        here = found._object
        for parent in parents:
            here = here.setdefault(parent, {})
        here[last] = value
        return found

    def spec(self, **fields: Any) -> "PodBuilder":
        found = self
        for name, value in fields.items():
            found = found._with(f"spec.{name}", value)
        return found

    def labels(self, **labels: str) -> "PodBuilder":
        return self._with("metadata.labels", labels)

    def on(self, node: str) -> "PodBuilder":
        return self._with("spec.nodeName", node)._with("status.phase", "Running")

    def finished(self, phase: str = "Succeeded") -> "PodBuilder":
        return self._with("status.phase", phase)

    def deleted(self) -> "PodBuilder":
        return self._with("metadata.deletionTimestamp", "2026-01-01T01:00:00Z")

    def nominated(self, node: str, priority: int = 0) -> "PodBuilder":
        return self._with("status.nominatedNodeName", node)._with("spec.priority", priority)

    def created(self, time: str) -> "PodBuilder":
        return self._with("metadata.creationTimestamp", time)

    def needs(self, **requests: str) -> "PodBuilder":
        named = {name.replace("_", "-"): amount for name, amount in requests.items()}
        return self.containers({"resources": {"requests": named}})

    def containers(self, *containers: Mapping[str, Any]) -> "PodBuilder":
        return self.spec(containers=[{"name": f"c{i}", "image": "app:1", **c} for i, c in enumerate(containers)])

    def ports(self, *ports: Mapping[str, Any]) -> "PodBuilder":
        return self.containers({"ports": list(ports)})

    def apart(self, *terms: Mapping[str, Any]) -> "PodBuilder":
        return self._with(f"spec.affinity.podAntiAffinity.{REQUIRED}", list(terms))

    def near(self, *terms: Mapping[str, Any]) -> "PodBuilder":
        return self._with(f"spec.affinity.podAffinity.{REQUIRED}", list(terms))

    def prefers_apart(self, weight: int, one: Mapping[str, Any]) -> "PodBuilder":
        return self._with(f"spec.affinity.podAntiAffinity.{PREFERRED}", [{"weight": weight, "podAffinityTerm": one}])

    def prefers_near(self, weight: int, one: Mapping[str, Any]) -> "PodBuilder":
        return self._with(f"spec.affinity.podAffinity.{PREFERRED}", [{"weight": weight, "podAffinityTerm": one}])

    def node_terms(self, *terms: Mapping[str, Any]) -> "PodBuilder":
        return self._with(f"spec.affinity.nodeAffinity.{REQUIRED}", {"nodeSelectorTerms": list(terms)})

    def prefers_nodes(self, *terms: tuple[int, Mapping[str, Any]]) -> "PodBuilder":
        weighted = [{"weight": weight, "preference": one} for weight, one in terms]
        return self._with(f"spec.affinity.nodeAffinity.{PREFERRED}", weighted)

    def spreads(self, *constraints: Mapping[str, Any]) -> "PodBuilder":
        return self.spec(topologySpreadConstraints=list(constraints))

    def tolerates(self, *tolerations: Mapping[str, Any]) -> "PodBuilder":
        return self.spec(tolerations=list(tolerations))

    def build(self) -> k8s.Pod:
        return k8s.decode(json.dumps(self._object).encode(), k8s.Pod)


class NodeBuilder:
    """A node with 4 CPUs, 8 GiB and room for 110 pods; its hostname label is its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._labels: dict[str, str] = {HOST: name}
        self._allocatable: dict[str, str] = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        self._spec: dict[str, Any] = {}
        self._images: list[dict[str, Any]] = []

    def labels(self, labels: Mapping[str, str | None] | None = None, **more: str | None) -> "NodeBuilder":
        """Labels to add; None removes one."""
        found = copy.deepcopy(self)
        found._labels.update({k: v for k, v in {**(labels or {}), **more}.items() if v is not None})
        for key in [k for k, v in {**(labels or {}), **more}.items() if v is None]:
            found._labels.pop(key, None)
        return found

    def zone(self, zone: str) -> "NodeBuilder":
        return self.labels({ZONE: zone})

    def has(self, **allocatable: str) -> "NodeBuilder":
        found = copy.deepcopy(self)
        found._allocatable.update({name.replace("_", "-"): amount for name, amount in allocatable.items()})
        return found

    def tainted(self, *taints: str) -> "NodeBuilder":
        """Taints as key=value:Effect."""
        found = copy.deepcopy(self)
        parsed = [(*taint.rpartition(":")[0].partition("=")[::2], taint.rpartition(":")[2]) for taint in taints]
        found._spec["taints"] = [{"key": key, "value": value, "effect": effect} for key, value, effect in parsed]
        return found

    def cordoned(self) -> "NodeBuilder":
        found = copy.deepcopy(self)
        found._spec["unschedulable"] = True
        return found

    def holds(self, image: str, mib: int) -> "NodeBuilder":
        found = copy.deepcopy(self)
        found._images.append({"names": [image], "sizeBytes": mib << 20})
        return found

    def build(self) -> k8s.Node:
        status = {"allocatable": self._allocatable, "images": self._images}
        whole = {"metadata": {"name": self.name, "labels": self._labels}, "spec": self._spec, "status": status}
        return k8s.decode(json.dumps(whole).encode(), k8s.Node)


def a_pod(name: str, namespace: str = "shop") -> PodBuilder:
    return PodBuilder(name, namespace)


def a_node(name: str) -> NodeBuilder:
    return NodeBuilder(name)


def nodes(*names: str) -> list[NodeBuilder]:
    return [a_node(name) for name in names]


def cluster(
    all_nodes: Iterable[NodeBuilder],
    pods: Iterable[PodBuilder],
    *,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    hosts: Mapping[str, str] | None = None,
    services: Mapping[str, Mapping[str, str]] | None = None,
    workloads: Iterable[Mapping[str, Any]] = (),
) -> Snapshot:
    """A snapshot. `hosts`: node to ESXi host ("" unknown). `services`: `namespace/name` to selector."""
    built_nodes, built_pods = [node.build() for node in all_nodes], [pod.build() for pod in pods]
    found_workloads = [k8s.decode(json.dumps(one).encode(), k8s.Workload) for one in workloads]
    return Snapshot(
        nodes={node.metadata.name: node for node in built_nodes},
        pods={f"{pod.metadata.namespace}/{pod.metadata.name}": pod for pod in built_pods},
        namespaces={
            name: k8s.decode(json.dumps({"metadata": {"name": name, "labels": labels}}).encode(), k8s.Namespace)
            for name, labels in (namespaces or {}).items()
        },
        services={
            key: k8s.decode(
                json.dumps(
                    {
                        "metadata": {"namespace": key.partition("/")[0], "name": key.partition("/")[2]},
                        "spec": {"selector": selector},
                    }
                ).encode(),
                k8s.Service,
            )
            for key, selector in (services or {}).items()
        },
        workloads={f"{one.kind}/{one.metadata.namespace}/{one.metadata.name}": one for one in found_workloads},
        node_hosts={
            node: NodeHost(node=node, vm=f"vm-{node}", host=host, host_name=f"esx-{host}", joined_by="name")
            for node, host in (hosts or {}).items()
        },
    )


def verdict(snapshot: Snapshot, pod: str, options: Options | None = None) -> PodVerdict:
    """The explanation of one pod, `shop/NAME` where no namespace is given."""
    key = pod if "/" in pod else f"shop/{pod}"
    return explain(snapshot, options or Options(), [key]).pods[key]


def refused(snapshot: Snapshot, pod: str, rule: str, options: Options | None = None) -> dict[str, list[str]]:
    """The nodes that the rule refuses for the pod, with its reasons."""
    found = verdict(snapshot, pod, options).nodes
    return {name: one.failing[rule] for name, one in sorted(found.items()) if rule in one.failing}


def scores(snapshot: Snapshot, pod: str, rule: str) -> dict[str, int]:
    """The rule's scores on the feasible nodes; a rule that upstream skips is absent."""
    found = verdict(snapshot, pod).nodes
    return {name: _scores(one)[rule] for name, one in sorted(found.items()) if one.feasible and rule in _scores(one)}


def _scores(one: NodeVerdict) -> dict[str, int]:
    return one.scores if isinstance(one.scores, dict) else {}
