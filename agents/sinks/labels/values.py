"""What the labels of a node say, by the host that it runs on: the host's name, and what is derived from the host.

In: the settings and all hosts of a site. Out: the labels of each host: a value, or None for one that should not be
there. Pure. Values are made valid, and never the same for two different things.
"""

from collections.abc import Iterable, Mapping

from underhost.agents.sinks.labels.host_value import label_values
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

ATTRIBUTE = "attribute:"


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
        wanted: dict[str, str | None] = {}
        if self._settings.mode != "observe" and (value := self._names.get(host)):
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
