"""What is linted: every pod template of the input, and the pods that no template of the input explains.

In: a snapshot (manifests already made into pods) and the manifests. Out: `Subject`s, sorted by object. Pods of one
workload are one subject, named by the workload, so that a fault is reported once; which rules a subject breaks is left
to the checks. Finished pods, finished Jobs and mirror pods are no subjects.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from underhost.agents.lint.owners import VM, Owners, Selectors
from underhost.agents.manifests.guests import LAUNCHER
from underhost.agents.manifests.replicas import VMI, VMI_SET
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.owners import FINISHED, controller_of
from underhost.agents.site.selectors import Requirement
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Pod
from underhost.schemas.manifests import Manifest

DAEMON_SET, JOB = "DaemonSet", "Job"
TEMPLATED = frozenset(
    {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", DAEMON_SET, JOB, VM, VMI, VMI_SET}
)
_EMPTY = frozenset({b"{}", b"[]", b"null"})
_GUESTS = frozenset({VM, VMI, VMI_SET})


class PodParts(NamedTuple):
    """The parts of a pod spec that say where it may run, as raw JSON; equal bytes mean equal meaning."""

    affinity: bytes = b"{}"
    node_selector: bytes = b"{}"
    tolerations: bytes = b"[]"
    spread: bytes = b"[]"


@dataclass
class Subject:
    """One template, or the pods of one owner that are alike.

    Attributes:
        object: `Kind/namespace/name`. at: where its pod spec is in it (`spec.template.spec`, `spec`).
        parts: the raw rules. template_labels: raw labels of the template, None where only pods are known.
        pod_parts: the raw rules of its pods.
        replicas: how many are wanted; the pods that there are where the owner is not in the input.
        labels: the raw labels of its pods. pods: their names; nodes: where they run.
        by_hand: whether it has never been in a cluster. written: its spec then, None for pods.
    """

    object: str
    kind: str
    namespace: str
    at: str
    parts: PodParts
    replicas: int
    template_labels: bytes | None = None
    by_hand: bool = False
    written: Raw | None = None
    labels: set[bytes] = field(default_factory=set)
    pods: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    pod_parts: set[PodParts] = field(default_factory=set)

    @property
    def name(self) -> str:
        """As a sentence names it: `Deployment shop/db`."""
        return self.object.replace("/", " ", 1)

    @property
    def its_pods(self) -> str:
        """What is placed: the pod itself, or the pods of a workload."""
        return self.name if self.kind == "Pod" else f"the pods of {self.name}"

    @property
    def stuck(self) -> str:
        """That it cannot be placed, as the end of a sentence that has named it."""
        return "it cannot be placed" if self.kind == "Pod" else "none of its pods can be placed"


class _PodSpec(Struct):
    affinity: Raw = EMPTY_OBJECT
    node_selector: Raw = msgspec.field(default=EMPTY_OBJECT, name="nodeSelector")
    tolerations: Raw = EMPTY_LIST
    spread: Raw = msgspec.field(default=EMPTY_LIST, name="topologySpreadConstraints")

    def parts(self) -> PodParts:
        return PodParts(bytes(self.affinity), bytes(self.node_selector), bytes(self.tolerations), bytes(self.spread))


class _TemplateMetadata(Struct):
    labels: Raw = EMPTY_OBJECT


class _Template(Struct):
    metadata: _TemplateMetadata | None = None
    spec: _PodSpec | None = None


class _WorkloadSpec(Struct):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    running: bool | None = None
    selector: Raw = Raw(b"null")
    template: _Template | None = None


class _Condition(Struct):
    type: str = ""
    status: str = ""


class _Status(Struct):
    conditions: list[_Condition] | None = None
    phase: str | None = None


def subjects_of(snapshot: Snapshot, manifests: Mapping[str, Manifest]) -> list[Subject]:
    """The subjects of an input, sorted. Raises BadObjectError for a template of a wrong shape."""
    found: dict[str, Subject] = {}
    ended = set()
    selectors: defaultdict[str, list[tuple[str, tuple[Requirement, ...]]]] = defaultdict(list)
    for key, manifest in manifests.items():
        if manifest.kind not in TEMPLATED or _is_managed(manifest, manifests):
            continue
        if manifest.metadata.deletion_timestamp is not None or _is_over(manifest):
            ended.add(key)
            continue
        try:
            subject, requirements = _templated(key, manifest)
        except Fault as fault:
            raise fault.within(key) from None
        if subject is not None:
            found[key] = subject
            if requirements:
                selectors[manifest.metadata.namespace].append((key, requirements))
    pods = _Pods(snapshot, manifests, found, selectors)
    for key, pod in snapshot.pods.items():
        pods.add(key, pod, ended)
    every = [*found.values(), *pods.groups.values()]
    for subject in every:
        subject.parts = _completed(subject)
        subject.pods.sort()
        subject.nodes.sort()
    return sorted(every, key=lambda subject: (subject.object, subject.parts))


def _completed(subject: Subject) -> PodParts:
    """The template's rules, and what a webhook gave all of its pods where the template has nothing."""
    if len(subject.pod_parts) != 1 or subject.kind == DAEMON_SET:
        return subject.parts
    (of_pods,) = subject.pod_parts
    pairs = zip(subject.parts, of_pods, strict=True)
    return PodParts(*(pod if template in _EMPTY else template for template, pod in pairs))


def _is_managed(manifest: Manifest, manifests: Mapping[str, Manifest]) -> bool:
    controller = controller_of(manifest.metadata.owner_references)
    return controller is not None and (
        f"{controller.kind}/{manifest.metadata.namespace}/{controller.name}" in manifests
    )


def _templated(key: str, manifest: Manifest) -> tuple[Subject | None, tuple[Requirement, ...] | None]:
    """The subject of a workload, and what its selector asks of labels; None where the input lacks its template."""
    at, replicas, requirements = "spec.template.spec", 1, None
    labels = manifest.metadata.labels
    try:
        if manifest.kind == VMI:
            at, pod_spec = "spec", msgspec.json.decode(manifest.spec, type=_PodSpec)
        else:
            spec = msgspec.json.decode(manifest.spec, type=_WorkloadSpec)
            if spec.template is None or spec.template.spec is None:
                return None, None
            pod_spec = spec.template.spec
            labels = spec.template.metadata.labels if spec.template.metadata is not None else EMPTY_OBJECT
            replicas = _replicas(manifest.kind, spec)
            requirements = _adopts(manifest.kind, spec.selector)
    except (msgspec.ValidationError, RecursionError) as error:
        message, _, path = str(error).partition(" - at `$")
        raise Fault(f"spec{path.rstrip('`')}", message) from None
    subject = Subject(
        object=key,
        kind=manifest.kind,
        namespace=manifest.metadata.namespace,
        at=at,
        parts=pod_spec.parts(),
        replicas=replicas,
        template_labels=_launcher(bytes(labels)) if manifest.kind in _GUESTS else bytes(labels),
        by_hand=not manifest.metadata.uid,
        written=None if manifest.metadata.uid else manifest.spec,
    )
    return subject, requirements


def _replicas(kind: str, spec: _WorkloadSpec) -> int:
    if kind == JOB:
        parallel = 1 if spec.parallelism is None else spec.parallelism
        return parallel if spec.completions is None else min(parallel, spec.completions)
    return 1 if spec.replicas is None else spec.replicas


def _adopts(kind: str, selector: Raw) -> tuple[Requirement, ...] | None:
    if kind == "ReplicationController":
        wanted = terms.labels(bytes(selector), "spec.selector")
        return tuple((name, "In", (value,)) for name, value in sorted(wanted.items()))
    return terms.label_selector(bytes(selector), "spec.selector")


def _launcher(labels: bytes) -> bytes:
    return msgspec.json.encode({**terms.labels(labels), **LAUNCHER})


def _is_over(manifest: Manifest) -> bool:
    """Whether it makes no pods any more: a finished Job or guest, or the ReplicaSet of an older revision."""
    try:
        if manifest.kind == "ReplicaSet" and controller_of(manifest.metadata.owner_references) is not None:
            return msgspec.json.decode(manifest.spec, type=_WorkloadSpec).replicas == 0
        status = msgspec.json.decode(manifest.status, type=_Status | None) or _Status()
    except msgspec.ValidationError:
        return False
    if manifest.kind == VMI:
        return status.phase in FINISHED
    ended = ("Complete", "Failed")
    return manifest.kind == JOB and any(c.type in ended and c.status == "True" for c in status.conditions or ())


class _Pods:
    """Hands every pod to its workload's subject, or to a group of its own. `groups` are the latter."""

    def __init__(
        self,
        snapshot: Snapshot,
        manifests: Mapping[str, Manifest],
        found: Mapping[str, Subject],
        selectors: Selectors,
    ) -> None:
        self._snapshot, self._found = snapshot, found
        self._owners = Owners(snapshot, manifests, selectors)
        self.groups: dict[tuple[str, PodParts], Subject] = {}

    def add(self, key: str, pod: Pod, ended: Collection[str]) -> None:
        """Count a pod to its subject, but for those of workloads that have ended. Raises BadObjectError."""
        if pod.status.phase in FINISHED:
            return
        owner = controller_of(pod.metadata.owner_references)
        annotations = pod.metadata.annotations
        if (annotations is not None and annotations.mirror is not None) or (owner is not None and owner.kind == "Node"):
            return
        try:
            object_ = self._owners.object_of(key, pod)
        except Fault as fault:
            raise fault.within(f"Pod/{key}") from None
        if object_ in ended:
            return
        spec = pod.spec
        parts = PodParts(
            bytes(spec.affinity),
            bytes(spec.node_selector),
            bytes(spec.tolerations),
            bytes(spec.topology_spread_constraints),
        )
        subject = self._found.get(object_) or self._group(object_, pod, parts)
        subject.labels.add(bytes(pod.metadata.labels))
        if pod.metadata.deletion_timestamp is None:
            subject.pods.append(key)
            subject.pod_parts.add(parts)
            if pod.spec.node_name:
                subject.nodes.append(pod.spec.node_name)

    def _group(self, object_: str, pod: Pod, parts: PodParts) -> Subject:
        kind = object_.partition("/")[0]
        # each pod of a DaemonSet is pinned to its node, and the template is not in the input
        at = (object_, PodParts() if kind == DAEMON_SET else parts)
        subject = self.groups.get(at)
        if subject is None:
            held = self._snapshot.workloads.get(object_)
            wanted = held.spec.replicas if held is not None else None
            subject = self.groups[at] = Subject(
                object=object_,
                kind=kind,
                namespace=pod.metadata.namespace,
                at="spec" if kind in ("Pod", VMI) else "spec.template.spec",
                parts=at[1],
                replicas=wanted or 0,
                by_hand=not pod.metadata.uid,
            )
        if pod.metadata.deletion_timestamp is None:
            subject.replicas = max(subject.replicas, len(subject.pods) + 1)
        return subject
