"""Small builders of Kubernetes objects in the API's shape, and readers of their raw parts."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from underhost.schemas.kubernetes import Condition, Metadata, Pod

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes random names of: no vowels, no 0, 1 and 3, so no words."""


def raw(value: Any) -> Raw:
    """JSON with sorted keys, as the API server writes maps."""
    return Raw(msgspec.json.encode(value, order="sorted"))


def plain(value: Raw) -> Any:
    """What a raw part holds; None for null."""
    return msgspec.json.decode(value)


def labels_of(metadata: Metadata) -> dict[str, str]:
    """The labels of an object."""
    return dict(plain(metadata.labels) or {})


def with_metadata(value: Any, **changes: Any) -> Any:
    """The object with other metadata fields."""
    return msgspec.structs.replace(value, metadata=msgspec.structs.replace(value.metadata, **changes))


def with_spec(value: Any, **changes: Any) -> Any:
    """The object with other fields of its spec."""
    return msgspec.structs.replace(value, spec=msgspec.structs.replace(value.spec, **changes))


def with_status(value: Any, **changes: Any) -> Any:
    """The object with other fields of its status."""
    return msgspec.structs.replace(value, status=msgspec.structs.replace(value.status, **changes))


def random_suffix(source: random.Random) -> str:
    """The random end of a generated name."""
    return "".join(source.choices(SUFFIX_ALPHABET, k=5))


def random_uid(source: random.Random) -> str:
    """A version 4 uuid that depends on the seed alone."""
    digits = f"{source.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def byte_swapped(uuid: str) -> str:
    """A uuid with its first three groups byte by byte in reverse: how `systemUUID` shows a vSphere VM's uuid."""
    groups = uuid.split("-")
    return "-".join([bytes.fromhex(group)[::-1].hex() for group in groups[:3]] + groups[3:])


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches; None matches nothing, {} everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _expression_holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    present, value = expression["key"] in labels, labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return present and value in expression["values"]
        case "NotIn":
            return not present or value not in expression["values"]
        case "Exists":
            return present
        case _:
            return not present


def is_ready(pod: Pod) -> bool:
    """Condition Ready is true and the pod is not being deleted."""
    if pod.metadata.deletion_timestamp is not None:
        return False
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions or ())


def pod_conditions(*true: str, **others: str) -> list[Condition]:
    """Conditions in the kubelet's order: those named are True, `Ready="reason"` is False with a reason."""
    order = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    found = {name: Condition(name, "True") for name in true}
    found |= {name: Condition(name, "False", reason) for name, reason in others.items()}
    return [found[name] for name in order if name in found]
