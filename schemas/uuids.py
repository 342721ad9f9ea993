"""UUIDs of machines, which vSphere and Kubernetes spell differently."""

import re

from underhost.schemas.kubernetes import Node

PROVIDER_ID, SYSTEM_UUID = "providerID", "systemUUID"
_SCHEME = "vsphere://"
_NOT_HEX = re.compile(r"[^0-9a-f]")


def uuid_digits(text: str) -> str:
    """The 32 hexadecimal digits of a UUID in any spelling, or "" where `text` is none."""
    digits = _NOT_HEX.sub("", text.lower())
    return digits if len(digits) == 32 and set(digits) != {"0"} else ""


def swapped(digits: str) -> str:
    """The other byte order of a UUID: SMBIOS stores its first three groups little-endian."""
    groups = (digits[0:8], digits[8:12], digits[12:16])
    return "".join(_reverse_bytes(group) for group in groups) + digits[16:]


def vm_uuids(node: Node) -> tuple[str, list[str]] | None:
    """By what a node says which VM it is, and the digits that this VM's uuid may have; None where it does not say.

    `spec.providerID` (`vsphere://UUID`) says it, and without one `systemUUID`, which is in either byte order. A
    `vsphere://` that no uuid follows says that the node is a VM, but not which: no digits.
    """
    provider_id = node.spec.provider_id.strip()
    if provider_id.lower().startswith(_SCHEME):
        digits = uuid_digits(provider_id[len(_SCHEME) :])
        return PROVIDER_ID, [digits] if digits else []
    info = node.status.node_info
    if info is not None and (digits := uuid_digits(info.system_uuid)):
        return SYSTEM_UUID, list(dict.fromkeys((digits, swapped(digits))))
    return None


def _reverse_bytes(group: str) -> str:
    return "".join(group[i : i + 2] for i in range(len(group) - 2, -1, -2))
