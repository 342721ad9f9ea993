"""What reacts in a simulated cluster: owners re-create pods, a scheduler, kubelets, the disruption controller.

In: changes of the simulated API server. Out: changes made through it. Level-triggered: every change reconciles
everything, so the order of changes does not matter. The scheduler is in `scheduler.py`, the budgets' status in
`disruption.py`.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from underhost.schemas.kubernetes import (
    Annotations,
    Metadata,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Workload,
    WorkloadSpec,
)
from underhost.streams.simulated.disruption import update_budgets
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import pod_conditions, random_suffix, random_uid, raw, with_metadata, with_spec
from underhost.streams.simulated.scheduler import age, schedule_waiting, tolerates
from underhost.streams.simulated.store import Change, ObjectKey
from underhost.streams.simulated.timeline import Timeline

KUBEVIRT = "VirtualMachineInstanceReplicaSet"
START = 0.6
"""Seconds from a pod's binding to its being ready."""


@dataclass(frozen=True)
class Owner:
    """What re-creates pods: a ReplicaSet, StatefulSet, DaemonSet or KubeVirt VMIRS, with its pod template.

    Attributes:
        names: names of the first pods, in order; later ones get random ends. A VMIRS's are `VMI/POD-END`.
        replicas: how many; ignored for a DaemonSet, which has one on every node that its tolerations allow.
        parent: the Deployment above a ReplicaSet.
    """

    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    spec: PodSpec
    replicas: int = 1
    api_version: str = "apps/v1"
    names: tuple[str, ...] = ()
    parent: OwnerReference | None = None


class Controllers:
    """The control loops of the simulated cluster."""

    def __init__(self, cluster: SimulatedKubernetes, timeline: Timeline, source: random.Random) -> None:
        self._cluster = cluster
        self._timeline = timeline
        self._random = source
        self._owners: dict[tuple[str, str, str], Owner] = {}
        self._uids: dict[tuple[str, str, str], str] = {}
        self._owner_of: dict[str, tuple[str, str, str]] = {}
        self._pins: dict[str, str] = {}
        self._names: dict[tuple[str, str, str], list[str]] = {}
        self._dirty = False
        cluster.store.listen(self._on_change)

    def add_owner(self, owner: Owner) -> None:
        """Create the owner; its pods follow at once."""
        place = (owner.kind, owner.namespace, owner.name)
        self._owners[place] = owner
        self._names[place] = list(owner.names)
        self._uids[place] = random_uid(self._random)
        if owner.kind != "DaemonSet":
            self._cluster.create(
                Workload(
                    owner.kind,
                    Metadata(
                        name=owner.name,
                        namespace=owner.namespace,
                        uid=self._uids[place],
                        owner_references=[owner.parent] if owner.parent else None,
                    ),
                    owner.api_version,
                    WorkloadSpec(owner.replicas, selector=raw({"matchLabels": dict(owner.labels)})),
                )
            )
        self._wake()

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Change the number of replicas of an owner."""
        place = (kind, namespace, name)
        self._owners[place] = replace(self._owners[place], replicas=replicas)
        held = self._cluster.store.get(kind.lower(), name, namespace)
        if held is not None:
            self._cluster.update(with_spec(held, replicas=replicas))

    def ask_quorum(self, kind: str, namespace: str, name: str, wanted: str | None) -> None:
        """Annotate an owner with how many of its pods must stay; None takes the annotation away."""
        owner = self._cluster.store.get(kind.lower(), name, namespace)
        self._cluster.update(with_metadata(owner, annotations=Annotations(quorum=wanted) if wanted else None))

    # ------------------------------------------------------------------------------------------------------ the trigger
    def _on_change(self, change: Change) -> None:
        if change.key.kind == "pod":
            name = f"{change.key.namespace}/{change.key.name}"
            if change.value is None:
                self._owner_of.pop(name, None)
                self._pins.pop(name, None)
            elif change.value.spec.node_name and change.value.status.phase == "Pending":
                self._plan_start(change.key, change.value)
        self._wake()

    def _wake(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._timeline.after(0.0, self._sync)

    def _sync(self) -> None:
        self._dirty = False
        for place, owner in self._owners.items():
            self._keep_replicas(place, owner)
        schedule_waiting(self._cluster, self._pins, self._owner_of)
        replicas = {name: self._owners[place].replicas for name, place in self._owner_of.items()}
        update_budgets(self._cluster, self._owner_of, replicas)

    # ----------------------------------------------------------------------------------------------------------- owners
    def _keep_replicas(self, place: tuple[str, str, str], owner: Owner) -> None:
        pods = self._cluster.pods()
        owned = {name: pods[name] for name, of in self._owner_of.items() if of == place and name in pods}
        active = {name: pod for name, pod in owned.items() if pod.metadata.deletion_timestamp is None}
        if owner.kind == "DaemonSet":
            covered = {self._pins[name] for name in active}
            for node in self._cluster.nodes().values():
                if node.metadata.name not in covered and tolerates(owner.spec, node, cordon=False):
                    self._create_pod(place, owner, self._next_name(place, owner), pin=node.metadata.name)
            return
        if owner.kind == "StatefulSet":
            for ordinal in range(owner.replicas):
                if f"{owner.namespace}/{owner.name}-{ordinal}" not in pods:
                    self._create_pod(place, owner, f"{owner.name}-{ordinal}")
                    return
        else:
            for _ in range(owner.replicas - len(active)):
                self._create_pod(place, owner, self._next_name(place, owner))
        # Too many: those that wait go first, then the youngest; of a StatefulSet the last ordinals.
        of_set = owner.kind == "StatefulSet"
        surplus = sorted(active.values(), key=_ordinal if of_set else _dispensable, reverse=True)
        for pod in surplus[: max(0, len(active) - owner.replicas)]:
            self._cluster.delete_pod(pod.metadata.namespace, pod.metadata.name)

    def _next_name(self, place: tuple[str, str, str], owner: Owner) -> str:
        if self._names[place]:
            return self._names[place].pop(0)
        if owner.kind == KUBEVIRT:
            return f"{owner.name}{random_suffix(self._random)}/{random_suffix(self._random)}"
        return f"{owner.name}-{random_suffix(self._random)}"

    def _create_pod(self, place: tuple[str, str, str], owner: Owner, name: str, pin: str = "") -> None:
        reference = OwnerReference(owner.kind, owner.name, self._uids[place], owner.api_version, True)
        generated, labels = f"{owner.name}-", dict(owner.labels)
        if owner.kind == KUBEVIRT:
            # KubeVirt's replica set owns virtual machine instances, and each of these owns its launcher pod.
            instance, _, end = name.partition("/")
            reference = OwnerReference(
                "VirtualMachineInstance", instance, random_uid(self._random), owner.api_version, True
            )
            generated = f"virt-launcher-{instance}-"
            name = generated + end
            labels |= {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": reference.uid}
        elif owner.kind == "StatefulSet":
            labels |= {"statefulset.kubernetes.io/pod-name": name}
        self._owner_of[f"{owner.namespace}/{name}"] = place
        if pin:
            self._pins[f"{owner.namespace}/{name}"] = pin
        self._cluster.create(
            Pod(
                Metadata(
                    name=name,
                    generate_name="" if owner.kind == "StatefulSet" else generated,
                    namespace=owner.namespace,
                    labels=raw(labels),
                    owner_references=[reference],
                ),
                _pinned(owner.spec, pin),
                PodStatus(phase="Pending"),
            )
        )

    # ---------------------------------------------------------------------------------------------------------- kubelet
    def _plan_start(self, key: ObjectKey, pod: Pod) -> None:
        uid = pod.metadata.uid

        def start() -> None:
            held = self._cluster.store.get("pod", key.name, key.namespace)
            if held is None or held.metadata.uid != uid or held.metadata.deletion_timestamp is not None:
                return
            if held.spec.node_name not in self._cluster.nodes():
                return
            conditions = pod_conditions(
                "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"
            )
            self._cluster.update(
                msgspec.structs.replace(held, status=PodStatus(phase="Running", conditions=conditions))
            )

        self._timeline.after(START, start)


def _ordinal(pod: Pod) -> int:
    return int(pod.metadata.name.rpartition("-")[2])


def _dispensable(pod: Pod) -> tuple[bool, tuple[str, int]]:
    return not pod.spec.node_name, age(pod)


def _pinned(spec: PodSpec, node: str) -> PodSpec:
    """The template, with a DaemonSet's affinity to one node by its name."""
    if not node:
        return spec
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return msgspec.structs.replace(spec, affinity=raw({"nodeAffinity": required}))
