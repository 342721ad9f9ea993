"""The simulated cluster's own scheduler: simple on purpose, so that the effect of Underhost is visible.

In: waiting pods of `default-scheduler`. Out: their bindings. It reads readiness, cordon, taints and nodeSelector, then
takes the node with the fewest siblings in its zone, then on itself, then the fewest pods. It ignores pods of other
schedulers, `underhost` among them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from underhost.schemas.kubernetes import Condition, Node, Pod, PodSpec
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import labels_of, plain, pod_conditions, with_spec, with_status

ZONE = "topology.kubernetes.io/zone"
DEFAULT_SCHEDULER = "default-scheduler"


def schedule_waiting(cluster: SimulatedKubernetes, pins: Mapping[str, str], owner_of: Mapping[str, object]) -> None:
    """Place the waiting pods, oldest first.

    Args:
        pins: the node of each DaemonSet pod, by `namespace/name`.
        owner_of: the owner of each pod; pods of one owner are siblings.
    """
    for name, pod in sorted(cluster.pods().items(), key=lambda item: (age(item[1]), item[0])):
        if pod.spec.node_name or pod.spec.scheduler_name != DEFAULT_SCHEDULER or pod.metadata.deletion_timestamp:
            continue
        siblings = {other for other, owner in owner_of.items() if owner == owner_of.get(name)}
        node = _choose_node(cluster, pod, pins.get(name), siblings)
        if node is None:
            unschedulable = [Condition("PodScheduled", "False", "Unschedulable")]
            cluster.update(with_status(pod, conditions=unschedulable))
            continue
        cluster.update(with_status(with_spec(pod, node_name=node), conditions=pod_conditions("PodScheduled")))


def _choose_node(cluster: SimulatedKubernetes, pod: Pod, pin: str | None, siblings: set[str]) -> str | None:
    wanted, pods = plain(pod.spec.node_selector) or {}, cluster.pods()
    zones = {name: labels_of(node.metadata).get(ZONE, "") for name, node in cluster.nodes().items()}
    possible = []
    for name, node in cluster.nodes().items():
        labels = labels_of(node.metadata)
        if pin not in (None, name) or any(labels.get(key) != value for key, value in wanted.items()):
            continue
        if tolerates(pod.spec, node):
            here = {other for other, running in pods.items() if running.spec.node_name == name}
            in_zone = sum(zones.get(pods[other].spec.node_name) == zones[name] for other in siblings & pods.keys())
            possible.append((in_zone, len(siblings & here), len(here), name))
    return min(possible)[3] if possible else None


def age(pod: Pod) -> tuple[str, int]:
    """Sorts pods by creation; those of one second by their version."""
    return pod.metadata.creation_timestamp or "", int(pod.metadata.resource_version or 0)


def tolerates(spec: PodSpec, node: Node, *, cordon: bool = True) -> bool:
    """Whether a pod may be placed on a node as far as readiness, cordon and taints go."""
    if cordon and any(item.type == "Ready" and item.status != "True" for item in node.status.conditions or ()):
        return False
    tolerations = plain(spec.tolerations) or []
    return all(
        any(tolerated(toleration, taint) for toleration in tolerations)
        for taint in _hard_taints(node)
        if cordon or taint["key"] != "node.kubernetes.io/unschedulable"
    )


def _hard_taints(node: Node) -> Iterator[dict[str, Any]]:
    return (taint for taint in plain(node.spec.taints) or [] if taint["effect"] in ("NoSchedule", "NoExecute"))


def tolerated(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether one toleration matches one taint, for however long."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
