"""Cordons, taints and drains of a simulated cluster, as kubectl does them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from underhost.schemas.errors import Refused, Retry
from underhost.schemas.kubernetes import Pod
from underhost.streams.simulated.kubernetes import EVICTION_RETRY, SimulatedKubernetes
from underhost.streams.simulated.objects import plain, raw
from underhost.streams.simulated.timeline import Timeline

CORDONED = "node.kubernetes.io/unschedulable"


def cordon(cluster: SimulatedKubernetes, name: str, unschedulable: bool = True) -> None:
    """Close a node for new pods, or open it. Raises Gone."""
    node = cluster.node(name)
    cluster.update(msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=unschedulable)))
    set_taints(cluster, name, CORDONED, [{"key": CORDONED, "effect": "NoSchedule"}] if unschedulable else [])


def set_taints(cluster: SimulatedKubernetes, name: str, key: str, taints: list[Mapping[str, str]]) -> None:
    """Put these in the place of the node's taints of a key. Raises Gone."""
    node = cluster.node(name)
    others = [taint for taint in plain(node.spec.taints) or [] if taint["key"] != key]
    spec = msgspec.structs.replace(node.spec, taints=raw([*others, *taints]))
    cluster.update(msgspec.structs.replace(node, spec=spec))


def drain(cluster: SimulatedKubernetes, timeline: Timeline, name: str) -> None:
    """Cordon a node and evict its pods; what a budget refuses is tried again every five seconds. Raises Gone.

    DaemonSet and mirror pods stay, as with `kubectl drain --ignore-daemonsets`.
    """
    cordon(cluster, name)
    evict_all(cluster, timeline, name)


def evict_all(cluster: SimulatedKubernetes, timeline: Timeline, name: str) -> None:
    """Evict what is left on a cordoned node; what a budget refuses is tried again."""
    node: Any = cluster.nodes().get(name)
    if node is None or not node.spec.unschedulable:
        return
    refused = False
    for pod in cluster.pods().values():
        if pod.spec.node_name != name or pod.metadata.deletion_timestamp is not None or stays_in_a_drain(pod):
            continue
        try:
            cluster.evict_pod(pod.metadata.namespace, pod.metadata.name)
        except (Retry, Refused):
            refused = True
    if refused:
        timeline.after(EVICTION_RETRY, lambda: evict_all(cluster, timeline, name))


def stays_in_a_drain(pod: Pod) -> bool:
    """Whether it is a DaemonSet's or a mirror pod."""
    if pod.metadata.annotations is not None and pod.metadata.annotations.mirror is not None:
        return True
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())
