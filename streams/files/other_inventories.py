"""Inventories of other tools, known by how they begin, so that their refusal says what to give instead.

In: a text or a document that is no Kubernetes object. Out: what it seems to be, "" where that is not known.
"""

import re
from typing import TypeVar

import msgspec

from underhost.streams.files.inventory import WRITES

T = TypeVar("T")
_LOOKED_AT = 4096
_SECTION = re.compile(rb"^\[[\w.:-]+\][ \t]*\r?$", re.MULTILINE)
_ANSIBLE = re.compile(rb"^\S+[ \t]+ansible_\w+=", re.MULTILINE)
_RVTOOLS = re.compile(rb'"?VM"?[,;\t]"?Powerstate')
_WORKBOOK = b"xl/workbook.xml"
_OURS = "hosts and VMs: give it with --inventory"
_OTHER = f"not an inventory of hosts and VMs: {WRITES}"


def of_text(data: bytes) -> str:
    """What a text is that is neither JSON nor meant as YAML."""
    head = data[:_LOOKED_AT]
    if _SECTION.search(head) or _ANSIBLE.search(head):
        return f"is an INI file (an Ansible inventory?), {_OTHER}"
    return f"is a list of RVTools, {_OTHER}" if _RVTOOLS.match(head) else ""


def of_archive(data: bytes) -> str:
    """What an archive is that holds no file to read."""
    return f"is a workbook (RVTools?), {_OTHER}" if _WORKBOOK in data else ""


def of_document(document: bytes) -> str:
    """What a JSON document without a kind is."""
    try:
        parts = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return ""
    if any(name in parts and _as(list[_Named], parts[name]) for name in ("hosts", "vms")):
        return f"has no kind, but {_OURS}"
    return f"is an Ansible inventory, {_OTHER}" if any(_is_group(part) for part in parts.values()) else ""


class _Named(msgspec.Struct):
    name: str


class _AnsibleGroup(msgspec.Struct):
    hosts: dict[str, msgspec.Raw] | None = None
    children: dict[str, msgspec.Raw] | None = None


def _is_group(part: msgspec.Raw) -> bool:
    group = _as(_AnsibleGroup, part)
    return group is not None and (group.hosts is not None or group.children is not None)


def _as(type_: type[T], part: msgspec.Raw) -> T | None:
    """The part, if it is of this shape."""
    try:
        return msgspec.json.decode(part, type=type_)
    except msgspec.ValidationError:
        return None
