"""The parts of a manifest, taken out with their faults named: template, owner reference, counts.

Raises Fault with the field inside the manifest.
"""

import hashlib
from typing import Any

import msgspec

from underhost.agents.manifests.defaulting import Json
from underhost.agents.site.fault import Fault, decode
from underhost.schemas import kubernetes as k8s
from underhost.schemas.manifests import Manifest

JSON_OBJECT = msgspec.json.Decoder(dict[str, Any])
_pod = msgspec.json.Decoder(k8s.Pod)


def template_of(manifest: Manifest) -> tuple[Json, Json | None]:
    """(spec, its pod template); no template where it has no containers: such an object is a patch."""
    spec = JSON_OBJECT.decode(manifest.spec)
    template = member(spec, "template", "spec.template")
    return spec, template if member(template, "spec", "spec.template.spec").get("containers") else None


def status_of(manifest: Manifest) -> Json:
    """The status, empty where it has another shape: it is only a hint."""
    found = msgspec.json.decode(manifest.status)
    return found if isinstance(found, dict) else {}


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
        raise Fault(field, f"expected an object, got {type(found).__name__}")
    return found


def count_of(value: Json, key: str, default: int) -> int:
    """A whole number of a spec or status, the default where it is absent."""
    found = value.get(key)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise Fault(f"spec.{key}", f"must be a whole number, not {str(found)[:40]!r}")
    return found


def digest_of(template: Json) -> str:
    """Stands for the controller's hash of the template: equal templates, equal pods."""
    return hashlib.sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:10]
