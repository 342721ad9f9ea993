"""The Events of a simulated Kubernetes cluster, and the condition of a pod that waits.

In: what the event sink writes; this class is an EventWriter by structure. Out: the Events, as an API server would list
them in events.k8s.io/v1. It refuses as the real server does, but keeps Events for more than an hour.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from underhost.schemas.errors import Conflict, Gone
from underhost.schemas.kubernetes import Condition
from underhost.streams.ports import PodState
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import with_status


class SimulatedEvents:
    """The Events by (namespace, name).

    Attributes:
        held: the Events, in the order of their creation.
    """

    def __init__(self, kubernetes: SimulatedKubernetes) -> None:
        self._kubernetes = kubernetes
        self.held: dict[tuple[str, str], dict[str, Any]] = {}

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        """Raises Conflict where the name is taken."""
        name = event["metadata"]["name"]
        if (namespace, name) in self.held:
            raise Conflict(f'events.events.k8s.io "{name}" already exists')
        self.held[namespace, name] = dict(event)

    async def event(self, namespace: str, name: str, annotation: str) -> tuple[int, str]:
        """(its count, the annotation). Raises Gone."""
        held = self._event(namespace, name)
        return held.get("series", {}).get("count", 1), held["metadata"]["annotations"].get(annotation, "")

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, Any]) -> None:
        """Merge changes, which come in core/v1. Raises Gone."""
        held = self._event(namespace, name)
        annotations = {**held["metadata"]["annotations"], **changes["metadata"]["annotations"]}
        metadata = {**held["metadata"], "annotations": annotations}
        told = {"series": changes["series"], "note": changes["message"], "metadata": metadata}
        self.held[namespace, name] = {**held, **told}

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """The uid of a live pod or node. Raises Gone."""
        if kind == "Node":
            return self._kubernetes.node(name).metadata.uid
        return self._kubernetes.pod(namespace, name).metadata.uid

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """The live pod and its condition of this type. Raises Gone."""
        pod = self._kubernetes.pod(namespace, name)
        found = next((one for one in pod.status.conditions or () if one.type == type_), None)
        condition = msgspec.to_builtins(found) if found is not None else {}
        meta, spec = pod.metadata, pod.spec
        return PodState(meta.uid, meta.resource_version, spec.node_name, condition, spec.scheduler_name)

    async def set_pod_condition(self, namespace: str, name: str, pod: PodState, condition: Mapping[str, str]) -> None:
        """Set one condition. Raises Gone, or Conflict where the pod has changed."""
        held = self._kubernetes.pod(namespace, name)
        if (held.metadata.uid, held.metadata.resource_version) != (pod.uid, pod.version):
            raise Conflict("the object has been modified; please apply your changes to the latest version")
        others = [one for one in held.status.conditions or () if one.type != condition["type"]]
        self._kubernetes.update(with_status(held, conditions=[*others, msgspec.convert(condition, Condition)]))

    def _event(self, namespace: str, name: str) -> dict[str, Any]:
        held = self.held.get((namespace, name))
        if held is None:
            raise Gone(f'events "{name}" not found')
        return held
