"""Manifests become their pods, so that they can be tried before they are applied.

In: the pods, nodes, owners and manifests of files. Out: the pods with those that the workloads still lack, pending and
completed as the API server would. A workload whose pods are all there adds none, so a dump of a cluster at rest stays
as it is. Which pods belong to a workload is told by `replicas.py`.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from underhost.agents.manifests.allowance import Allowance
from underhost.agents.manifests.daemons import daemon_spec, pinned_to, runs_on
from underhost.agents.manifests.defaulting import PriorityClasses, complete, needs_completion
from underhost.agents.manifests.guests import is_started, launcher_template
from underhost.agents.manifests.parts import (
    JSON_OBJECT,
    VM,
    VMI,
    VMI_SET,
    Json,
    count_of,
    digest_of,
    is_over,
    member,
    object_of,
    objects_of,
    owner_of,
    status_of,
    template_of,
    typed,
)
from underhost.agents.manifests.replicas import POD_HASH, Replicas, is_managed
from underhost.agents.site.fault import Fault, faults_of
from underhost.schemas import kubernetes as k8s
from underhost.schemas.manifests import Manifest

MOST_PODS = 100_000


@dataclass(frozen=True)
class Expansion:
    """What the manifests add.

    Attributes:
        pods: all pods by `namespace/name`, the given ones first, completed; then the added ones.
        workloads: all owners, with the ReplicaSets that Deployments would make.
        notes: one line each, for people.
    """

    pods: dict[str, k8s.Pod]
    workloads: dict[str, k8s.Workload]
    notes: list[str] = field(default_factory=list)


def expand(
    pods: Mapping[str, k8s.Pod],
    nodes: Mapping[str, k8s.Node],
    workloads: Mapping[str, k8s.Workload],
    others: Mapping[str, Manifest],
    allowance: Allowance | None = None,
    claims: Collection[str] = (),
) -> Expansion:
    """Complete the pods that no API server has seen (no uid), and add those that workloads lack, in their order.

    `allowance` bounds what all of them make. `claims`: the volume claims that there are (`namespace/name`).
    Raises BadObjectError for a manifest that the API server would refuse, InputError where the allowance is used up.
    """
    classes = PriorityClasses(others)
    expansion = _Expander(pods, nodes, dict(workloads), others, classes, allowance, claims)
    for key, pod in pods.items():
        if pod.metadata.uid:
            continue
        if _is_hook(pod.metadata):
            expansion.leave_out(f"Pod/{key}")
            del expansion.pods[key]
        elif needs_completion(pod, classes):
            value = JSON_OBJECT.decode(k8s.encode(pod))
            expansion.unknown(complete(value, classes))
            expansion.pods[key] = typed(value, "", f"Pod/{key}")
    for manifest in others.values():
        if manifest.kind in _EXPANDED:
            expansion.add(manifest)
    return Expansion(expansion.pods, expansion.workloads, expansion.notes())


class _Expander:
    """The state of one `expand`."""

    def __init__(
        self,
        given: Mapping[str, k8s.Pod],
        nodes: Mapping[str, k8s.Node],
        workloads: dict[str, k8s.Workload],
        others: Mapping[str, Manifest],
        classes: PriorityClasses,
        allowance: Allowance | None,
        claims: Collection[str],
    ) -> None:
        self.pods, self.workloads = dict(given), workloads
        self._nodes, self._others, self._classes = nodes, others, classes
        self._given, self._allowance, self._claims = given, allowance, claims
        self._hooks: list[str] = []
        self._added: dict[str, int] = {}
        self._unknown: set[str] = set()
        self._stopped: list[str] = []

    @cached_property
    def _replicas(self) -> Replicas:
        return Replicas(self._given, self.workloads)

    @cached_property
    def _created(self) -> str:
        """Pods that are not there yet are younger than all that are."""
        return max((pod.metadata.creation_timestamp or "" for pod in self._given.values()), default="")

    def add(self, manifest: Manifest) -> None:
        """The pods that one workload lacks."""
        label = f"{manifest.kind}/{manifest.metadata.namespace}/{manifest.metadata.name}"
        gone = manifest.metadata.deletion_timestamp is not None or is_over(manifest)
        if gone or is_managed(manifest, self._others):
            return
        if _is_hook(manifest.metadata):
            self.leave_out(label)
            return
        with faults_of(label):
            if manifest.metadata.uid and not self._replicas.of(manifest):
                return  # of a cluster, not a manifest: a dump without its pods does not mean that there are none
            spec = JSON_OBJECT.decode(manifest.spec)
            template = template_of(manifest, spec)
            if template is not None:
                for pod in list(_EXPANDED[manifest.kind](self, manifest, spec, template)):
                    self._put(pod, label)

    def notes(self) -> list[str]:
        """What was added, and what could not be looked up."""
        lines = []
        if self._added:
            shown = [f"{label} {count}" for label, count in list(self._added.items())[:5]]
            more = [f"{len(self._added) - 5} more workloads"] if len(self._added) > 5 else []
            lines.append(f"pods added, pending, for workloads that lack them: {', '.join(shown + more)}")
        if self._stopped:
            lines.append(f"stopped, so without a pod: VirtualMachine {', '.join(self._stopped[:5])}")
        if self._hooks:
            more = [f"{len(self._hooks) - 5} more"] if len(self._hooks) > 5 else []
            lines.append(
                f"hooks of Helm, which end before the rest is at work, are not placed: "
                f"{', '.join(self._hooks[:5] + more)}"
            )
        lines += [f"priority class {name!r} is not in the input: taken as 0" for name in sorted(self._unknown)]
        return lines

    def leave_out(self, label: str) -> None:
        """Remember a hook of Helm: it is no load."""
        self._hooks.append(label)

    def unknown(self, priority_class: str) -> None:
        """Remember a priority class that the input lacks."""
        if priority_class:
            self._unknown.add(priority_class)

    def _put(self, value: Json, label: str) -> None:
        self.unknown(complete(value, self._classes))
        pod = typed(value, "spec.template", label)
        self.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        self._added[label] = self._added.get(label, 0) + 1

    def _pod(self, manifest: Manifest, name: str, template: Json, owner: Json, **labels: str) -> Json:
        """A pod of a template, pending."""
        metadata = member(template, "metadata", "spec.template.metadata")
        own = member(metadata, "labels", "spec.template.metadata.labels")
        notes = member(metadata, "annotations", "spec.template.metadata.annotations")
        asked = {key: notes[key] for key in (k8s.QUORUM_ANNOTATION,) if key in notes}
        created = {"creationTimestamp": self._created} if self._created else {}
        spec = msgspec.json.encode(member(template, "spec", "spec.template.spec"))
        if self._allowance is not None:
            self._allowance.weigh(len(spec))
        return {
            "metadata": {
                "name": name,
                "namespace": manifest.metadata.namespace,
                "labels": {**own, **labels},
                "ownerReferences": [owner | {"controller": True}],
                **({"annotations": asked} if asked else {}),
                **created,
            },
            "spec": msgspec.json.decode(spec),
            "status": {"phase": "Pending"},
        }

    def _replicated(self, manifest: Manifest, spec: Json, template: Json) -> Iterator[Json]:
        """Deployment, ReplicaSet, ReplicationController: any free numbers."""
        labels, owner = {}, owner_of(manifest)
        names = list(self._missing(manifest, count_of(spec, "replicas", 1)))
        if manifest.kind == "Deployment" and names:
            digest = self._replicas.template_hash(manifest) or digest_of(template)
            owner = self._replica_set(manifest, spec, digest)
            labels = {POD_HASH: digest}
        for name in names:
            yield self._pod(manifest, name, template, owner, **labels)

    def _replica_set(self, manifest: Manifest, spec: Json, digest: str) -> Json:
        """The ReplicaSet that the Deployment would make: the scheduler spreads its pods by its selector."""
        name, namespace = f"{manifest.metadata.name}-{digest}", manifest.metadata.namespace
        key = f"ReplicaSet/{namespace}/{name}"
        if key not in self.workloads:
            selector = member(spec, "selector", "spec.selector")
            labels = {**member(selector, "matchLabels", "spec.selector.matchLabels"), POD_HASH: digest}
            raw = k8s.raw({**selector, "matchLabels": labels})
            reference = msgspec.convert(owner_of(manifest) | {"controller": True}, k8s.OwnerReference)
            metadata = k8s.Metadata(name=name, namespace=namespace, owner_references=[reference])
            replicas = count_of(spec, "replicas", 1)
            self.workloads[key] = k8s.Workload(
                "ReplicaSet", metadata, "apps/v1", k8s.WorkloadSpec(replicas=replicas, selector=raw)
            )
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name}

    def _stateful(self, manifest: Manifest, spec: Json, template: Json) -> Iterator[Json]:
        start = count_of(member(spec, "ordinals", "spec.ordinals"), "start", 0)
        for name in self._missing(manifest, count_of(spec, "replicas", 1), start=start):
            labels = {"statefulset.kubernetes.io/pod-name": name}
            labels["apps.kubernetes.io/pod-index"] = name.rpartition("-")[2]
            labels["controller-revision-hash"] = f"{manifest.metadata.name}-{digest_of(template)}"
            pod = self._pod(manifest, name, template, owner_of(manifest), **labels)
            self._claim(pod, spec)
            yield pod

    def _claim(self, pod: Json, spec: Json) -> None:
        """The volumes that the controller puts in the place of those that the template calls the same.

        A claim that there is not yet is made with the pod: nothing is known of it that could refuse a node.
        """
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        own = [object_of(one.get("metadata")).get("name") for one in objects_of(spec.get("volumeClaimTemplates"))]
        volumes = [one for one in objects_of(pod["spec"].get("volumes")) if one.get("name") not in own]
        for volume in own:
            if f"{namespace}/{volume}-{name}" in self._claims:
                volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}})
        if own:
            pod["spec"]["volumes"] = volumes

    def _job(self, manifest: Manifest, spec: Json, template: Json) -> Iterator[Json]:
        if spec.get("suspend") is True:
            return
        parallelism = count_of(spec, "parallelism", 1)
        left = count_of(spec, "completions", parallelism) - count_of(status_of(manifest), "succeeded", 0)
        labels = {"batch.kubernetes.io/job-name": manifest.metadata.name, "job-name": manifest.metadata.name}
        for name in self._missing(manifest, min(parallelism, left)):
            if spec.get("completionMode") == "Indexed":
                labels["batch.kubernetes.io/job-completion-index"] = name.rpartition("-")[2]
            yield self._pod(manifest, name, template, owner_of(manifest), **labels)

    def _daemon(self, manifest: Manifest, spec: Json, template: Json) -> Iterator[Json]:
        there = {pod.spec.node_name or pinned_to(pod) for pod in self._replicas.of(manifest)}
        hash_label = {"controller-revision-hash": digest_of(template)}
        lacking = sorted(self._nodes.keys() - there)
        self._ask(len(lacking))
        for node in lacking:
            pod = self._pod(manifest, f"{manifest.metadata.name}-{node}", template, owner_of(manifest), **hash_label)
            pod["spec"] = daemon_spec(pod["spec"])
            if runs_on(typed(pod, "spec.template", f"DaemonSet/{manifest.metadata.name}"), self._nodes[node]):
                pod["spec"] = daemon_spec(pod["spec"], node)
                yield pod

    def _guests(self, manifest: Manifest, spec: Json, template: Json) -> Iterator[Json]:
        """VirtualMachineInstanceReplicaSet, VirtualMachine, VirtualMachineInstance."""
        name, wanted = manifest.metadata.name, 1
        if manifest.kind == VMI_SET:
            wanted = count_of(spec, "replicas", 1)
        elif manifest.kind == VM and not is_started(spec):
            wanted = 0
            self._stopped.append(name)
        labels = member(template, "metadata", "spec.template.metadata").get("labels")
        guest = member(template, "spec", "spec.template.spec")
        for pod_name in self._missing(manifest, wanted, f"virt-launcher-{name}"):
            number = pod_name.rpartition("-")[2]
            vmi = f"{name}-{number}" if manifest.kind == VMI_SET else name
            owner = {"apiVersion": "kubevirt.io/v1", "kind": VMI, "name": vmi}
            yield self._pod(manifest, pod_name, launcher_template(vmi, labels, guest), owner)

    def _missing(self, manifest: Manifest, wanted: int, prefix: str = "", start: int = 0) -> Iterator[str]:
        """Free names PREFIX-0, PREFIX-1, ... (from `start` on) for the pods that the workload lacks."""
        count = wanted - len(self._replicas.of(manifest))
        if count > MOST_PODS:
            raise Fault("spec.replicas", f"more than {MOST_PODS} pods")
        self._ask(max(0, count))
        names = (f"{prefix or manifest.metadata.name}-{number}" for number in itertools.count(start))
        free = (name for name in names if f"{manifest.metadata.namespace}/{name}" not in self.pods)
        return itertools.islice(free, max(0, count))

    def _ask(self, pods: int) -> None:
        if self._allowance is not None:
            self._allowance.take(pods)


def _is_hook(metadata: k8s.Metadata) -> bool:
    """Whether a manifest is a hook of Helm (a test, a migration); what runs in a cluster is load, whoever made it."""
    return not metadata.uid and metadata.annotations is not None and bool(metadata.annotations.hook)


_EXPANDED: Mapping[str, Callable[[_Expander, Manifest, Json, Json], Iterator[Json]]] = {
    "Deployment": _Expander._replicated,
    "ReplicaSet": _Expander._replicated,
    "ReplicationController": _Expander._replicated,
    "StatefulSet": _Expander._stateful,
    "Job": _Expander._job,
    "DaemonSet": _Expander._daemon,
    VMI_SET: _Expander._guests,
    VM: _Expander._guests,
    VMI: _Expander._guests,
}
