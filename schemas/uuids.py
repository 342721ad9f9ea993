"""UUIDs of machines, which vSphere and Kubernetes spell differently."""

import re

_NOT_HEX = re.compile(r"[^0-9a-f]")


def uuid_digits(text: str) -> str:
    """The 32 hexadecimal digits of a UUID in any spelling, or "" where `text` is none."""
    digits = _NOT_HEX.sub("", text.lower())
    return digits if len(digits) == 32 and set(digits) != {"0"} else ""


def swapped(digits: str) -> str:
    """The other byte order of a UUID: SMBIOS stores its first three groups little-endian."""
    groups = (digits[0:8], digits[8:12], digits[12:16])
    return "".join(_reverse_bytes(group) for group in groups) + digits[16:]


def _reverse_bytes(group: str) -> str:
    return "".join(group[i : i + 2] for i in range(len(group) - 2, -1, -2))
