"""What the property collector reports, as plain values: no pyVmomi type leaves `collector.py`."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from underhost.schemas.vsphere import FULLY_AUTOMATED, Admission, DrsRule

VM = "vm"
HOST = "host"
CLUSTER = "cluster"

PASSTHROUGH = "config.hardware.device[13000]"
"""The path of a VM's first PCI passthrough device, by the key that it always has: no vMotion takes it along."""

MODIFY = "modify"
LEAVE = "leave"


class ObjectChange(NamedTuple):
    """A change of one object.

    Attributes:
        kind: enter, modify or leave.
        type: vm, host or cluster.
        ref: the moref.
        properties: by path, only those that were sent; a reference is a moref, an unset property None.
        missing: paths that the server does not show us, by the name of the fault (NoPermission, ...).
    """

    kind: str
    type: str
    ref: str
    properties: Mapping[str, Any]
    missing: Mapping[str, str] = {}


class Page(NamedTuple):
    """One answer of the collector. `truncated`: more of the same update follows with this version."""

    version: str
    truncated: bool
    changes: tuple[ObjectChange, ...]


class ClusterState(NamedTuple):
    """What vCenter does not announce of a cluster. `rules` is None where we have no right to read them.

    `automation` and, by VM, `overrides` are what DRS may do by itself, `admission` what HA keeps free, as in
    `schemas/vsphere.py`.
    """

    ref: str
    name: str
    drs: bool
    ha: bool
    rules: tuple[DrsRule, ...] | None
    automation: str = FULLY_AUTOMATED
    overrides: Mapping[str, str] = {}
    admission: Admission | None = None


class Poll(NamedTuple):
    """What vCenter does not announce, read at intervals.

    Attributes:
        clusters: every cluster that vCenter shows.
        host_changes: connection state and maintenance mode of every host, as changes of kind modify.
        attribute_names: names of the custom attributes, by key.
        placement: name of the datacenter and folder of each cluster, by its moref, as labels.
        tags: of each host, and of each cluster with what lies above it, by moref: the tag by its category. None where
            this session has not been able to read them yet.
    """

    clusters: tuple[ClusterState, ...]
    host_changes: tuple[ObjectChange, ...]
    attribute_names: Mapping[int, str]
    placement: Mapping[str, Mapping[str, str]]
    tags: Mapping[str, Mapping[str, str]] | None = {}


class Collector(Protocol):
    """A session with a filter on the inventory. Methods raise SessionLost, Gone, Refused or Unreachable."""

    async def wait(self, version: str) -> Page | None:
        """The changes since this version ("" for everything); None if there were none for a while.

        Gone: the server does not know the version any more, everything has to be read anew.
        """

    async def poll(self) -> Poll:
        """Read what is not announced."""

    async def close(self) -> None:
        """End a wait that is under way, drop the filter and log out. Never raises."""
