"""The table of severities: the only place where one is spelled and where it is said what a severity leads to.

In: nothing. Out: ROWS, worst first, and what is derived from it. Whoever shows, counts, filters, alerts or repairs
findings reads it; the page reads it from `/api/v1/severities`. A new severity is one row here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

VIOLATION = "violation"
PHYSICAL = "physical"
QUORUM = "quorum"
UNSATISFIABLE = "unsatisfiable"
BUDGET = "budget"
UNKNOWN_NODE = "unknown-node"
CO_LOCATED = "co-located"
DRIFT = "drift"
LABEL_STALE = "label-stale"
UNKNOWN_HOST = "unknown-host"


@dataclass(frozen=True, kw_only=True)
class Severity:
    """How bad a finding is, and what follows from it.

    Attributes:
        name: as it stands in findings, settings, options and metrics.
        meaning: a sentence for people.
        remedy: what ends a finding of it, in one sentence; `remedies`: by rule, where that is another.
        grave: replicas are together that a rule keeps apart, or another hard rule is broken, now.
        repairable: evicting one of the finding's pods can end it.
        alert: the label `severity` of its alert, as in Prometheus' own rules.
        report: its level in SARIF.
        reason: the reason of its Kubernetes Events.
        event: the type of those Events.
        terminal: the style of its name on a terminal, as rich spells it; "" for plain text.
        colour, icon: of the page, from those that its style sheet and `icons.js` have.
    """

    name: str
    meaning: str
    remedy: str
    remedies: Mapping[str, str] = field(default_factory=dict)
    grave: bool = False
    repairable: bool = False
    alert: Literal["critical", "warning", "info"]
    report: Literal["error", "warning", "note"]
    reason: str
    event: Literal["Warning", "Normal"] = "Warning"
    terminal: str = ""
    colour: str
    icon: str


ROWS = (
    Severity(
        name=VIOLATION,
        meaning="A running pod would be refused on its own node today.",
        remedy="Evict the pod once another node takes it: `underhost whatif --delete POD` shows where it would go.",
        remedies={
            "NodeAffinity": "Put back the node's label that the pod asks for, or evict the pod.",
            "NodePorts": "Evict one of the pods that hold the port.",
            "NodeResourcesFit": "Evict a pod of the node, or lower what its pods request.",
            "TaintToleration": "Remove the taint, let the pod tolerate it, or evict the pod.",
        },
        grave=True,
        repairable=True,
        alert="critical",
        report="error",
        reason="RuleViolated",
        terminal="bold red",
        colour="crimson",
        icon="octagon",
    ),
    Severity(
        name=PHYSICAL,
        meaning="Pods that a rule keeps in different domains share a host.",
        remedy="Move one of the VMs to another host, by hand or (in vSphere) by `sinks.drsRules`, or evict one of the "
        "pods.",
        grave=True,
        repairable=True,
        alert="critical",
        report="error",
        reason="HostShared",
        terminal="red",
        colour="vermilion",
        icon="racks",
    ),
    Severity(
        name=QUORUM,
        meaning="The failure of one host or node would take so many members of a quorum that too few stay.",
        remedy="Move one of the named nodes' VMs to a host that holds no other member.",
        grave=True,
        repairable=True,
        alert="critical",
        report="error",
        reason="QuorumAtRisk",
        terminal="red",
        colour="magenta",
        icon="crown",
    ),
    Severity(
        name=UNSATISFIABLE,
        meaning="No placement can meet the rule.",
        remedy="Change the rule, or add the nodes, labels or hosts that it asks for: the message says which.",
        remedies={
            "Move": "Look in vCenter why the VM cannot be moved, or who moves it back, and move it by hand.",
            "Tenant": "Let the namespace ask for less, or raise its share under `shares`.",
        },
        alert="warning",
        report="error",
        reason="RuleUnsatisfiable",
        terminal="red",
        colour="violet",
        icon="crossed",
    ),
    Severity(
        name=BUDGET,
        meaning="A PodDisruptionBudget can never allow an eviction, or two of them cover one pod.",
        remedy="Let the budget allow one pod to be away, and let only one budget cover a pod.",
        alert="warning",
        report="warning",
        reason="BudgetBlocked",
        terminal="yellow",
        colour="amber",
        icon="currency",
    ),
    Severity(
        name=UNKNOWN_NODE,
        meaning="A pod is bound to a node that the inventory lacks.",
        remedy="Give the node to the input; where it is gone for good, delete the pod.",
        remedies={
            "Inventory": "Mend the source, or, where it has really lost so much, accept that: `underhost resume SITE`.",
        },
        alert="warning",
        report="warning",
        reason="NodeUnknown",
        terminal="yellow",
        colour="grey",
        icon="question",
    ),
    Severity(
        name=CO_LOCATED,
        meaning="All ready replicas of an application, or more pods of a budget than may be away, are on one "
        "host or node, though no rule forbids it.",
        remedy="Where they can be on another node or host, keep them apart by a required anti-affinity or a strict "
        "spread, then delete one of them.",
        remedies={
            "PodDisruptionBudget": "Move a VM of theirs to a host that holds fewer, or spread them by host and delete "
            "one; where the budget need not hold when a host fails, let it allow more.",
        },
        repairable=True,
        alert="warning",
        report="warning",
        reason="ReplicasCoLocated",
        terminal="yellow",
        colour="olive",
        icon="pair",
    ),
    Severity(
        name=DRIFT,
        meaning="A pod runs where it would no longer be placed, though nothing forbids that it stays.",
        remedy="Delete the pod when it suits: its owner makes another, which is placed by the rules of today.",
        remedies={
            "NodeUnschedulable": "Finish the drain, or uncordon the node.",
            "TaintToleration": "Finish the drain, remove the taint, or let the pods tolerate it.",
        },
        alert="info",
        report="note",
        reason="PlacementDrifted",
        event="Normal",
        colour="blue",
        icon="wave",
    ),
    Severity(
        name=LABEL_STALE,
        meaning="A node's label names another host than vSphere does.",
        remedy="Find out why the label is not written: whether `sinks.labels` is enabled, and who else sets it.",
        alert="info",
        report="note",
        reason="HostLabelStale",
        colour="grey",
        icon="tag",
    ),
    Severity(
        name=UNKNOWN_HOST,
        meaning="It is not known which host a node is on.",
        remedy="Let the node join its VM by `spec.providerID`, and watch the vSphere cluster of that VM.",
        remedies={
            "Inventory": "Mend the source, or, where it has really lost so much, accept that: `underhost resume SITE`.",
        },
        alert="info",
        report="note",
        reason="HostUnknown",
        colour="grey",
        icon="question",
    ),
)
"""Worst first: `--fail-on S` and every floor of the settings mean S and the rows before it."""


BY_NAME = {row.name: row for row in ROWS}
SEVERITIES = tuple(BY_NAME)
GRAVE = tuple(row.name for row in ROWS if row.grave)
REPAIRABLE = tuple(row.name for row in ROWS if row.repairable)
LEAST = SEVERITIES[-1]
RANK = {name: rank for rank, name in enumerate(SEVERITIES)}


OF_A_FIELD = "Correct the field that it names, as the message says."
"""What ends a finding of lint: it is about what is written, not about pods that run."""


def remedy_of(severity: str, rule: str, *, of_field: bool = False) -> str:
    """What ends a finding, in one sentence; "" for a severity that this version does not know."""
    if of_field:
        return OF_A_FIELD
    row = BY_NAME.get(severity)
    return row.remedies.get(rule, row.remedy) if row is not None else ""


def at_or_above(severity: str, floor: str) -> bool:
    """Whether a finding of `severity` counts where `floor` is the least that counts."""
    return RANK[severity] <= RANK[floor]
