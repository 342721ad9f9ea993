"""The names of DRS rules that are ours: whose a rule is, and what it is for."""

import hashlib

PREFIX = "underhost"
_NAME_LENGTH = 80  # of an inventory name in vCenter
_HASH_LENGTH = 8


def rule_name(site: str, label: str) -> str:
    """The name of a rule of ours: `underhost-SITE-LABEL-HASH`, at most 80 characters.

    A label that must be cut keeps its own hash at the end, so that two long ones stay two.
    """
    room = _NAME_LENGTH - len(PREFIX) - len(site) - _HASH_LENGTH - 3
    if len(label) > room:
        label = f"{label[: max(0, room - 7)]}~{hashlib.sha256(label.encode()).hexdigest()[:6]}"
    return f"{PREFIX}-{site}-{label}-{_hash(site, label)}"


def numbered(label: str, number: int) -> str:
    """The label of the first, second, ... rule of those that share one."""
    return f"{label}.{number}" if number > 1 else label


def owns(site: str, name: str) -> bool:
    """Whether a rule is this site's. The hash tells site `a` from site `a-b`, whose names begin alike."""
    start = f"{PREFIX}-{site}-"
    label, dash, digest = name.removeprefix(start).rpartition("-")
    return name.startswith(start) and bool(dash) and digest == _hash(site, label)


def label_of(site: str, name: str) -> str:
    """The label of a rule of the site's; "" for another's."""
    return name.removeprefix(f"{PREFIX}-{site}-").rpartition("-")[0] if owns(site, name) else ""


def _hash(site: str, label: str) -> str:
    return hashlib.sha256(f"{site}\0{label}".encode()).hexdigest()[:_HASH_LENGTH]
