"""The writes that sinks make to a Kubernetes cluster, each one request with the object's uid as its precondition.

In: what a sink decided. Out: node labels by server-side apply, taints, bindings, evictions. A pod is never deleted,
only evicted. What may be written, and what an error means, is left to the sinks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec
from msgspec import Struct

from underhost.agents.sinks.labels.managers import FIELD_MANAGER, foremost
from underhost.schemas.errors import Conflict, Refused, Retry
from underhost.streams.kubernetes.client import KubernetesClient, is_success
from underhost.streams.ports import LiveLabels

APPLY = "application/apply-patch+yaml"
UID_DIFFERS = "metadata.uid: Invalid value"
"""How the API server refuses an apply to another uid: a validation error (422); where no node is, it is a 409."""
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"
"""How the API server says (500) that it never evicts a pod that two budgets cover."""
OURS = [("fieldManager", FIELD_MANAGER)]
"""Names us as who writes."""
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TEST_FAILED = "(422)"
"""How it refuses a JSON patch one of whose tests fails; it does not say which."""


class _Managed(Struct, rename="camel"):
    manager: str = ""
    fields_v1: dict[str, object] | None = msgspec.field(default=None, name="fieldsV1")


class LiveMeta(Struct, rename="camel"):
    """Metadata of a live object, as far as sinks read it."""

    uid: str
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    managed_fields: list[_Managed] | None = None


class LiveSpec(Struct, rename="camel"):
    """The spec of a live node or pod, as far as sinks read it."""

    node_name: str = ""
    scheduler_name: str = ""
    taints: list[dict[str, object]] | None = None


class LiveStatus(Struct):
    """The status of a live pod, as far as sinks read it."""

    conditions: list[dict[str, object]] | None = None


class LiveSeries(Struct):
    """How often a live Event was told."""

    count: int


class LiveObject(Struct):
    """A node, a pod or an Event as the API server shows it now."""

    metadata: LiveMeta
    spec: LiveSpec = msgspec.field(default_factory=LiveSpec)
    status: LiveStatus = msgspec.field(default_factory=LiveStatus)
    series: LiveSeries | None = None


class _Cause(Struct):
    message: str = ""


class _Details(Struct):
    causes: list[_Cause] = []


class _Refusal(Struct):
    """A `Status` object, as far as it tells which budget refused."""

    details: _Details = msgspec.field(default_factory=_Details)


class ApiWriter:
    """Writes through one client. Every method raises Gone, Conflict, Refused, Retry or Unreachable."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    async def _get(self, path: str) -> LiveObject:
        """The live object there."""
        data = await self._client.call("GET", path)
        try:
            return msgspec.json.decode(data, type=LiveObject)
        except msgspec.DecodeError as error:
            raise Refused(f"{self._client.server}: not an answer of the API: {error}") from error


class KubernetesApiWriter(ApiWriter):
    """Writes node labels, taints, bindings and evictions; implements `ports.KubernetesWriter`."""

    async def node_labels(self, node: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """The live node: (uid, labels, field manager by label key, of several the `foremost`)."""
        metadata = (await self._get(node_path(node))).metadata
        return metadata.uid, metadata.labels or {}, _managers(metadata)

    async def apply_node_labels(
        self, node: str, uid: str, labels: Mapping[str, str | None], *, force: bool = True
    ) -> None:
        """Make these the labels that `underhost` owns on the node (None, or leaving one out, gives it up).

        Conflict: another uid; and, unless forced, a label that somebody else has set to another value.
        """
        kept = {key: value for key, value in sorted(labels.items()) if value is not None}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": uid, "labels": kept}}
        # Forced where the sink takes a label from its owner. The uid keeps apply from creating a node that has gone.
        query = [("fieldManager", FIELD_MANAGER), ("force", "true" if force else "false")]
        try:
            await self._client.call("PATCH", node_path(node), query=query, body=body, content_type=APPLY)
        except Refused as error:
            if UID_DIFFERS in str(error):
                raise Conflict(str(error)) from error
            raise

    async def node_taints(self, node: str) -> tuple[str, list[dict[str, object]]]:
        """The live node: (uid, taints)."""
        found = await self._get(node_path(node))
        return found.metadata.uid, found.spec.taints or []

    async def replace_taints(
        self, node: str, uid: str, before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
    ) -> None:
        """Make this the list of taints, if it is `before` and the node this one; else Conflict.

        The list is atomic: a patch that names one taint would overwrite what others have added since.
        """
        taints = "/spec/taints"
        change: dict[str, object] = {"op": "replace", "path": taints, "value": after}
        body: list[dict[str, object]] = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": taints, "value": before},
            change if after else {"op": "remove", "path": taints},
        ]
        try:
            await self._client.call("PATCH", node_path(node), query=OURS, body=body, content_type=JSON_PATCH)
        except Refused as error:
            if str(error).endswith(TEST_FAILED):
                raise Conflict(str(error)) from error
            raise

    async def pod_node(self, namespace: str, name: str) -> tuple[str, str]:
        """The live pod: (uid, node name, "" while it is not bound)."""
        pod = await self._get(pod_path(namespace, name))
        return pod.metadata.uid, pod.spec.node_name

    async def pod_scheduler(self, namespace: str, name: str) -> str:
        """The scheduler that the live pod names."""
        return (await self._get(pod_path(namespace, name))).spec.scheduler_name

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """Bind the pod; since Kubernetes 1.35 it has the labels then. Conflict: bound already, or another uid."""
        metadata: dict[str, object] = {"name": name, "namespace": namespace, "uid": uid}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {**metadata, "labels": labels} if labels else metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.call("POST", f"{pod_path(namespace, name)}/binding", query=OURS, body=body)

    async def pod_labels(self, namespace: str, name: str) -> LiveLabels:
        """The live pod's labels."""
        metadata = (await self._get(pod_path(namespace, name))).metadata
        return LiveLabels(metadata.uid, metadata.resource_version, metadata.labels or {}, _managers(metadata))

    async def merge_pod_labels(
        self, namespace: str, name: str, uid: str, version: str, labels: Mapping[str, str | None]
    ) -> None:
        """Set labels of the pod (None removes one). Conflict: it is not this version of this pod any more."""
        body = {"metadata": {"uid": uid, "resourceVersion": version, "labels": labels}}
        await self._client.call("PATCH", pod_path(namespace, name), query=OURS, body=body, content_type=MERGE_PATCH)

    async def pod_end(self, namespace: str, name: str) -> tuple[str, bool]:
        """The live pod: (uid, whether it is being deleted)."""
        metadata = (await self._get(pod_path(namespace, name))).metadata
        return metadata.uid, metadata.deletion_timestamp is not None

    async def request_eviction(self, namespace: str, name: str, uid: str) -> None:
        """Ask the Eviction API. Conflict: another uid. Retry: its budget allows none. Refused: several budgets."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{pod_path(namespace, name)}/eviction"
        reply = await self._client.ask("POST", path, query=OURS, body=body)
        if is_success(reply.status, reply.body):
            return
        error = self._client.refusal(reply.status, reply.body, reply.headers)
        text = " ".join([str(error), *_causes(reply.body)])
        if isinstance(error, Retry):
            raise Retry(text, error.after)
        raise Refused(text) if SEVERAL_BUDGETS in text else error


def _causes(data: bytes) -> list[str]:
    """What a `Status` object gives as causes: the budget and its figures."""
    try:
        causes = msgspec.json.decode(data, type=_Refusal).details.causes
    except msgspec.DecodeError:
        return []
    said = ("".join(char if char.isprintable() else " " for char in cause.message) for cause in causes)
    return [" ".join(text.split()) for text in said]


def _managers(metadata: LiveMeta) -> dict[str, str]:
    """The field manager of each label, of several the `foremost`."""
    managers: dict[str, set[str]] = defaultdict(set)
    for entry in metadata.managed_fields or ():
        for key in _label_keys(entry.fields_v1 or {}):
            managers[key].add(entry.manager)
    return {key: foremost(names) for key, names in managers.items()}


def _label_keys(fields: Mapping[str, object]) -> list[str]:
    """The label keys in a managedFields entry: {"f:metadata": {"f:labels": {"f:KEY": {}}}}."""
    metadata = fields.get("f:metadata")
    labels = metadata.get("f:labels") if isinstance(metadata, dict) else None
    return [key[2:] for key in labels if key.startswith("f:")] if isinstance(labels, dict) else []


def node_path(node: str) -> str:
    """Where a node is."""
    return f"/api/v1/nodes/{quote(node, safe='')}"


def pod_path(namespace: str, name: str) -> str:
    """Where a pod is."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
