"""Templates of the objects in scenarios, in the shape that the API server's admission gives them."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from underhost.schemas.kubernetes import (
    Annotations,
    Container,
    Metadata,
    Node,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Service,
    ServiceSpec,
)
from underhost.streams.simulated.controllers import Owner
from underhost.streams.simulated.objects import pod_conditions, raw

OUR_SCHEDULER = "underhost"
RUNS_FOR_FIVE_MINUTES = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
]


def metadata(name: str, namespace: str, labels: Mapping[str, str]) -> Metadata:
    """The metadata of an object with these labels."""
    return Metadata(name=name, namespace=namespace, labels=raw(dict(labels)))


def service(name: str, namespace: str, selector: Mapping[str, str]) -> Service:
    """A service with a selector."""
    return Service(metadata(name, namespace, {}), ServiceSpec(raw(dict(selector))))


def replica_set(namespace: str, name: str, labels: Mapping[str, str], spec: PodSpec) -> Owner:
    """A ReplicaSet of two."""
    return Owner("ReplicaSet", namespace, name, labels, spec, 2)


def static_pod(component: str, node: Node) -> Pod:
    """A control plane component: a mirror pod that its node owns, running."""
    about = Metadata(
        name=f"{component}-{node.metadata.name}",
        namespace="kube-system",
        labels=raw({"component": component, "tier": "control-plane"}),
        annotations=Annotations("static"),
        owner_references=[OwnerReference("Node", node.metadata.name, node.metadata.uid, "v1", True)],
    )
    spec = pod_spec([{"operator": "Exists", "effect": "NoExecute"}], "100m", name=component)
    running = PodStatus(
        phase="Running", conditions=pod_conditions("Initialized", "Ready", "ContainersReady", "PodScheduled")
    )
    return Pod(about, structs.replace(spec, node_name=node.metadata.name, host_network=True), running)


def pod_spec(
    tolerations: list[dict[str, str]], cpu: str = "", memory: str = "", *, name: str = "main", **others: Any
) -> PodSpec:
    """A pod template of one container, with the tolerations that admission adds."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = Container(name, f"registry.example/{name}:v1", raw({"requests": requests} if requests else {}))
    fields: dict[str, object] = {"priority": 0, "preemption_policy": "PreemptLowerPriority", **others}
    return structs.replace(
        PodSpec(containers=[container], tolerations=raw([*tolerations, *RUNS_FOR_FIVE_MINUTES])), **fields
    )


def virtual_machine(memory: str, affinity: Mapping[str, object]) -> PodSpec:
    """A launcher pod: the guest's memory, what the launcher needs beside it, and the device."""
    need = {"cpu": "100m", "memory": memory, "devices.kubevirt.io/kvm": "1"}
    compute = Container(
        "compute",
        "registry.example/virt-launcher:v1",
        raw({"requests": need, "limits": {"devices.kubevirt.io/kvm": "1"}}),
    )
    disk = Container(
        "volumecontainerdisk", "registry.example/disk:v1", raw({"requests": {"cpu": "10m", "memory": "1Mi"}})
    )
    spec = pod_spec([], scheduler_name=OUR_SCHEDULER, affinity=raw(dict(affinity)))
    return structs.replace(spec, containers=[compute, disk])


def one_of(key: str, *values: str) -> dict[str, object]:
    """A selector's expression `key In values`."""
    return {"key": key, "operator": "In", "values": list(values)}
