"""What the event sink writes to a Kubernetes cluster: Events, and a condition in the status of a pod.

In: what the sink decided. Out: one request each. What may be written, and what an error means, is left to the sink.
"""

from collections.abc import Mapping
from urllib.parse import quote

from underhost.agents.sinks.kubernetes_writer import OURS, ApiWriter, node_path, pod_path
from underhost.streams.ports import PodState

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
"""Merges conditions by their type: the others, which are the kubelet's, stay as they are."""


class KubernetesEvents(ApiWriter):
    """Writes Events and conditions; implements `ports.EventWriter`."""

    async def create_event(self, namespace: str, event: Mapping[str, object]) -> None:
        """Create an Event. Conflict: one of this name is there."""
        await self._client.call("POST", f"/apis/events.k8s.io/v1{_in(namespace)}", query=OURS, body=event)

    async def event(self, namespace: str, name: str, annotation: str) -> tuple[int, str]:
        """The live Event: (how often it was told, the annotation)."""
        found = await self._get(f"/api/v1{_in(namespace)}/{quote(name, safe='')}")
        times = found.series.count if found.series is not None else 1
        return times, (found.metadata.annotations or {}).get(annotation, "")

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, object]) -> None:
        """Merge the changes into the Event. Gone: it is not there any more."""
        path = f"/api/v1{_in(namespace)}/{quote(name, safe='')}"
        await self._client.call("PATCH", path, query=OURS, body=changes, content_type=MERGE)

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """The uid of a live pod or node."""
        path = pod_path(namespace, name) if kind == "Pod" else node_path(name)
        return (await self._get(path)).metadata.uid

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """The live pod and its condition of this type."""
        pod = await self._get(pod_path(namespace, name))
        held = next((each for each in pod.status.conditions or () if each.get("type") == type_), {})
        condition = {key: str(value) for key, value in held.items() if value is not None}
        meta = pod.metadata
        return PodState(meta.uid, meta.resource_version, pod.spec.node_name, condition, pod.spec.scheduler_name)

    async def set_pod_condition(self, namespace: str, name: str, pod: PodState, condition: Mapping[str, str]) -> None:
        """Set one condition in the pod's status, if the pod is still as it was read; else Conflict."""
        body = {
            "metadata": {"uid": pod.uid, "resourceVersion": pod.version},
            "status": {"conditions": [dict(condition)]},
        }
        path = f"{pod_path(namespace, name)}/status"
        await self._client.call("PATCH", path, query=OURS, body=body, content_type=STRATEGIC)


def _in(namespace: str) -> str:
    return f"/namespaces/{quote(namespace, safe='')}/events"
