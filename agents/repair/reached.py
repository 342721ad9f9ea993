"""What findings ask of hosts that a repair follows: as far as the terms of pods reach.

In: a compiled site, and findings of it. Out: the separations that count, the pods of a finding that refuse one another
by them, and what is left of a finding where the rest asks something of other namespaces (`affinity/reach.py`).
"""

from collections.abc import Collection, Iterable

from msgspec import structs

from underhost.agents.affinity.reach import TermReach
from underhost.agents.affinity.separation import INTER_POD_AFFINITY, Row, Separation, pairs, separation_of, sides_of
from underhost.agents.compiled.model import Model
from underhost.agents.evaluate.findings import namespace_of
from underhost.agents.rules import physical_host
from underhost.schemas.records import Finding, pods_named
from underhost.schemas.severities import PHYSICAL, VIOLATION


class ReachedRules:
    """Of one model."""

    def __init__(self, model: Model) -> None:
        self._model, self._reach = model, TermReach(model.classes, model.options)

    def of(self, classes: Collection[int]) -> list[Separation]:
        """The separations that one of these classes is on a side of, sorted."""
        selectors = self._model.selectors
        sides = {side.id for cls in classes for side in sides_of(self._model.classes[cls])}
        found = {separation_of(selectors, at) for at in sides}
        return self._reach.separations(one for one in found if one.matched)

    def refusing(self, finding: Finding) -> list[tuple[str, str]]:
        """Every two of its pods that refuse one another because of their host."""
        topology, running = self._model.topology, self._model.running
        across = finding.rule == physical_host.NAME
        rule = finding.source if across else finding.rule
        if finding.domain is None or (rule != INTER_POD_AFFINITY and not across):
            return []
        if not across and not topology.is_host_key(finding.domain.key):
            return []
        pods = [running.at[pod] for pod in pods_named(finding) if pod in running.at]
        found: set[tuple[int, int]] = set()
        for one in self.of({running.class_at[pod] for pod in pods}):
            by_host = topology.is_host_key(one.key)
            if one.rule != rule or by_host == across or (by_host and one.key != finding.domain.key):
                continue
            if self._model.classes[one.owners[0]].namespace != namespace_of(finding):
                continue
            codes, owners, matched = topology.of(one.key).code_list, frozenset(one.owners), frozenset(one.matched)
            rows = [
                Row(codes[running.node_at[pod]], pod, running.class_at[pod] in owners, running.class_at[pod] in matched)
                for pod in pods
            ]
            found.update(pairs(rows, across))
        return [(running.keys[one], running.keys[other]) for one, other in sorted(found)]

    def within(self, finding: Finding) -> Finding | None:
        """What a repair must not bring about of it: its pods that refuse one another; None where it asks nothing.

        A finding that is not about pods that break a rule on their hosts is as it is.
        """
        if finding.severity not in (VIOLATION, PHYSICAL):
            return finding
        if finding.domain is None:
            return finding if finding.rule != INTER_POD_AFFINITY or self._stays_within(finding) else None
        if finding.rule not in (physical_host.NAME, INTER_POD_AFFINITY):
            return finding
        if finding.rule == INTER_POD_AFFINITY and not self._model.topology.is_host_key(finding.domain.key):
            return finding
        pods = sorted({pod for pair in self.refusing(finding) for pod in pair})
        return structs.replace(finding, pod=pods[0], peers=pods[1:]) if pods else None

    def counted(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, each without what does not count."""
        return [one for one in map(self.within, findings) if one is not None]

    def _stays_within(self, finding: Finding) -> bool:
        """Whether what its pod wants near is of its own namespace, or counts all the same."""
        at = self._model.running.at.get(finding.pod or "")
        if at is None:
            return True
        cls = self._model.classes[self._model.running.class_at[at]]
        return self._reach.keeps_within(cls, [one.selector for one in cls.required_affinity])
