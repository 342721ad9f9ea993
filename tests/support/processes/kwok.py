"""Nodes and pods that KWOK keeps alive on a real API server, as they are sent to it."""

from typing import Any

from support.build import Json, a_node, a_pod, term

HOST_LABEL = "node.cluster.x-k8s.io/esxi-host"


def kwok_node(name: str, uuid: str, *, host: str = "", cpu: str = "4", memory: str = "32Gi", **spec: Any) -> Json:
    """A node on the VM with this uuid; it carries the label of its host if one is given."""
    node = a_node(name).labels({"type": "kwok", HOST_LABEL: host or None}).has(cpu=cpu, memory=memory)
    node = node.metadata(annotations={"kwok.x-k8s.io/node": "fake"}).spec(providerID=f"vsphere://{uuid}", **spec)
    return node.put("status", "capacity", value=node.at("status", "allocatable")).sent()


def kwok_pod(
    name: str, scheduler: str, *, cpu: str = "100m", memory: str = "500Mi", app: str = "", **spec: Any
) -> Json:
    """A pod; no two pods of an `app` may share a physical host."""
    pod = a_pod(name, "").needs(cpu=cpu, memory=memory)
    pod = pod.spec(schedulerName=scheduler, terminationGracePeriodSeconds=0, **spec)
    return (pod.labels(app=app).apart(term(HOST_LABEL, {"app": app})) if app else pod).sent()


def uuid_of(number: int) -> str:
    """The uuid of a VM."""
    return f"42000000-0000-4000-8000-{number:012d}"
