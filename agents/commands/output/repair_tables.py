"""How a repair reads: its steps, what stays and why, and what it costs.

In: a plan. Out: tables and a last line.
"""

from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import counted
from underhost.schemas.documents import RepairPlan

NOTHING = "-"


def tables(plan: RepairPlan, wide: bool) -> list[Table]:
    """The steps and what stays; with `wide` also the findings that end, and those that are new."""
    known = {one.id: one for one in (*plan.resolved_findings, *plan.left_findings)}
    about = {id_: f"{one.severity} {one.rule} {one.pod or one.node or NOTHING}" for id_, one in known.items()}
    steps = [
        (
            str(step.step),
            str(step.wave),
            step.kind,
            step.vm or step.pod or NOTHING,
            step.from_,
            step.to,
            ", ".join(about.get(id_, id_) for id_ in step.because),
        )
        for step in plan.steps
    ]
    stays = [
        (
            about.get(one.finding, one.finding),
            "; ".join(one.conflict) or NOTHING,
            ", or ".join(one.would_help) or NOTHING,
        )
        for one in plan.unrepairable
    ]
    found = [
        Table(("STEP", "WAVE", "KIND", "WHAT", "FROM", "TO", "BECAUSE OF"), steps),
        Table(("STAYS", "BECAUSE", "WOULD HELP"), stays),
    ]
    if wide:
        for title, findings in (("RESOLVED", plan.resolved_findings), ("NEW FINDING", plan.new_findings)):
            rows = [(one.id, one.severity, one.rule, one.pod or NOTHING, one.message) for one in findings]
            found.append(Table((title, "SEVERITY", "RULE", "POD", "MESSAGE"), rows))
    return found


def summary(plan: RepairPlan) -> str:
    """All of it in one line."""
    cost = plan.objective
    if not plan.steps and not cost.findings_left:
        return "nothing to repair"
    said = []
    if cost.vmotions:
        copied = f" ({cost.memory_mib / 1024:.1f} GiB)" if cost.memory_mib else ""  # 0: the inventory does not say it
        said.append(counted(cost.vmotions, "vMotion") + copied)
    if cost.evictions:
        said.append(counted(cost.evictions, "eviction"))
    ends = f"{counted(len(plan.resolved_findings), 'finding')} resolved"
    stays = f"{cost.findings_left} left" if cost.findings_left else "nothing left"
    best = "no plan is cheaper" if plan.optimal else "that no plan is cheaper is not proven"
    return ", ".join([*(said or ["nothing moves"]), ends, stays]) + f"; {best}"
