"""What the labels of a node say, by the host that it runs on: the host's name, and what is derived from the host.

In: the settings and all hosts of a site. Out: the labels of each host: a value, or None for one that should not be
there. Pure. Values are made valid, readable, and never the same for two
different things.
"""

import functools
import hashlib
import ipaddress
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

ATTRIBUTE = "attribute:"
LONGEST = 63
IPV6_SUFFIX = ".ipv6-literal"
_INVALID = re.compile(r"[^A-Za-z0-9._-]+")
_ENDS = "._-"
_DIGITS = 8


class LabelValues:
    """The labels of all hosts at once: only so are two hosts, or two racks, never given one value."""

    def __init__(self, settings: HostLabelSettings, hosts: Mapping[str, Host]) -> None:
        self._settings, self._hosts = settings, hosts
        self._names = label_values({ref: host.name for ref, host in hosts.items()})
        self._derived = {
            derived.key: _distinct(source_of(host.labels, derived.source) for host in hosts.values())
            for derived in settings.derived
        }

    def of(self, host: str) -> dict[str, str | None]:
        """The labels of a node on this host.

        None, to be removed, is a derived label for which this host has nothing while others have: a node that moved
        here would go on claiming the rack that it has left. Where no host has it, nobody may be able to read it.
        """
        wanted = self.of_pods(host)
        if self._settings.mode == "observe":
            wanted.pop(self._settings.key, None)
        return wanted

    def of_pods(self, host: str) -> dict[str, str | None]:
        """The same for pods on this host: they are told its name, whoever labels nodes."""
        wanted: dict[str, str | None] = {}
        if value := self._names.get(host):
            wanted[self._settings.key] = value
        for derived in self._settings.derived:
            values = self._derived[derived.key]
            found = values.get(source_of(self._hosts[host].labels, derived.source))
            if found is not None or values:
                wanted[derived.key] = found
        return wanted


def source_of(labels: Mapping[str, str], source: str) -> str:
    """What `from` names: an entry of the host's labels, where a custom attribute stands by its name; "" if unset."""
    return labels.get(source) or labels.get(source.removeprefix(ATTRIBUTE), "")


def _distinct(raw: Iterable[str]) -> dict[str, str]:
    """The label value of each different raw one."""
    return label_values({value: value for value in raw if value})


@functools.lru_cache(4096)
def label_value(name: str) -> str:
    """The value for a host of this name, as Cluster API's vSphere provider writes it; "" for an unusable name.

    IPv6 addresses change `:` to `-` and end in `.ipv6-literal`; a long DNS name is cut at a dot, and one whose first
    part alone is too long is cut there and given a hash. Different names can give one value: see `label_values`.
    """
    name = name.strip()
    address, _, zone = name.strip("[]").partition("%")
    if _is_ipv6(address):
        text = ("0" if address.startswith(":") else "") + address + ("0" if address.endswith(":") else "")
        return _valid(text.replace(":", "-") + (f"s{zone}" if zone else "") + IPV6_SUFFIX, name)
    return _valid(name, name)


def label_values(hosts: Mapping[str, str]) -> dict[str, str]:
    """The value of each host: `hosts` is names by moref. Hosts without a usable name are left out.

    Hosts whose names give the same value all get a short hash of name and moref appended, so that the result does not
    depend on an order, and no two hosts ever look like one.
    """
    by_value: dict[str, list[str]] = defaultdict(list)
    for ref, name in hosts.items():
        if value := label_value(name):
            by_value[value].append(ref)
    values: dict[str, str] = {}
    for value, refs in by_value.items():
        for ref in refs:
            values[ref] = value if len(refs) == 1 else _apart(value, f"{hosts[ref]}\0{ref}", by_value)
    return values


def _apart(value: str, identity: str, taken: Container[str]) -> str:
    """The value with a hash, longer where another host happens to have the suffixed name for its own."""
    candidates = (_suffixed(value, identity, digits) for digits in (_DIGITS, 16, 32))
    return next((candidate for candidate in candidates if candidate not in taken), "")


def _valid(text: str, name: str) -> str:
    text = _INVALID.sub("-", text).strip(_ENDS)
    if len(text) <= LONGEST:
        return text
    parts = text.split(".")
    while len(parts) > 1 and len(".".join(parts)) > LONGEST:
        parts.pop()
    cut = ".".join(parts)
    return cut.rstrip(_ENDS) if len(cut) <= LONGEST else _suffixed(cut, name)


def _suffixed(text: str, identity: str, digits: int = _DIGITS) -> str:
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{text[: LONGEST - digits - 1].rstrip(_ENDS)}-{digest}"


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False
