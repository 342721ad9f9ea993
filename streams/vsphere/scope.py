"""Which vSphere clusters matter to a site where the settings name none: those that hold the VM of one of its nodes.

In: the site's nodes, as the topics hold them, and VMs. Out: whether a VM may be a node's. Which VM is which node's is
decided by `agents/site/join.py`; what may never be joined there brings no cluster in here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from underhost.schemas.kubernetes import Node, decode
from underhost.schemas.uuids import uuid_digits, vm_uuids


def identities(nodes: Iterable[bytes], *, by_name: bool) -> frozenset[str]:
    """All that a VM may be known by as the VM of one of these nodes: uuids, and names of nodes that have no uuid.

    `by_name`: whether names are asked at all (`vsphere.joinByName`).
    """
    found: set[str] = set()
    for data in nodes:
        try:
            node = decode(data, Node)
        except msgspec.MsgspecError:
            continue
        if (said := vm_uuids(node)) is not None:
            found.update(said[1])
        if said is not None or not by_name:
            continue
        names = [node.metadata.name, *(item.address for item in node.status.addresses or () if item.type == "Hostname")]
        found |= {_plain(name) for name in names}
    return frozenset(found - {""})


def may_be_node(vm: Mapping[str, Any], known: frozenset[str]) -> bool:
    """Whether the VM, by its properties, has one of these identities."""
    names = {_plain(vm.get("name") or ""), _plain(vm.get("guest.hostName") or "")}
    return not known.isdisjoint({uuid_digits(vm.get("config.uuid") or ""), *names})


def _plain(name: str) -> str:
    return name.strip().rstrip(".").lower()
