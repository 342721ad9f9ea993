"""Steps tried on the site one after another: none may break what held before it.

In: a snapshot, its evaluator, vMotions. Out: the site after them, and the first step that broke something. The
evaluator judges every moment: it knows rules that the planner does not count with.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.planner.fleet import VmCluster
from underhost.agents.planner.order import VMotion
from underhost.agents.repair.evictions import RULES, facts_of
from underhost.agents.repair.reached import ReachedRules
from underhost.agents.schedule.progress import told
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.hosts import Fleet
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding, NodeHost
from underhost.schemas.severities import QUORUM
from underhost.schemas.vsphere import Vm

Held = frozenset[tuple[str, ...]]


class Replayed(NamedTuple):
    """The site after the steps, and its report; `broken`: (VM, host) of the step that broke something."""

    snapshot: Snapshot
    report: Report
    broken: tuple[int, int] | None


class Replay:
    """Tries steps on one site."""

    def __init__(self, snapshot: Snapshot, evaluator: SiteEvaluator) -> None:
        # Claims decide where pods may go, not whether VMs may; with them nothing of the site could be kept.
        self.start = replace(snapshot, claims={}) if snapshot.claims else snapshot
        self._evaluator = evaluator
        self._nodes = Fleet().nodes_of(snapshot)

    def of(self, snapshot: Snapshot, fleet: VmCluster, steps: Iterable[VMotion]) -> Replayed:
        """The steps, as far as they are safe."""
        report = self._evaluator.update(snapshot)
        held = broken_rules(report.findings)
        for step in told("trying moves", list(steps)):
            moved = self._moved(snapshot, fleet, step)
            report = self._evaluator.update(moved)
            now = broken_rules(report.findings)
            if not now <= held and self._is_broken(moved, report, now - held):
                return Replayed(snapshot, report, (step.vm, step.to))
            snapshot, held = moved, now
        return Replayed(snapshot, report, None)

    def _is_broken(self, site: Snapshot, report: Report, new: Held) -> bool:
        """Whether any of what is newly broken counts: terms count as far as they reach."""
        rules = ReachedRules(self._evaluator.state(site).model)
        told_of = [one for one in report.findings if not new.isdisjoint(broken_rules([one]))]
        return not new.isdisjoint(broken_rules(rules.counted(told_of)))

    def _moved(self, snapshot: Snapshot, fleet: VmCluster, step: VMotion) -> Snapshot:
        host, ref = fleet.hosts[step.to], fleet.vms[step.vm].ref
        vms: dict[str, Vm] = {**snapshot.vms, ref: structs.replace(snapshot.vms[ref], host=host.ref)}
        joined: dict[str, NodeHost] = dict(snapshot.node_hosts)
        for name in self._nodes.get(ref, ()):
            joined[name] = structs.replace(joined[name], host=host.ref, host_name=host.name)
        return replace(snapshot, vms=vms, node_hosts=joined)


def broken_rules(findings: Iterable[Finding]) -> Held:
    """Which pod breaks which rule, wherever it is: what was broken before a VM moved is nothing new where it goes.

    Of a quorum, whose members may be nodes, it is the place that holds too many.
    """
    found = list(findings)
    rules = {(severity, rule, source, key, pod) for severity, rule, source, key, _, pod in facts_of(found, RULES)}
    return frozenset(
        rules
        | {
            (QUORUM, one.object or "", one.domain.value if one.domain else "")
            for one in found
            if one.severity == QUORUM
        }
    )


def subjects(finding: Finding) -> frozenset[str]:
    """What a finding is about: its pods; where it is about nodes, their place."""
    if finding.pod is None:
        return frozenset() if finding.domain is None else frozenset((finding.domain.value,))
    return frozenset((finding.pod, *finding.peers))
