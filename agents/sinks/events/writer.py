"""What the event sink writes to a Kubernetes cluster: Events, and a condition in the status of a pod.

In: what the sink decided. Out: one request each. Implements `agents.ports.EventWriter`. What may be written, and what
an error means, is left to the sink.
"""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from underhost.agents.sinks.labels.sink import FIELD_MANAGER
from underhost.schemas.errors import Refused
from underhost.streams.kubernetes.client import KubernetesClient
from underhost.streams.ports import PodState

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
"""Merges conditions by their type: the others, which are the kubelet's, stay as they are."""
OURS = [("fieldManager", FIELD_MANAGER)]

T = TypeVar("T")


class _EventMeta(Struct):
    annotations: dict[str, str] | None = None


class _Series(Struct):
    count: int


class _Event(Struct):
    metadata: _EventMeta
    series: _Series | None = None


class _Uid(Struct):
    uid: str


class _Named(Struct):
    metadata: _Uid


class _PodMeta(Struct, rename="camel"):
    uid: str
    resource_version: str


class _PodSpec(Struct, rename="camel"):
    node_name: str = ""


class _PodStatus(Struct):
    conditions: list[dict[str, object]] | None = None


class _Pod(Struct):
    metadata: _PodMeta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class KubernetesEvents:
    """Writes through one client. Every method raises Gone, Conflict, Refused, Retry or Unreachable."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    async def create_event(self, namespace: str, event: Mapping[str, object]) -> None:
        """Create an Event. Conflict: one of this name is there."""
        await self._client.call("POST", f"/apis/events.k8s.io/v1{_in(namespace)}", query=OURS, body=event)

    async def event(self, namespace: str, name: str, annotation: str) -> tuple[int, str]:
        """The live Event: (how often it was told, the annotation)."""
        found = self._decode(await self._client.call("GET", f"/api/v1{_in(namespace)}/{quote(name, safe='')}"), _Event)
        times = found.series.count if found.series is not None else 1
        return times, (found.metadata.annotations or {}).get(annotation, "")

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, object]) -> None:
        """Merge the changes into the Event. Gone: it is not there any more."""
        path = f"/api/v1{_in(namespace)}/{quote(name, safe='')}"
        await self._client.call("PATCH", path, query=OURS, body=changes, content_type=MERGE)

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """The uid of a live pod or node."""
        path = _pod(namespace, name) if kind == "Pod" else f"/api/v1/nodes/{quote(name, safe='')}"
        return self._decode(await self._client.call("GET", path), _Named).metadata.uid

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """The live pod and its condition of this type."""
        pod = self._decode(await self._client.call("GET", _pod(namespace, name)), _Pod)
        held = next((each for each in pod.status.conditions or () if each.get("type") == type_), {})
        condition = {key: str(value) for key, value in held.items() if value is not None}
        return PodState(pod.metadata.uid, pod.metadata.resource_version, pod.spec.node_name, condition)

    async def set_pod_condition(self, namespace: str, name: str, pod: PodState, condition: Mapping[str, str]) -> None:
        """Set one condition in the pod's status, if the pod is still as it was read; else Conflict."""
        body = {
            "metadata": {"uid": pod.uid, "resourceVersion": pod.version},
            "status": {"conditions": [dict(condition)]},
        }
        path = f"{_pod(namespace, name)}/status"
        await self._client.call("PATCH", path, query=OURS, body=body, content_type=STRATEGIC)

    def _decode(self, data: bytes, type_: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=type_)
        except msgspec.DecodeError as error:
            raise Refused(f"{self._client.server}: not an answer of the API: {error}") from error


def _in(namespace: str) -> str:
    return f"/namespaces/{quote(namespace, safe='')}/events"


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
