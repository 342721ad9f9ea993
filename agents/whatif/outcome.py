"""What a plan leaves behind: the site after it compared with the site before it, as a `WhatIf` document.

In: the report before the plan, and the world that the steps have changed. Out: the document. A finding is new where its
id is.
"""

from collections.abc import Iterable

from underhost.agents.affinity.left_out import left_out_of
from underhost.agents.evaluate.tables import FindingSet
from underhost.agents.site.not_judged import BY_NAMESPACE, namespaces_not_judged
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.world import World
from underhost.schemas.documents import Blocked, BudgetUse, NotJudged, Report, WhatIf
from underhost.schemas.records import Finding


class Before:
    """The site before a plan, or before each of many."""

    def __init__(self, report: Report, snapshot: Snapshot) -> None:
        self.not_judged = left_out_of(snapshot)
        self.findings = FindingSet(report.findings)
        self.allowed = {name: figures.allowed for name, figures in report.budgets.items()}


def outcome(world: World, before: Before) -> WhatIf:
    """What became of the site. Raises BadObjectError."""
    blocked = {pod: budgets for pods in world.draining.values() for pod, budgets in pods.items()}
    new: list[Finding] = []
    resolved: list[Finding] = []
    if world.step:
        after = FindingSet(world.evaluator.update(world.snapshot).findings)
        new, resolved = after - before.findings, before.findings - after
    return WhatIf(
        moves=world.moves,
        vm_moves=world.vm_moves,
        pending=world.pending(),
        blocked=[Blocked(pod, budgets) for pod, budgets in sorted(blocked.items())],
        new_findings=new,
        resolved_findings=resolved,
        budgets={name: BudgetUse(before.allowed.get(name, 0), used) for name, used in sorted(world.used.items())},
        not_judged=before.not_judged,
    )


def with_added(left_out: Iterable[NotJudged], snapshot: Snapshot) -> list[NotJudged]:
    """What is left out once a plan has added objects: these may be of namespaces that are not known, or be those."""
    others = [one for one in left_out if not one.what.startswith(BY_NAMESPACE)]
    return [*others, *namespaces_not_judged(snapshot)]
