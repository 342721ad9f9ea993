"""Collects what is linted: every pod template of the input, and the pods that no template of the input explains.

In: a snapshot (manifests already made into pods) and the manifests. Out: `Subject`s, sorted by object. Pods of one
workload are one subject, named by the workload, so that a fault is reported once; which rules a subject breaks is left
to the checks. Finished pods, finished Jobs and mirror pods are no subjects.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from underhost.agents.lint.owners import Owners
from underhost.agents.lint.subjects import DAEMON_SET, JOB, PodParts, Subject
from underhost.agents.manifests.guests import LAUNCHER
from underhost.agents.manifests.parts import JSON_OBJECT, VM, VMI, VMI_SET, is_over
from underhost.agents.manifests.replicas import adopts, is_managed
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault, faults_of
from underhost.agents.site.owners import FINISHED, controller_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.errors import worded
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Pod, PodSpec
from underhost.schemas.manifests import Manifest

_GUESTS = frozenset({VM, VMI, VMI_SET})
_TEMPLATED = _GUESTS | {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", DAEMON_SET, JOB}
_EMPTY = frozenset({b"{}", b"[]", b"null"})


class _RawPodSpec(Struct, rename="camel"):
    affinity: Raw = EMPTY_OBJECT
    node_selector: Raw = EMPTY_OBJECT
    tolerations: Raw = EMPTY_LIST
    topology_spread_constraints: Raw = EMPTY_LIST


class _TemplateMetadata(Struct):
    labels: Raw = EMPTY_OBJECT


class _Template(Struct):
    metadata: _TemplateMetadata | None = None
    spec: _RawPodSpec | None = None


class _WorkloadSpec(Struct):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    running: bool | None = None
    selector: Raw = Raw(b"null")
    template: _Template | None = None


def subjects_of(snapshot: Snapshot, manifests: Mapping[str, Manifest]) -> list[Subject]:
    """The subjects of an input, sorted. Raises BadObjectError for a template of a wrong shape."""
    templates: dict[str, Subject] = {}
    ended = set()
    for key, manifest in manifests.items():
        if manifest.kind not in _TEMPLATED or is_managed(manifest, manifests):
            continue
        if _has_ended(manifest):
            ended.add(key)
            continue
        with faults_of(key):
            subject = _templated(key, manifest)
        if subject is not None:
            templates[key] = subject
    owners = Owners(snapshot, manifests, templates.values())
    groups: dict[tuple[str, PodParts], Subject] = {}
    for key, pod in snapshot.pods.items():
        if _is_left_out(pod):
            continue
        try:
            object_ = owners.object_of(key, pod)
        except Fault as fault:
            raise fault.within(f"Pod/{key}") from None
        if object_ not in ended:
            parts = _parts(pod.spec)
            _count(templates.get(object_) or _group(groups, snapshot, object_, pod, parts), key, pod, parts)
    every = [*templates.values(), *groups.values()]
    for subject in every:
        subject.parts = _completed(subject)
        subject.pods.sort()
        subject.nodes.sort()
    return sorted(every, key=lambda subject: (subject.object, subject.parts))


# ------------------------------------------------------------------------------------------------------ templates
def _has_ended(manifest: Manifest) -> bool:
    """Whether it makes no pods any more: a finished Job or guest, or the ReplicaSet of an older revision."""
    if manifest.metadata.deletion_timestamp is not None or is_over(manifest):
        return True
    managed = manifest.kind == "ReplicaSet" and controller_of(manifest.metadata.owner_references) is not None
    return managed and JSON_OBJECT.decode(manifest.spec).get("replicas") == 0


def _templated(key: str, manifest: Manifest) -> Subject | None:
    """The subject of a workload; None where the input lacks its template."""
    at, replicas, adopted = "spec.template.spec", 1, None
    labels = manifest.metadata.labels
    try:
        if manifest.kind == VMI:
            at, pod_spec = "spec", msgspec.json.decode(manifest.spec, type=_RawPodSpec)
        else:
            spec = msgspec.json.decode(manifest.spec, type=_WorkloadSpec)
            if spec.template is None or spec.template.spec is None:
                return None
            pod_spec = spec.template.spec
            labels = spec.template.metadata.labels if spec.template.metadata is not None else EMPTY_OBJECT
            replicas, adopted = _replicas(manifest.kind, spec), adopts(manifest.kind, spec.selector)
    except msgspec.ValidationError as error:
        message, path = worded(error, manifest.spec)
        raise Fault(f"spec{path}", message) from None
    except RecursionError as error:
        raise Fault("spec", str(error)) from None
    return Subject(
        object=key,
        kind=manifest.kind,
        namespace=manifest.metadata.namespace,
        at=at,
        parts=_parts(pod_spec),
        replicas=replicas,
        template_labels=_launcher(bytes(labels)) if manifest.kind in _GUESTS else bytes(labels),
        adopts=adopted,
        by_hand=not manifest.metadata.uid,
        written=None if manifest.metadata.uid else manifest.spec,
    )


def _parts(spec: PodSpec | _RawPodSpec) -> PodParts:
    raw = (spec.affinity, spec.node_selector, spec.tolerations, spec.topology_spread_constraints)
    return PodParts(*map(bytes, raw))


def _replicas(kind: str, spec: _WorkloadSpec) -> int:
    if kind == JOB:
        parallel = 1 if spec.parallelism is None else spec.parallelism
        return parallel if spec.completions is None else min(parallel, spec.completions)
    return 1 if spec.replicas is None else spec.replicas


def _launcher(labels: bytes) -> bytes:
    return msgspec.json.encode({**terms.labels(labels), **LAUNCHER})


# ----------------------------------------------------------------------------------------------------------- pods
def _is_left_out(pod: Pod) -> bool:
    """A finished pod, or a mirror pod."""
    owner, annotations = controller_of(pod.metadata.owner_references), pod.metadata.annotations
    mirrors = (annotations is not None and annotations.mirror is not None) or (
        owner is not None and owner.kind == "Node"
    )
    return pod.status.phase in FINISHED or mirrors


def _group(
    groups: dict[tuple[str, PodParts], Subject], snapshot: Snapshot, object_: str, pod: Pod, parts: PodParts
) -> Subject:
    """The subject of pods whose template is not in the input: one for pods with equal rules."""
    kind = object_.partition("/")[0]
    if kind == DAEMON_SET:
        parts = PodParts()  # each pod is pinned to its node
    subject = groups.get((object_, parts))
    if subject is None:
        held = snapshot.workloads.get(object_)
        wanted = held.spec.replicas if held is not None else None
        subject = groups[(object_, parts)] = Subject(
            object=object_,
            kind=kind,
            namespace=pod.metadata.namespace,
            at="spec" if kind in ("Pod", VMI) else "spec.template.spec",
            parts=parts,
            replicas=wanted or 0,
            by_hand=not pod.metadata.uid,
        )
    if pod.metadata.deletion_timestamp is None:
        subject.replicas = max(subject.replicas, len(subject.pods) + 1)
    return subject


def _count(subject: Subject, key: str, pod: Pod, parts: PodParts) -> None:
    """The pod belongs to the subject; one that is being deleted only by its labels."""
    subject.labels.add(bytes(pod.metadata.labels))
    if pod.metadata.deletion_timestamp is None:
        subject.pods.append(key)
        subject.pod_parts.add(parts)
        if pod.spec.node_name:
            subject.nodes.append(pod.spec.node_name)


def _completed(subject: Subject) -> PodParts:
    """The template's rules, and what a webhook gave all of its pods where the template has nothing."""
    if len(subject.pod_parts) != 1 or subject.kind == DAEMON_SET:
        return subject.parts
    (of_pods,) = subject.pod_parts
    pairs = zip(subject.parts, of_pods, strict=True)
    return PodParts(*(pod if template in _EMPTY else template for template, pod in pairs))
