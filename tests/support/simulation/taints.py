"""The simulated taint eviction controller: NoExecute taints end the pods that do not tolerate them, at once or in time.

In: changes of nodes and pods. Out: deletions. As in the real one a budget is not asked, and a pod without a toleration
of its own stays for five minutes on a node that is not ready or not reachable (admission adds that toleration); mirror
pods and, for those two taints, DaemonSets' pods stay.
"""

from typing import Any

from underhost.schemas.kubernetes import Node, Pod
from underhost.streams.simulated.drains import stays_in_a_drain
from underhost.streams.simulated.failures import UNREACHABLE
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import plain
from underhost.streams.simulated.scheduler import tolerated
from underhost.streams.simulated.store import Change
from underhost.streams.simulated.timeline import Timeline

NO_EXECUTE = "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
DEFAULT_SECONDS = 300.0


class TaintEvictions:
    """The controller of one cluster."""

    def __init__(self, timeline: Timeline, cluster: SimulatedKubernetes) -> None:
        self._timeline, self._cluster = timeline, cluster
        self._planned: dict[str, float] = {}
        """When the pods on tainted nodes end, by uid."""
        cluster.store.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.key.kind == "node" and change.value is not None:
            for pod in self._cluster.pods().values():
                if pod.spec.node_name == change.key.name:
                    self._judge(pod, change.value)
        elif change.key.kind == "pod" and change.value is not None and change.value.spec.node_name:
            node = self._cluster.nodes().get(change.value.spec.node_name)
            if node is not None:
                self._judge(change.value, node)

    def _judge(self, pod: Pod, node: Node) -> None:
        seconds = tolerated_for(pod, node)
        if seconds is None or pod.metadata.deletion_timestamp is not None:
            self._planned.pop(pod.metadata.uid, None)
            return
        due = self._timeline.now() + seconds
        if self._planned.get(pod.metadata.uid, float("inf")) <= due:
            return
        self._planned[pod.metadata.uid] = due
        self._timeline.after(seconds, lambda: self._end(pod, due))

    def _end(self, pod: Pod, due: float) -> None:
        if self._planned.get(pod.metadata.uid) == due:
            del self._planned[pod.metadata.uid]
            held = self._cluster.pods().get(f"{pod.metadata.namespace}/{pod.metadata.name}")
            if held is not None and held.metadata.uid == pod.metadata.uid:
                self._cluster.delete_pod(pod.metadata.namespace, pod.metadata.name)


def tolerated_for(pod: Pod, node: Node) -> float | None:
    """Seconds that the node's NoExecute taints leave the pod, 0 for none; None where it may stay for ever."""
    limits = [_limit(pod, taint) for taint in plain(node.spec.taints) or [] if taint["effect"] == NO_EXECUTE]
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(pod: Pod, taint: dict[str, Any]) -> float | None:
    lost = taint["key"] in (UNREACHABLE, NOT_READY)
    mirror = pod.metadata.annotations is not None and pod.metadata.annotations.mirror is not None
    if mirror or (lost and stays_in_a_drain(pod)):
        return None
    for toleration in plain(pod.spec.tolerations) or []:
        if tolerated(toleration, taint):  # the first that matches counts
            seconds = toleration.get("tolerationSeconds")
            return None if seconds is None else max(0.0, float(seconds))
    return DEFAULT_SECONDS if lost else 0.0
