"""What is wrong with the running pods of a site: every finding, the budgets' figures and a summary.

In: a snapshot and options. Out: a `Report`. One compiled model serves every part.
"""

from collections import Counter

from underhost.agents.compiled.model import Model, compile
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.budgets import budget_findings, cover
from underhost.agents.evaluate.colocated import colocated_findings
from underhost.agents.evaluate.drift import preference_drift
from underhost.agents.evaluate.judge import Judge
from underhost.agents.evaluate.nodes import node_drift, unknown_hosts, unknown_nodes
from underhost.agents.evaluate.physical import physical_findings
from underhost.agents.evaluate.unsatisfiable import judge_hosts
from underhost.agents.evaluate.violations import violation_findings
from underhost.agents.rules.separation import separations
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report


def check(snapshot: Snapshot, options: Options, model: Model | None = None) -> Report:
    """The report of a snapshot; `model` is the compiled snapshot, where the caller has it.

    Raises BadObjectError for an object that the API server would not have let in.
    """
    model = compile(snapshot, options) if model is None else model
    budgets = cover(snapshot)
    judge = Judge(model)
    apart = separations(model.selectors)
    violations = violation_findings(snapshot, judge, apart)
    physical = physical_findings(snapshot, model, apart)
    found = [
        *violations,
        *physical,
        *budget_findings(snapshot, budgets),
        *unknown_nodes(snapshot, model),
        *colocated_findings(snapshot, model, [*violations, *physical]),
        *node_drift(snapshot, model),
        *unknown_hosts(snapshot),
    ]
    if options.drift:
        found += preference_drift(snapshot, judge)
    if model.has_hosts:
        found += judge_hosts(snapshot, options, model, apart)
    found = f.in_order(found)
    return Report(
        findings=found,
        budgets={name: covered.figures for name, covered in budgets.items()},
        summary=_summary(snapshot, model, Counter(finding.severity for finding in found)),
    )


def _summary(snapshot: Snapshot, model: Model, counts: "Counter[str]") -> dict[str, int]:
    """Pods that have not finished, nodes, hosts, and findings by severity."""
    return {
        "pods": len(model.running.keys) + len(model.pending) + len(model.unbound),
        "nodes": len(snapshot.nodes),
        "hosts": snapshot.count_hosts(),
        **{severity: counts[severity] for severity in f.SEVERITIES},
    }
