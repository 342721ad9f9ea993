"""A fault in a pod that was made of a manifest, as the manifest itself has it.

In: a fault of the engine, and what the files hold. Out: the fault with the workload as its object, the field inside its
template, and `limits` where the amount that became a request was written there.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from underhost.agents.manifests.parts import object_of
from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import BadObjectError
from underhost.schemas.manifests import Manifest

_TEMPLATED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"})
_TEMPLATE = "spec.template."
_REQUEST = re.compile(r"spec\.(containers|initContainers)\[(\d+)\]\.resources\.requests\[(.+)\]")


def as_written(fault: BadObjectError, pods: Mapping[str, k8s.Pod], manifests: Mapping[str, Manifest]) -> BadObjectError:
    """The fault, `Pod/namespace/name` of a pod that is in no file, in the words of the manifest that makes it."""
    kind, _, key = fault.object.partition("/")
    if kind != "Pod":
        return fault
    if key in pods:
        spec = msgspec.json.decode(k8s.encode(pods[key]))["spec"]
        return BadObjectError(fault.message, object_=fault.object, field=_limits(fault.field, spec), file=fault.file)
    maker = _maker(key, manifests)
    if maker is None:
        return fault
    spec = object_of(object_of(msgspec.json.decode(manifests[maker].spec).get("template")).get("spec"))
    field = f"{_TEMPLATE}{_limits(fault.field, spec)}"
    return BadObjectError(fault.message, object_=maker, field=field, file=fault.file)


def _maker(pod: str, manifests: Mapping[str, Manifest]) -> str | None:
    """The workload after which the pod is named: NAME-0, or NAME-NODE."""
    named = [
        (len(one.metadata.name), label)
        for label, one in manifests.items()
        if one.kind in _TEMPLATED and pod.startswith(f"{one.metadata.namespace}/{one.metadata.name}-")
    ]
    return max(named)[1] if named else None


def _limits(field: str, spec: dict[str, Any]) -> str:
    """The field of a request, or of the limit that became one."""
    match = _REQUEST.fullmatch(field)
    if match is None:
        return field
    listed, at, name = match.groups()
    containers = spec.get(listed)
    container = containers[int(at)] if isinstance(containers, list) and int(at) < len(containers) else None
    resources = object_of(object_of(container).get("resources"))
    is_limit = name in object_of(resources.get("limits")) and name not in object_of(resources.get("requests"))
    return field.replace(".requests[", ".limits[") if is_limit else field
