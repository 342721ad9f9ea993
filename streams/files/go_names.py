"""The old form of `kubectl cluster-info dump`, of kubectl 1.6 to 1.10, as the API has it.

Those wrote their own structs of Go as JSON: fields with Go's names (`Spec`, `ProviderID`), the metadata's fields
beside them, and no kind. In: one object of such a list. Out: the same in the API's names.
"""

from typing import Any

import msgspec
from msgspec import Raw

_MAPS = frozenset({"NodeSelector", "Selector", "Capacity", "Allocatable", "Requests", "Limits", "Overhead"})
"""Fields whose own keys are names of labels or resources, and selectors, which have the API's names everywhere."""
_OF_AN_OBJECT = ("kind", "apiVersion", "metadata")


def api_object(raw: Raw) -> Raw:
    """The object with the API's names. Raises RecursionError."""
    return Raw(msgspec.json.encode(_renamed(msgspec.json.decode(raw))))


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(part) for part in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for key, part in value.items():
        if part is None:
            continue
        if key[:1].isupper():
            found[_api_name(key)] = part if key in _MAPS else _renamed(part)
        elif "Spec" in value and key not in _OF_AN_OBJECT:
            metadata[key] = part
        else:
            found[key] = part
    if metadata:
        found.setdefault("metadata", metadata)
    security = value.get("SecurityContext")
    if isinstance(security, dict) and security.get("HostNetwork") is True:  # the API has it beside
        found["hostNetwork"] = True
    return found


def _api_name(name: str) -> str:
    """`NodeName` is nodeName, `PodCIDR` podCIDR, `QOSClass` qosClass, `NFS` nfs: the first word in small letters."""
    capitals = next((at for at, letter in enumerate(name) if not letter.isupper()), len(name))
    first = capitals if capitals in (1, len(name)) else capitals - 1
    return name[:first].lower() + name[first:]
