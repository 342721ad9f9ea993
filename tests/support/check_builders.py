"""Objects for the tests of the engine's checks, each written as one line of what matters."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Cluster, Host, Vm


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def owned_by(kind: str, name: str, controller: bool = True) -> list[k8s.OwnerReference]:
    return [
        k8s.OwnerReference(kind=kind, name=name, uid=f"{kind}-{name}", api_version="apps/v1", controller=controller)
    ]


def a_pod(
    name: str,
    node: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "shop",
    owner: str = "",
    ready: bool = True,
    phase: str = "",
    deleted: bool = False,
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: str = "2026-01-01T00:00:00Z",
) -> k8s.Pod:
    """A pod as a dump holds it. `owner` is KIND/NAME; `spec` is merged into the spec."""
    kind, _, owner_name = owner.partition("/")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
        "creationTimestamp": created,
    }
    if owner:
        uid = f"{kind}-{owner_name}"
        metadata["ownerReferences"] = [{"kind": kind, "name": owner_name, "uid": uid, "controller": True}]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    full = {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}], **(spec or {})}
    status = {
        "phase": phase or ("Running" if node else "Pending"),
        "conditions": [{"type": "Ready", "status": "True" if ready and node else "False"}],
    }
    return k8s.decode(json.dumps({"metadata": metadata, "spec": full, "status": status}).encode(), k8s.Pod)


def apart(labels: Mapping[str, str], key: str = "kubernetes.io/hostname", **more: Any) -> dict[str, Any]:
    """A spec with a required anti-affinity against pods of these labels."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}, **more}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def together(labels: Mapping[str, str], key: str = "kubernetes.io/hostname", **more: Any) -> dict[str, Any]:
    """A spec with a required affinity to pods of these labels."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}, **more}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(
    labels: Mapping[str, str], key: str = "kubernetes.io/hostname", max_skew: int = 1, **more: Any
) -> dict[str, Any]:
    """A spec with a DoNotSchedule spread over pods of these labels."""
    constraint = {
        "topologyKey": key,
        "maxSkew": max_skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": dict(labels)},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def a_node(name: str, *, labels: Mapping[str, str] | None = None, spec: Mapping[str, Any] | None = None) -> k8s.Node:
    """A node with its hostname label and room for 110 pods."""
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": dict(spec or {}),
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}},
    }
    return k8s.decode(json.dumps(document).encode(), k8s.Node)


def a_workload(
    kind: str, name: str, replicas: int | None = 3, namespace: str = "shop", owner: str = ""
) -> k8s.Workload:
    over, _, over_name = owner.partition("/")
    return k8s.Workload(
        kind=kind,
        metadata=k8s.Metadata(
            name=name,
            namespace=namespace,
            uid=f"{kind}-{name}",
            owner_references=owned_by(over, over_name) if owner else None,
        ),
        spec=k8s.WorkloadSpec(replicas=replicas),
    )


def a_budget(
    name: str = "db",
    selector: object = None,
    *,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    namespace: str = "shop",
    api_version: str = "policy/v1",
    status: k8s.BudgetStatus | None = None,
) -> k8s.Budget:
    return k8s.Budget(
        metadata=k8s.Metadata(name=name, namespace=namespace, generation=1),
        api_version=api_version,
        spec=k8s.BudgetSpec(min_available=min_available, max_unavailable=max_unavailable, selector=raw(selector)),
        status=status or k8s.BudgetStatus(),
    )


def a_site(
    *objects: k8s.KubernetesObject,
    on: Mapping[str, str] | None = None,
    hosts: Iterable[Host] = (),
    clusters: Iterable[Cluster] = (),
    site: str = "default",
) -> Snapshot:
    """A snapshot of these objects. `on` puts nodes on hosts: every node's VM is `vm-NODE`; hosts are made as needed."""
    nodes = {item.metadata.name: item for item in objects if isinstance(item, k8s.Node)}
    named = {host.ref: host for host in hosts}
    for host in (on or {}).values():
        if host:
            named.setdefault(host, Host(id=host, name=f"esx-{host}", cluster="C0"))
    vms = {f"vm-{node}": Vm(id=f"vm-{node}", name=node, host=host) for node, host in (on or {}).items()}
    joined = {
        node: NodeHost(
            node=node,
            vm=f"vm-{node}",
            host=host,
            host_name=named[host].name if host else "",
            joined_by="name",
        )
        for node, host in (on or {}).items()
        if node in nodes
    }
    return Snapshot(
        site=site,
        nodes=nodes,
        pods=_named(k8s.Pod, objects),
        namespaces={item.metadata.name: item for item in objects if isinstance(item, k8s.Namespace)},
        services=_named(k8s.Service, objects),
        workloads={
            f"{item.kind}/{item.metadata.namespace}/{item.metadata.name}": item
            for item in objects
            if isinstance(item, k8s.Workload)
        },
        budgets=_named(k8s.Budget, objects),
        vms=vms,
        hosts=named,
        clusters={cluster.name: cluster for cluster in clusters},
        node_hosts=joined,
        vsphere=on is not None,
    )


def _named(kind: type, objects: Iterable[k8s.KubernetesObject]) -> dict[str, Any]:
    return {f"{item.metadata.namespace}/{item.metadata.name}": item for item in objects if isinstance(item, kind)}
