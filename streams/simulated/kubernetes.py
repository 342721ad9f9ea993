"""A simulated Kubernetes API server: objects, and the verbs by which they are changed.

In: what a scenario creates, and the commands of the sinks (this class is a KubernetesWriter by structure). Out: changes
of nodes, pods, namespaces, services, workloads and budgets in `store`. What reacts to the changes (owners, scheduler,
kubelets, budget status) is in `controllers.py`. Preconditions and refusals are the real server's.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from underhost.schemas.errors import Conflict, Gone, Refused, Retry
from underhost.schemas.kubernetes import Budget, Condition, KubernetesObject, Node, Pod, Workload
from underhost.streams.ports import LiveLabels
from underhost.streams.simulated.objects import (
    is_ready,
    labels_of,
    plain,
    random_uid,
    raw,
    selects,
    with_metadata,
    with_spec,
    with_status,
)
from underhost.streams.simulated.store import ObjectKey, Store
from underhost.streams.simulated.timeline import Timeline

OUR_MANAGER = "underhost"
EVICTION_RETRY = 5.0
"""Seconds after which a refused eviction is tried again, as kubectl drain does."""
GRACE = 1.0
"""Seconds from a pod's deletion to its end."""
KUBELET_LOOKS = 5.0
"""Seconds between two checks whether a lost node is back to end a pod."""


class SimulatedKubernetes:
    """The API server of the simulated cluster.

    Args:
        timeline: when things happen.
        source: where uids come from, so that a seed decides them.

    Attributes:
        store: the objects, and who watches them.
        managers: who owns each label of each node: field managers by key by node.
    """

    def __init__(self, timeline: Timeline, source: random.Random) -> None:
        self.store = Store(_stamp)
        self._timeline = timeline
        self._random = source
        self.managers: dict[str, dict[str, set[str]]] = {}

    # ------------------------------------------------------------------------------------------------------ any object
    def create(self, value: KubernetesObject, *, manager: str = "kubectl") -> Any:
        """Create an object, with a uid and a creation time. Raises Conflict when the name is taken."""
        key = key_of(value)
        if self.store.get(key.kind, key.name, key.namespace) is not None:
            raise Conflict(f"{key.kind} {key.name} already exists")
        if isinstance(value, Node):
            self.managers[key.name] = {label: {manager} for label in labels_of(value.metadata)}
        uid = value.metadata.uid or random_uid(self._random)
        return self.store.put(
            key,
            with_metadata(
                value,
                uid=uid,
                generation=0 if isinstance(value, Node | Pod) else 1,
                creation_timestamp=value.metadata.creation_timestamp or self._timeline.stamp(),
            ),
        )

    def update(self, value: KubernetesObject) -> Any:
        """Replace an object that exists."""
        return self.store.put(key_of(value), value)

    def delete(self, value: KubernetesObject) -> None:
        """Delete an object that has no grace period."""
        self.store.drop(key_of(value))

    def nodes(self) -> dict[str, Node]:
        """Nodes by name."""
        return {key.name: node for key, node in self.store.of_kind("node")}

    def pods(self) -> dict[str, Pod]:
        """Pods by `namespace/name`."""
        return {f"{key.namespace}/{key.name}": pod for key, pod in self.store.of_kind("pod")}

    def budgets(self) -> list[Budget]:
        """Disruption budgets, by namespace and name."""
        return [budget for _, budget in self.store.of_kind("poddisruptionbudget")]

    # ------------------------------------------------------------------------------------------- the Kubernetes writer
    async def node_labels(self, node: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """(uid, labels, field manager by label key; of a shared label not ours). Raises Gone."""
        held = self.node(node)
        managers = {key: sorted(owners, key=_ours_last)[0] for key, owners in self.managers[node].items()}
        return held.metadata.uid, labels_of(held.metadata), managers

    async def apply_node_labels(
        self, node: str, uid: str, labels: Mapping[str, str | None], *, force: bool = True
    ) -> None:
        """A server-side apply: `underhost` owns these labels from now on.

        It takes over a label with another value and shares one with this value. It gives up labels that are left out or
        None; they are removed unless somebody else owns them, too. Raises Conflict: no such node, another uid, or,
        unless forced, a label that somebody else has set to another value.
        """
        held: Node | None = self.store.get("node", node)
        if held is None or held.metadata.uid != uid:
            raise Conflict(f"Precondition failed: UID in precondition: {uid}, node {node} is not that one")
        current, managers = labels_of(held.metadata), self.managers[node]
        wanted = {key: value for key, value in labels.items() if value is not None}
        taken = [key for key in wanted if managers.get(key, set()) - {OUR_MANAGER} and current.get(key) != wanted[key]]
        if taken and not force:
            raise Conflict(f"Apply failed: somebody else has set {', '.join(sorted(taken))}")
        for key in [key for key, owners in managers.items() if OUR_MANAGER in owners and key not in wanted]:
            managers[key].discard(OUR_MANAGER)
            if not managers[key]:
                del managers[key], current[key]
        for key, value in wanted.items():
            owners = managers.setdefault(key, set())
            if current.get(key) != value:
                owners.clear()
            owners.add(OUR_MANAGER)
            current[key] = value
        self.update(with_metadata(held, labels=raw(current)))

    async def node_taints(self, node: str) -> tuple[str, Sequence[Mapping[str, object]]]:
        """(uid, taints). Raises Gone."""
        held = self.node(node)
        return held.metadata.uid, plain(held.spec.taints) or []

    async def replace_taints(
        self, node: str, uid: str, before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
    ) -> None:
        """Make this the list of taints. Raises Gone, or Conflict: another list, or another uid."""
        now, taints = await self.node_taints(node)
        if now != uid or list(taints) != list(before):
            raise Conflict("the server rejected our request due to an error in our request")
        self.update(with_spec(self.node(node), taints=raw(list(after))))

    async def pod_node(self, namespace: str, name: str) -> tuple[str, str]:
        """(uid, node name, "" while it is not bound). Raises Gone."""
        pod = self.pod(namespace, name)
        return pod.metadata.uid, pod.spec.node_name

    async def pod_scheduler(self, namespace: str, name: str) -> str:
        """The scheduler that the pod names. Raises Gone."""
        return self.pod(namespace, name).spec.scheduler_name

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """Bind a pod, which gets the labels, as from Kubernetes 1.35 on.

        Raises Gone, or Conflict (bound, being deleted, gated, another uid).

        As in the real server nothing checks that the node exists.
        """
        pod = self.pod(namespace, name)
        if pod.metadata.uid != uid:
            raise Conflict(f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.metadata.uid}")
        if pod.metadata.deletion_timestamp is not None:
            raise Conflict(f"pod {name} is being deleted, cannot be assigned to a host")
        if pod.spec.node_name:
            raise Conflict(f"pod {name} is already assigned to node {pod.spec.node_name!r}")
        if pod.spec.scheduling_gates:
            raise Conflict(f"pod {name} has non-empty .spec.schedulingGates")
        if labels:
            pod = with_metadata(pod, labels=raw({**(plain(pod.metadata.labels) or {}), **labels}))
        self.update(with_status(with_spec(pod, node_name=node), conditions=[Condition("PodScheduled", "True")]))

    async def pod_labels(self, namespace: str, name: str) -> LiveLabels:
        """The pod's labels, which are nobody's by name. Raises Gone."""
        metadata = self.pod(namespace, name).metadata
        return LiveLabels(metadata.uid, metadata.resource_version, labels_of(metadata), {})

    async def merge_pod_labels(
        self, namespace: str, name: str, uid: str, version: str, labels: Mapping[str, str | None]
    ) -> None:
        """Set labels of the pod (None removes one). Raises Gone, or Conflict: another pod, or version."""
        pod = self.pod(namespace, name)
        if (pod.metadata.uid, pod.metadata.resource_version) != (uid, version):
            raise Conflict("the object has been modified; please apply your changes to the latest version")
        merged = {key: value for key, value in {**labels_of(pod.metadata), **labels}.items() if value is not None}
        self.update(with_metadata(pod, labels=raw(merged)))

    async def pod_end(self, namespace: str, name: str) -> tuple[str, bool]:
        """(uid, whether it is being deleted). Raises Gone."""
        metadata = self.pod(namespace, name).metadata
        return metadata.uid, metadata.deletion_timestamp is not None

    async def request_eviction(self, namespace: str, name: str, uid: str) -> None:
        """As `evict_pod`."""
        self.evict_pod(namespace, name, uid)

    # -------------------------------------------------------------------------------------------------- ending a pod
    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod: it terminates now and is gone after its grace period. Raises Gone.

        On a lost node nobody confirms its end: it terminates until the node is back, or deleted.
        """
        pod = self.pod(namespace, name)
        if pod.metadata.deletion_timestamp is None:
            self.update(with_metadata(pod, deletion_timestamp=self._timeline.stamp()))
            key = key_of(pod)
            self._timeline.after(GRACE if pod.spec.node_name else 0.0, lambda: self._end(key, pod.metadata.uid))

    def evict_pod(self, namespace: str, name: str, uid: str = "") -> None:
        """The Eviction API: delete, unless a disruption budget forbids it.

        Raises Gone, Conflict (another uid), Retry (429: the budget allows none now) or Refused (500: several budgets).
        """
        pod = self.pod(namespace, name)
        if uid and pod.metadata.uid != uid:
            raise Conflict(f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.metadata.uid}")
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None:
            self._charge_budget(pod)
        self.delete_pod(namespace, name)

    # -------------------------------------------------------------------------------------------------------- internals
    def _charge_budget(self, pod: Pod) -> None:
        """Raises Retry where the pod's budget allows no eviction now, Refused where it has several."""
        labels = labels_of(pod.metadata)
        covering = [
            budget
            for budget in self.budgets()
            if budget.metadata.namespace == pod.metadata.namespace and selects(plain(budget.spec.selector), labels)
        ]
        if len(covering) > 1:
            raise Refused(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support"
            )
        if not covering:
            return
        [budget] = covering
        if not is_ready(pod) and budget.status.current_healthy >= budget.status.desired_healthy > 0:
            return  # IfHealthyBudget: a pod that is not ready costs the budget nothing
        if budget.status.disruptions_allowed < 1:
            raise Retry("Cannot evict pod as it would violate the pod's disruption budget.", EVICTION_RETRY)
        # At once, as the API server does: the controller's figures come too late for a second eviction.
        self.update(with_status(budget, disruptions_allowed=budget.status.disruptions_allowed - 1))

    def _end(self, key: ObjectKey, uid: str) -> None:
        pod: Pod | None = self.store.get("pod", key.name, key.namespace)
        if pod is None or pod.metadata.uid != uid:
            return
        node: Node | None = self.store.get("node", pod.spec.node_name) if pod.spec.node_name else None
        if node is not None and not is_alive(node):
            self._timeline.after(KUBELET_LOOKS, lambda: self._end(key, uid))
        else:
            self.store.drop(key)

    def node(self, name: str) -> Node:
        """The node. Raises Gone."""
        node: Node | None = self.store.get("node", name)
        if node is None:
            raise Gone(f'nodes "{name}" not found')
        return node

    def pod(self, namespace: str, name: str) -> Pod:
        """The pod. Raises Gone."""
        pod: Pod | None = self.store.get("pod", name, namespace)
        if pod is None:
            raise Gone(f'pods "{name}" not found')
        return pod


def key_of(value: KubernetesObject) -> ObjectKey:
    """Where an object is stored; the kind as record keys spell it."""
    kind = value.kind if isinstance(value, Workload) else "PodDisruptionBudget" if isinstance(value, Budget) else ""
    kind = (kind or type(value).__name__).lower()
    return ObjectKey(kind, value.metadata.namespace, value.metadata.name)


def is_alive(node: Node) -> bool:
    """Whether its kubelet reports."""
    return all(item.status == "True" for item in node.status.conditions or () if item.type == "Ready")


def _ours_last(manager: str) -> tuple[bool, str]:
    return manager == OUR_MANAGER, manager


def _stamp(value: Any, version: int) -> Any:
    return with_metadata(value, resource_version=str(version))
