"""What the reports' sink reads and writes in a Kubernetes cluster.

In: what the sink decided. Out: one request each; lists of metadata alone, in pages. What may be written, and what an
error means, is left to the sink.
"""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from underhost.agents.sinks.kubernetes_writer import APPLY, OURS, ApiWriter, LiveMeta
from underhost.agents.sinks.ports import HeldReport
from underhost.schemas.errors import Gone, Refused

GROUP = "/apis/openreports.io/v1alpha1"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE = 500
FORCED = [*OURS, ("force", "true")]


class _ReportMeta(LiveMeta):
    name: str = ""
    namespace: str = ""


class _Reported(msgspec.Struct):
    metadata: _ReportMeta


class _PageMeta(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _ReportPage(msgspec.Struct):
    metadata: _PageMeta
    items: list[_Reported] | None = None


class KubernetesReports(ApiWriter):
    """Writes reports; implements `ports.ReportWriter`."""

    async def reports(self, label: str, value: str, annotation: str) -> dict[str, HeldReport]:
        """All reports with this label, by `NAMESPACE/NAME`. Gone: the API serves none."""
        held = {}
        for plural in ("reports", "clusterreports"):
            token = ""
            while True:
                query = [("labelSelector", f"{label}={value}"), ("limit", str(PAGE))]
                query += [("continue", token)] if token else []
                data = await self._client.call("GET", f"{GROUP}/{plural}", query=query, accept=METADATA)
                try:
                    page = msgspec.json.decode(data, type=_ReportPage)
                except msgspec.DecodeError as error:
                    raise Refused(f"{self._client.server}: not an answer of the API: {error}") from error
                for one in page.items or ():
                    meta = one.metadata
                    digest = (meta.annotations or {}).get(annotation, "")
                    held[f"{meta.namespace}/{meta.name}"] = HeldReport(meta.uid, digest)
                token = page.metadata.continue_
                if not token:
                    break
        return held

    async def has_report(self, namespace: str, name: str) -> bool:
        """Whether there is one of this name, whoever's it is."""
        try:
            await self._get(_path(namespace, name))
        except Gone:
            return False
        return True

    async def apply_report(self, namespace: str, name: str, report: Mapping[str, object]) -> str:
        """Make the report be this, by server-side apply; its uid."""
        path = _path(namespace, name)
        data = await self._client.call("PATCH", path, query=FORCED, body=report, content_type=APPLY)
        return msgspec.json.decode(data, type=_Reported).metadata.uid

    async def delete_report(self, namespace: str, name: str, uid: str) -> None:
        """Delete the report with this uid. Gone: it is not there; Conflict: it is another one."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        await self._client.call("DELETE", _path(namespace, name), body=body)


def _path(namespace: str, name: str) -> str:
    """Of a Report, and without a namespace of a ClusterReport."""
    if not namespace:
        return f"{GROUP}/clusterreports/{quote(name, safe='')}"
    return f"{GROUP}/namespaces/{quote(namespace, safe='')}/reports/{quote(name, safe='')}"
