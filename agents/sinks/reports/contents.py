"""What a report says: the open findings of one owner's pods, as `Report` of their namespace, or as `ClusterReport`.

In: open findings, and the snapshot that tells whose a pod is. Out: the objects (openreports.io/v1alpha1) and the place
of each finding. Pure. Only failures are told, in one report for each namespace and owner, of bounded size: reports of
what is well, or of each pod, can fill a cluster. A reader of a namespace learns of others what an Event would say
(`events/words.py`), no more.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from underhost.agents.sinks.events.words import FindingWords
from underhost.agents.sinks.readers import told_pods
from underhost.agents.site.owners import application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import BY_NAME, RANK, remedy_of

API_VERSION = "openreports.io/v1alpha1"
SOURCE = "underhost"
SITE_LABEL, DIGEST, LEFT_OUT = "underhost/site", "underhost/content", "underhost/not-listed"
"""The label of the site, and annotations: a digest of the content, and how many findings it has no room for."""
LARGEST = 224 * 1024
"""Bytes of the results of one report: with all that the server keeps beside them it stays below 256 KiB."""
LONGEST = 1000
"""Characters of a message."""
MOST = 20
"""Pods that a result names."""
LONGEST_NAME = 253
SEVERITIES = {"critical": "critical", "warning": "medium", "info": "low"}
"""The severity of a result by the `alert` of a finding's severity."""

_encoder = msgspec.json.Encoder(order="sorted")


class ReportPlace(NamedTuple):
    """Whose report it is. Without a namespace it is a cluster's; without a kind, of pods that nothing owns."""

    namespace: str
    kind: str = ""
    name: str = ""

    def target(self, site: str) -> str:
        """The target of commands about the report."""
        return f"report/{self.namespace}/{self.object_name(site)}"

    def object_name(self, site: str) -> str:
        """The name of the report, different for different owners and sites."""
        digest = hashlib.blake2b("\0".join((site, *self)).encode(), digest_size=4).hexdigest()
        readable = "-".join((SOURCE, *filter(None, (self.kind.lower(), self.name)))) if self.kind else f"{SOURCE}-pods"
        return f"{readable[: LONGEST_NAME - len(digest) - 1].rstrip('-.')}-{digest}"


def places_of(row: FindingEvent, snapshot: Snapshot) -> dict[ReportPlace, list[str]]:
    """The reports that tell of a finding, with the pods (`namespace/name`) of each."""
    found: dict[ReportPlace, list[str]] = {}
    for pod in told_pods(row):
        held = snapshot.pods.get(pod)
        application = application_of(snapshot, held) if held is not None else None
        namespace = pod.partition("/")[0]
        place = (
            ReportPlace(namespace)
            if application is None
            else ReportPlace(namespace, application.kind, application.name)
        )
        found.setdefault(place, []).append(pod)
    if found:
        return found
    if row.object is not None:
        kind, _, name = row.object.partition("/")
        namespace, _, name = name.rpartition("/")
        return {ReportPlace(namespace, kind, name): []}
    return {ReportPlace("", "Node", row.node) if row.node is not None else ReportPlace("", "Site", row.site): []}


def report(
    place: ReportPlace, site: str, rows: Mapping[str, list[str]], open_: Mapping[str, FindingEvent], snapshot: Snapshot
) -> dict[str, Any]:
    """The object. `rows` are the ids of its findings, with the pods of each that it names."""
    results, size = [], 0
    for id_ in sorted(rows, key=lambda id_: (RANK.get(open_[id_].severity, len(RANK)), id_)):
        result = _result(open_[id_], rows[id_], snapshot)
        size += len(_encoder.encode(result)) + 1
        if size > LARGEST:
            break
        results.append(result)
    left_out = len(rows) - len(results)
    content: dict[str, Any] = {
        "source": SOURCE,
        "summary": {"pass": 0, "fail": len(rows), "warn": 0, "error": 0, "skip": 0},
        "results": results,
    }
    if scope := _scope(place, snapshot):
        content["scope"] = scope
    annotations = {DIGEST: hashlib.blake2b(_encoder.encode(content), digest_size=12).hexdigest()}
    if left_out:
        annotations[LEFT_OUT] = str(left_out)
    metadata = {
        "name": place.object_name(site),
        "labels": {"app.kubernetes.io/managed-by": SOURCE, SITE_LABEL: site},
        "annotations": annotations,
    }
    if place.namespace:
        metadata["namespace"] = place.namespace
    kind = "Report" if place.namespace else "ClusterReport"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **content}


def _result(row: FindingEvent, pods: Collection[str], snapshot: Snapshot) -> dict[str, Any]:
    def node_of(pod: str) -> str:
        held = snapshot.pods.get(pod)
        return held.spec.node_name if held is not None else ""

    named = sorted(pods)[:MOST]
    message = FindingWords(row, node_of).to(named[0]) if named else row.message
    known = BY_NAME.get(row.severity)
    result: dict[str, Any] = {
        "policy": row.rule,
        "rule": row.severity,
        "category": "Placement",
        "result": "fail",
        "severity": SEVERITIES[known.alert] if known is not None else "medium",
        "message": message[:LONGEST],
        "properties": {
            "finding": row.id,
            "firstSeen": row.first_seen,
            "remedy": remedy_of(row.severity, row.rule),
        },
    }
    resources = [_resource("v1", "Pod", *pod.split("/", 1)) for pod in named]
    if not resources and row.node is not None:
        resources = [_resource("v1", "Node", "", row.node)]
    if resources:
        result["resources"] = resources
    return result


def _scope(place: ReportPlace, snapshot: Snapshot) -> dict[str, str]:
    """The owner, as a reference; nothing where a report is of no object."""
    if not place.kind or place.kind == "Site":
        return {}
    workload = snapshot.workloads.get(f"{place.kind}/{place.namespace}/{place.name}")
    versions = {"Node": "v1", "Namespace": "v1", "PodDisruptionBudget": "policy/v1", "DaemonSet": "apps/v1"}
    version = workload.api_version if workload is not None else versions.get(place.kind, "")
    return _resource(version, place.kind, place.namespace, place.name)


def _resource(version: str, kind: str, namespace: str, name: str) -> dict[str, str]:
    given = {"apiVersion": version, "kind": kind, "namespace": namespace, "name": name}
    return {key: value for key, value in given.items() if value}
