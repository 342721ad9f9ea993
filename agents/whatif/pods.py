"""What becomes of a pod that must leave its node: who makes another one, when it has to go, what the new one asks for.

In: a pod, its owner, taints, manifests. Out: its successor, or the reason why there is none. Pure. The successor keeps
name and uid, so that a person finds it again and a finding about it stays the same.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from underhost.agents.manifests.daemons import daemon_spec
from underhost.agents.manifests.guests import launcher_template
from underhost.agents.manifests.parts import JSON_OBJECT, VMI, VMI_SET, member
from underhost.agents.site import terms
from underhost.agents.site.fault import faults_of
from underhost.agents.site.owners import controller_of
from underhost.agents.whatif.nodes import UNREACHABLE
from underhost.schemas import kubernetes as k8s
from underhost.schemas.kubernetes import Condition, Pod, PodStatus
from underhost.schemas.manifests import Manifest

GONE = "no controller re-creates the pod"
NO_DAEMON = "its DaemonSet runs no pod on a node with this taint"
HELD = "a StatefulSet does not replace the pod of a lost node"
BOUND = "the pod tolerates the loss of its node for ever"
DEFAULT_PATIENCE = 300
"""Seconds that the DefaultTolerationSeconds admission lets a pod stay on a lost node."""

DAEMON_SET, STATEFUL_SET = "DaemonSet", "StatefulSet"
_REPLACES_AT_ONCE = ("ReplicaSet", "ReplicationController", "Job", DAEMON_SET, VMI)
"""Owners that replace a pod as soon as it terminates; others wait until it is gone."""


def owner_kind(pod: Pod) -> str:
    """The kind of the pod's controller, "" where it has none."""
    owner = controller_of(pod.metadata.owner_references)
    return "" if owner is None else owner.kind


def is_replaced_already(pod: Pod) -> bool:
    """Whether the pod is being deleted and its owner has made another in its place."""
    return pod.metadata.deletion_timestamp is not None and owner_kind(pod) in (*_REPLACES_AT_ONCE, "")


def leaves_after(pod: Pod, name: str, taints: tuple[terms.Taint, ...]) -> int | None:
    """Seconds until the NoExecute taints of its node evict the pod; None where it may stay. Raises BadObjectError.

    As pkg/controller/tainteviction: at once where a taint is not tolerated, else after the least of the times.
    """
    tolerations = _tolerations(pod, name)
    times = [_patience(tolerations, taint, 0) for taint in taints if taint.effect == terms.NO_EXECUTE]
    return min((time for time in times if time is not None), default=None)


def patience_of(pod: Pod, name: str) -> int | None:
    """Seconds that the pod stays on a lost node, None for ever. Raises BadObjectError."""
    return _patience(_tolerations(pod, name), terms.Taint(UNREACHABLE, terms.NO_EXECUTE), DEFAULT_PATIENCE)


def successor(pod: Pod, created: str, others: Mapping[str, Manifest]) -> Pod:
    """The pending pod that the owner makes; `others` are the manifests of the input.

    It asks for what its predecessor did. A KubeVirt guest of a replica set asks for what the set says now. Raises
    BadObjectError.
    """
    name = pod.metadata.name
    metadata = replace(pod.metadata, creation_timestamp=created or None, deletion_timestamp=None)
    spec = replace(pod.spec, node_name="", scheduling_gates=None)
    kind = owner_kind(pod)
    if kind == DAEMON_SET:
        plain = {"affinity": msgspec.json.decode(spec.affinity), "tolerations": msgspec.json.decode(spec.tolerations)}
        pinned = daemon_spec({key: value for key, value in plain.items() if value}, pod.spec.node_name)
        spec = replace(spec, affinity=k8s.raw(pinned.get("affinity") or {}), tolerations=k8s.raw(pinned["tolerations"]))
    guest = _guest_of(pod, others) if kind == VMI else None
    if guest is not None:
        spec = replace(spec, **_placing(guest, pod, name))
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def started(pod: Pod, node: str) -> Pod:
    """The pod placed: it runs and is ready."""
    conditions = [Condition("Ready", "True")]
    return replace(
        pod, spec=replace(pod.spec, node_name=node), status=PodStatus(phase="Running", conditions=conditions)
    )


def _tolerations(pod: Pod, name: str) -> tuple[terms.Toleration, ...]:
    with faults_of(f"Pod {name}"):
        return terms.tolerations(bytes(pod.spec.tolerations))


def _patience(tolerations: tuple[terms.Toleration, ...], taint: terms.Taint, untolerated: int) -> int | None:
    """Seconds that the first toleration of the taint allows, as upstream picks it; None for ever."""
    for one in tolerations:
        if terms.tolerates((one,), taint.key, taint.value or "", taint.effect):
            return None if one.toleration_seconds is None else max(0, one.toleration_seconds)
    return untolerated


def _guest_of(pod: Pod, others: Mapping[str, Manifest]) -> Manifest | None:
    """The replica set of a virtual machine instance: it has the set's name and five characters, or a number."""
    owner = controller_of(pod.metadata.owner_references)
    assert owner is not None
    for name in (owner.name[:-5], owner.name.rpartition("-")[0]):
        found = others.get(f"{VMI_SET}/{pod.metadata.namespace}/{name}")
        if found is not None:
            return found
    return None


def _placing(guests: Manifest, pod: Pod, name: str) -> dict[str, Raw]:
    """The parts of the spec that place a guest, as its set's template has them; what KubeVirt adds is kept."""
    template = member(JSON_OBJECT.decode(guests.spec), "template", "spec.template")
    spec = launcher_template(name, {}, member(template, "spec", "spec.template.spec"))["spec"]
    kept = {
        key: value for key, value in (msgspec.json.decode(pod.spec.node_selector) or {}).items() if "kubevirt.io" in key
    }
    admitted = [
        one for one in msgspec.json.decode(pod.spec.tolerations) or [] if "node.kubernetes.io" in (one.get("key") or "")
    ]
    given = spec.get("tolerations") or []
    return {
        "affinity": k8s.raw(spec.get("affinity") or {}),
        "topology_spread_constraints": k8s.raw(spec.get("topologySpreadConstraints") or []),
        "node_selector": k8s.raw({**kept, **(spec.get("nodeSelector") or {})}),
        "tolerations": k8s.raw([*given, *(one for one in admitted if one not in given)]),
    }
