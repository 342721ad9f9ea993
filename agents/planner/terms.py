"""What shall be repaired, and how: what a plan is asked for. Making one is left to `plan.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from underhost.agents.evaluate.findings import namespace_of
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.replay import subjects
from underhost.agents.repair.evictable import EvictionTerms
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.schemas.records import Finding
from underhost.schemas.severities import GRAVE

OURS = frozenset({"underhost"})


@dataclass(frozen=True)
class RepairTerms:
    """What shall be repaired, and how.

    Attributes:
        severities: of the findings that shall end.
        namespaces: only findings about pods of these; all where empty. finding: only this one, by its id.
        spared: namespaces whose findings are left as they are.
        most_vmotions: not more vMotions. evictions: whether pods may be evicted, and which.
        room: how the hosts' room is counted.
        held: VMs, by reference, that stay where they are, with the reason. barred: (VM, host), by reference, that is no
            way out.
    """

    severities: frozenset[str] = frozenset(GRAVE)
    namespaces: frozenset[str] = frozenset()
    finding: str = ""
    spared: frozenset[str] = frozenset()
    most_vmotions: int | None = None
    evictions: EvictionTerms | None = field(
        default_factory=lambda: EvictionTerms(schedulers=frozenset({"default-scheduler", *OURS}), ours=OURS)
    )
    room: Room = field(default_factory=Room)
    held: Mapping[str, str] = field(default_factory=dict)
    barred: frozenset[tuple[str, str]] = frozenset()

    def wants(self, finding: Finding) -> bool:
        """Whether the finding shall end."""
        spaces = {subject.partition("/")[0] for subject in subjects(finding) if "/" in subject}
        return (
            finding.severity in self.severities
            and namespace_of(finding) not in self.spared
            and (not self.finding or finding.id == self.finding)
            and (not self.namespaces or not spaces.isdisjoint(self.namespaces))
        )

    def wanted(self, findings: Sequence[Finding]) -> list[Finding]:
        """Those of a site's findings that shall end. Raises InputError where the one asked for is not among them."""
        found = [one for one in findings if self.wants(one)]
        if self.finding and not found:
            near = did_you_mean(self.finding, [one.id for one in findings])
            raise InputError(f"finding {self.finding}: not there, or no move ends it{near}")
        return found

    def check(self, snapshot: Snapshot) -> None:
        """Raises InputError where a namespace is not there."""
        there = {pod.metadata.namespace for pod in snapshot.pods.values()} | snapshot.namespaces.keys()
        unknown = sorted(one for one in self.namespaces if one not in there)
        if unknown:
            raise InputError(*(f"namespace {one} is not there{did_you_mean(one, there)}" for one in unknown))
