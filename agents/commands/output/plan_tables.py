"""How a what-if reads: what moves where and why, what waits, what is blocked, what is newly wrong; and the N+1 table.

In: an answer and the steps in words. Out: tables and a last line.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import available, counted
from underhost.agents.whatif.each import table
from underhost.agents.whatif.plan import Answer
from underhost.agents.whatif.steps import HOST
from underhost.schemas import frames as fr
from underhost.schemas.documents import Target, WhatIf
from underhost.schemas.records import Finding
from underhost.schemas.severities import SEVERITIES

NOWHERE = "-"
NO_HOST = "no other host can take it: room, a DRS rule, or DRS is off"


def tables(found: Answer, steps: Sequence[str], wide: bool) -> list[Table]:
    """What the plan leads to; with `wide` also the budgets that were asked and the findings that end."""
    document, several = found.document, len(steps) > 1

    def numbered(step: int, *cells: str) -> tuple[str, ...]:
        return (str(step), *cells) if several else cells

    header = ("STEP",) if several else ()
    moves = [numbered(one.step, one.pod, one.from_ or NOWHERE, one.to, steps[one.step - 1]) for one in document.moves]
    vms = [
        numbered(one.step, one.vm, one.from_, one.to or NOWHERE, steps[one.step - 1] if one.to else NO_HOST)
        for one in document.vm_moves
    ]
    waits = [(pod, _why(reasons, found.nodes)) for pod, reasons in document.pending.items()]
    blocked = [(one.pod, _budgets(one.budgets)) for one in document.blocked]
    result = [
        Table((*header, "POD MOVES", "FROM", "TO", "WHY"), moves),
        Table((*header, "VM MOVES", "FROM", "TO", "WHY"), vms),
        Table(("STAYS PENDING", "REASON"), waits),
        Table(("BLOCKED", "BY BUDGET"), blocked),
        new_findings(document.new_findings),
    ]
    if wide:
        budgets = [(name, str(one.allowed_before), str(one.used)) for name, one in document.budgets.items()]
        result.append(Table(("RESOLVED", "RULE", "POD", "NODE", "MESSAGE"), _findings(document.resolved_findings)))
        result.append(Table(("BUDGET", "ALLOWED", "USED"), budgets))
    return result


def new_findings(findings: Sequence[Finding]) -> Table:
    """What is wrong after a plan, and was not before."""
    return Table(("NEW FINDING", "RULE", "POD", "NODE", "MESSAGE"), _findings(findings))


def simulated(what: str) -> str:
    """The first line: nobody shall take the answer for something that was done."""
    return f"Simulate: {what}; nothing is changed."


def summary(document: WhatIf) -> str:
    """All of it in one line."""
    stuck = sum(move.to is None for move in document.vm_moves)
    said = [
        _said(len(document.vm_moves) - stuck, "VM moves", "VMs move"),
        _said(stuck, "VM cannot move", "VMs cannot move"),
        _said(len(document.moves), "pod moves", "pods move"),
        _said(len(document.pending), "stays pending", "stay pending"),
        _said(len(document.blocked), "is blocked", "are blocked"),
    ]
    counts = Counter(one.severity for one in document.new_findings)
    new, ended = len(document.new_findings), len(document.resolved_findings)
    said += [f"{counted(new, 'new finding')} ({severities(counts)})" if new else "no new finding"]
    said += [f"{counted(ended, 'finding')} resolved"] if ended else []
    happens = [part for part in said[:5] if part]
    return ", ".join([*(happens or ["nothing moves"]), *said[5:]])


def severities(counts: Mapping[str, int]) -> str:
    """`2 violation, 1 drift`, from the number of findings of each severity; `-` for none."""
    return ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]) or NOWHERE


def each_table(found: Sequence[Target], kind: str, wide: bool) -> Table:
    """One line for each host or node that fails, the worst first."""
    first = (kind.upper(), "NODES", "PODS") if kind == HOST else (kind.upper(), "PODS")
    header = (*first, *(("VMS RESTART",) if kind == HOST else ()), "PODS MOVE", "STAY PENDING", "NEW FINDINGS")
    rows = []
    for one in table(found).iter_rows(named=True):
        nodes = ",".join(one[fr.NODES_LOST]) if wide else str(len(one[fr.NODES_LOST]))
        cells = [one[fr.TARGET].partition("/")[2], *([nodes] if kind == HOST else []), str(one[fr.PODS_COUNT])]
        cells += [str(one[fr.VM_MOVES])] if kind == HOST else []
        rows.append((*cells, str(one[fr.MOVES]), str(one[fr.PENDING]), severities(one)))
    return Table(header, rows)


def each_summary(found: Sequence[Target], bad: Sequence[Target], kind: str, fail_on: str) -> str:
    """How many may fail, one at a time."""
    good = len(found) - len(bad)
    what = "no pod left pending" + ("" if fail_on == "never" else f", no new finding of {fail_on} or above")
    return f"{good} of {counted(len(found), kind)} can fail alone with {what}"


def _said(number: int, one: str, many: str) -> str:
    return "" if not number else f"{number} {one if number == 1 else many}"


def _why(reasons: dict[str, int], nodes: int) -> str:
    return available(nodes, reasons) if any(reasons.values()) else ", ".join(sorted(reasons))


def _budgets(names: Sequence[str]) -> str:
    several = " (the eviction API refuses a pod with more than one)" if len(names) > 1 else ""
    return ", ".join(names) + several


def _findings(findings: Sequence[Finding]) -> list[tuple[str, str, str, str, str]]:
    return [(one.severity, one.rule, one.pod or NOWHERE, one.node or NOWHERE, one.message) for one in findings]
