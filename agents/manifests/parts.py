"""The parts of a manifest, taken out with their faults named: template, owner reference, counts.

In: a manifest, or parts of one as plain JSON values. Raises Fault with the field inside the manifest.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from underhost.agents.site.fault import Fault, decode
from underhost.agents.site.owners import FINISHED
from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import type_of
from underhost.schemas.manifests import Manifest

Json = dict[str, Any]
JSON_OBJECT = msgspec.json.Decoder(dict[str, Any])
VM, VMI, VMI_SET = "VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceReplicaSet"
_pod = msgspec.json.Decoder(k8s.Pod)


def template_of(manifest: Manifest, spec: Json) -> Json | None:
    """The template of its pods; None where there is nothing to run: such an object is a patch."""
    if manifest.kind == VMI:
        return {"metadata": {"labels": msgspec.json.decode(manifest.metadata.labels)}, "spec": spec}
    template = member(spec, "template", "spec.template")
    if manifest.kind in (VM, VMI_SET):
        return template if template.get("spec") else None
    return template if member(template, "spec", "spec.template.spec").get("containers") else None


def status_of(manifest: Manifest) -> Json:
    """The status, empty where it has another shape: it is only a hint."""
    return object_of(msgspec.json.decode(manifest.status))


def is_over(manifest: Manifest) -> bool:
    """Whether it is a finished Job or guest, which makes no pods any more."""
    if manifest.kind == VMI:
        return status_of(manifest).get("phase") in FINISHED
    conditions = objects_of(status_of(manifest).get("conditions")) if manifest.kind == "Job" else ()
    return any(one.get("type") in ("Complete", "Failed") and one.get("status") == "True" for one in conditions)


def owner_of(manifest: Manifest) -> Json:
    """The reference that a pod of the workload carries."""
    owner = {"apiVersion": manifest.api_version, "kind": manifest.kind, "name": manifest.metadata.name}
    return owner | ({"uid": manifest.metadata.uid} if manifest.metadata.uid else {})


def typed(value: Json, field: str, label: str) -> k8s.Pod:
    """The pod as a struct. Raises BadObjectError, with the field as its manifest has it."""
    try:
        return decode(msgspec.json.encode(value), _pod, field)
    except Fault as fault:
        raise Fault(fault.field.lstrip("."), fault.message).within(label) from None


def member(value: Json, key: str, field: str) -> Json:
    """An object inside an object, empty where it is absent."""
    found = value.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Fault(field, f"expected an object, got {type_of(found)}")
    return found


def count_of(value: Json, key: str, default: int) -> int:
    """A whole number of a spec or status, the default where it is absent."""
    found = value.get(key)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise Fault(f"spec.{key}", f"must be a whole number, not {str(found)[:40]!r}")
    return found


def object_of(value: Any) -> Json:
    """An object; empty where it is anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> Iterator[Json]:
    """The objects of a list; nothing of anything else."""
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def digest_of(template: Json) -> str:
    """Stands for the controller's hash of the template: equal templates, equal pods."""
    return hashlib.sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:10]
