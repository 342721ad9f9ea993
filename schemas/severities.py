"""The table of severities: the only place where one is spelled and where it is said what a severity leads to.

In: nothing. Out: ROWS, worst first, and what is derived from it. Whoever shows, counts, filters, alerts or repairs
findings reads it; the page reads it from `/api/v1/severities`. A new severity is one row here.
"""

from dataclasses import dataclass
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
        meaning="Pods that a rule keeps in different domains share an ESXi host.",
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
        alert="warning",
        report="warning",
        reason="NodeUnknown",
        terminal="yellow",
        colour="grey",
        icon="question",
    ),
    Severity(
        name=CO_LOCATED,
        meaning="All ready replicas of an application are on one host or node, though no rule forbids it.",
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
        alert="info",
        report="note",
        reason="HostLabelStale",
        colour="grey",
        icon="tag",
    ),
    Severity(
        name=UNKNOWN_HOST,
        meaning="It is not known which host a node is on.",
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


def at_or_above(severity: str, floor: str) -> bool:
    """Whether a finding of `severity` counts where `floor` is the least that counts."""
    return RANK[severity] <= RANK[floor]
