"""What one evaluation of a site decided: values, made in `decide/`, published by the cycle, shown to whoever looks.

Each part holds what is so now, and the records that say what has changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.records import Action, FindingEvent, NodeHost, Placement
from underhost.schemas.vsphere import Host
from underhost.streams.ports import Outgoing


@dataclass(frozen=True)
class NodeHostChange:
    """The mapping as it is now, the hosts in it, the nodes left out (`Snapshot.rivals`), and the records of it."""

    node_hosts: Mapping[str, NodeHost]
    hosts: Mapping[str, Host]
    rivals: Mapping[str, str]
    records: list[Outgoing]


@dataclass(frozen=True)
class FindingChange:
    """What is open now, and the records that say what changed."""

    open: Mapping[str, FindingEvent]
    records: list[Outgoing]


@dataclass(frozen=True)
class PlacementChange:
    """The placements to publish, their records, and the orders to bind that they are, by pod.

    `confirmed` are the order ids, by pod, of those that were decided once more.
    """

    placements: list[Placement]
    records: list[Outgoing]
    orders: dict[str, Action]
    confirmed: dict[str, str]


@dataclass(frozen=True)
class Decisions:
    """What one evaluation decided. Each part is None where it was not asked for."""

    snapshot: Snapshot
    node_hosts: NodeHostChange | None = None
    report: Report | None = None
    findings: FindingChange | None = None
    placements: PlacementChange | None = None
    actions: list[Action] = field(default_factory=list)
    action_records: list[Outgoing] = field(default_factory=list)
    confirmed: frozenset[str] = frozenset()
    """Ids of commands of an earlier run that still hold; only what was not carried out yet is of interest."""
    unseen: int = 0
    """Writes of ours that nothing has shown for too long."""

    @property
    def placed(self) -> Sequence[Placement]:
        """The placements that are new."""
        return self.placements.placements if self.placements is not None else ()

    @cached_property
    def commands(self) -> list[Action]:
        """Every command that is new: those on `actions`, and the orders to bind that the placements are."""
        return [*self.actions, *(self.placements.orders.values() if self.placements is not None else ())]

    @property
    def records(self) -> list[Outgoing]:
        """All records, in the order in which they are published: the mapping first, what follows from it after."""
        parts = (self.node_hosts, self.findings, self.placements)
        return [record for part in parts if part is not None for record in part.records] + self.action_records
