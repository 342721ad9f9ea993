"""Separations that a shared ESXi host undoes: `physical` findings.

In: a case, and the places (separation and host) to look at. Out: one finding for each source rule, host and connected
group of pods. Which pods conflict is decided by `affinity/separation.py`. Terms on a host key are not judged here: for
those the live host is the domain itself, so they are violations of their own rule.
"""

from underhost.agents.affinity.separation import INTER_POD_AFFINITY, SeparationId
from underhost.agents.compiled.domains import Domains, Topology
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.meetings import Group, Meetings
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site.places import named_host
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import PHYSICAL

REASON = "pods that a rule keeps apart share a host"
HOST = "host"


class Physical(Meetings):
    """Pods on one host that a required anti-affinity or a DoNotSchedule spread keeps apart by label."""

    across = True

    def concerns(self, topology: Topology, at: SeparationId) -> bool:
        """Where hosts are known, every separation that is not by host itself."""
        return topology.hosts is not None and not topology.is_host_key(at.key)

    def domains(self, topology: Topology, at: SeparationId) -> Domains:
        """The live hosts."""
        assert topology.hosts is not None
        return topology.hosts

    def together(self, at: SeparationId) -> str:
        """One finding for one rule and host."""
        return at.rule

    def finding(self, case: Case, source: str, value: str, group: Group) -> Finding:
        """Pods on one host that the source rule keeps apart by label."""
        snapshot, pods = case.snapshot, group.pods
        first = snapshot.pods[pods[0]]
        host = snapshot.node_hosts[first.spec.node_name].host
        keys = sorted({one.key for one in group.separations})
        term = "required anti-affinity" if source == INTER_POD_AFFINITY else "DoNotSchedule spread"
        message = (
            f"{f.listing(case.placed(pods))} {'both' if len(pods) == 2 else 'all'} run on "
            f"{named_host(snapshot, value)}, though a {term} by {f.listing(keys, len(keys))} keeps them apart: "
            "one host failure takes them together."
        )
        return Finding(
            id=f.finding_id(
                snapshot.site, PHYSICAL, PHYSICAL_HOST, source, host + group.stranger, f.uid_of(pods[0], first)
            ),
            severity=PHYSICAL,
            rule=PHYSICAL_HOST,
            reason=REASON,
            message=message,
            pod=pods[0],
            node=first.spec.node_name,
            peers=pods[1:],
            domain=Domain(key=HOST, value=value),
            source=source,
            object=group.whose,
        )
