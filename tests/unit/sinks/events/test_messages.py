"""What people are told of findings and of what was done, word by word."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from underhost.agents.sinks.events.messages import MOST, EventMessages
from underhost.schemas.records import Action, FindingEvent, Outcome

NODES = {"shop/db-0": "n1", "shop/db-1": "n2", "shop/db-2": "n3"}
VMS = {"vm-1": "n1", "vm-2": "n2"}
SAID = "shop/db-0 and shop/db-1 share esx-1"
"""What pods are told; to nodes, whose Events lie in another namespace, `test_words.py`."""
Heard = tuple[str, str, str, str]
"""Object, type, reason, note."""


def finding(
    *pods: str,
    state: str = "opened",
    severity: str = "physical",
    node: str | None = None,
    message: str = SAID,
    updated: str = "1",
) -> FindingEvent:
    first, *rest = pods or (None,)
    rule = "PhysicalHost"
    return FindingEvent(
        "f1", state, "prod", severity, rule, "r", message, "0", updated, {}, first, node, [pod for pod in rest if pod]
    )


def heard(actions: list[Action]) -> list[Heard]:
    found = []
    for action in actions:
        told: Any = action.desired
        about = told["regarding"]
        name = f"{about['namespace']}/{about['name']}" if about["namespace"] else about["name"]
        found.append((f"{about['kind']} {name}", told["type"], told["reason"], told["note"]))
    return found


def messages(*open_: FindingEvent) -> EventMessages:
    return EventMessages(lambda pod: NODES.get(pod, ""), open_)


def nodes_of(vms: Collection[str]) -> list[str]:
    return sorted(node for vm, node in VMS.items() if vm in vms)


def notes_of(objects: list[str], type_: str, reason: str, pods: int, before: str = "") -> list[Heard]:
    """What each is told of a finding of so many pods."""
    counted = f"{pods} pod{'s' if pods > 1 else ''}: r (PhysicalHost). Finding f1."
    return [(one, type_, reason, before + (SAID if one.startswith("Pod") else counted)) for one in objects]


BOTH = ["Pod shop/db-0", "Pod shop/db-1", "Node n1", "Node n2"]


@pytest.mark.parametrize(
    ("severity", "type_", "reason"),
    [
        ("violation", "Warning", "RuleViolated"),
        ("physical", "Warning", "HostShared"),
        ("unsatisfiable", "Warning", "RuleUnsatisfiable"),
        ("budget", "Warning", "BudgetBlocked"),
        ("unknown-node", "Warning", "NodeUnknown"),
        ("co-located", "Warning", "ReplicasCoLocated"),
        ("drift", "Normal", "PlacementDrifted"),
        ("label-stale", "Warning", "HostLabelStale"),
        ("unknown-host", "Warning", "HostUnknown"),
    ],
)
def test_a_finding_that_opens_is_told_once_to_each_pod_and_node_that_it_is_about(
    severity: str, type_: str, reason: str
) -> None:
    found = messages().of_finding(finding("shop/db-0", "shop/db-1", severity=severity, node="n1"))
    assert heard(found) == notes_of(BOTH, type_, reason, 2)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(finding(node="n7", severity="drift"), ["Node n7"], id="of a node alone"),
        pytest.param(finding("shop/gone"), ["Pod shop/gone"], id="a pod that nobody knows has no node"),
        pytest.param(finding(), [], id="of nothing in the cluster: an inventory that is not believed"),
    ],
)
def test_who_is_told(row: FindingEvent, expected: list[str]) -> None:
    assert [one for one, *_ in heard(messages().of_finding(row))] == expected


def test_of_a_rule_of_one_namespace_its_own_pods_are_told_and_nobody_elses() -> None:
    row = msgspec.structs.replace(finding("evil/x", "shop/db-0", node="n1"), object="Namespace/evil")
    assert [one for one, *_ in heard(messages().of_finding(row))] == ["Pod evil/x"]


def test_of_a_budget_that_a_finding_names_its_pods_and_their_nodes_are_told() -> None:
    row = msgspec.structs.replace(finding("shop/db-0", "shop/db-1"), object="PodDisruptionBudget/shop/db")
    assert [one for one, *_ in heard(messages().of_finding(row))] == BOTH


def test_who_joins_a_finding_is_told_and_all_are_told_of_its_end_wherever_they_are() -> None:
    told = messages()
    told.of_finding(finding("shop/db-0", "shop/db-1"))
    joined = told.of_finding(finding("shop/db-0", "shop/db-1", "shop/db-2", state="updated", updated="2"))
    assert heard(joined) == notes_of(["Pod shop/db-2", "Node n3"], "Warning", "HostShared", 3)
    assert told.of_finding(finding("shop/db-0", "shop/db-1", "shop/db-2", state="updated", updated="3")) == []
    ended = told.of_finding(finding("shop/db-0", "shop/db-2", state="resolved", updated="4"))
    everyone = [*BOTH, "Pod shop/db-2", "Node n3"]
    assert heard(ended) == notes_of(everyone, "Normal", "FindingResolved", 2, "Resolved: ")


def test_another_severity_is_told_to_everybody() -> None:
    told = messages()
    told.of_finding(finding("shop/db-0", severity="co-located"))
    worse = told.of_finding(finding("shop/db-0", severity="violation", state="updated", updated="2"))
    assert heard(worse) == notes_of(["Pod shop/db-0", "Node n1"], "Warning", "RuleViolated", 1)


def test_after_a_restart_findings_are_known_and_a_repeated_record_is_one_command() -> None:
    opened = finding("shop/db-0", "shop/db-1")
    first, again = messages().of_finding(opened), messages(opened).of_finding(opened)
    assert [action.id for action in first] == [action.id for action in again]
    assert len({action.id for action in first}) == 4
    assert messages(opened).of_finding(finding("shop/db-0", "shop/db-1", state="updated", updated="2")) == []
    later = messages(opened).of_finding(finding("shop/db-0", "shop/db-1", updated="9"))
    assert not {action.id for action in later} & {action.id for action in first}, "it opens for another time"


def test_a_finding_about_hundreds_is_told_to_the_first_of_them() -> None:
    assert len(messages().of_finding(finding(*(f"shop/p-{number:03d}" for number in range(500))))) == MOST


def test_of_an_open_findings_former_pods_the_first_are_remembered() -> None:
    told, names = messages(), [f"shop/p-{number:03d}" for number in range(1000)]
    for name in names:
        joined = told.of_finding(finding("shop/db-0", name, state="updated", updated=name))
        assert f"Pod {name}" in [one for one, *_ in heard(joined)]
    back = told.of_finding(finding("shop/db-0", names[7], names[500], state="updated", updated="x"))
    assert [one for one, *_ in heard(back)] == [f"Pod {names[500]}"], "which nobody remembered"
    ended = told.of_finding(finding("shop/db-0", state="resolved", updated="y"))
    first = ["Pod shop/db-0", f"Pod {names[0]}", "Node n1", *(f"Pod {name}" for name in names[1:98])]
    assert [one for one, *_ in heard(ended)] == first


def test_the_pods_of_a_finding_are_not_looked_up_for_each_that_is_told() -> None:
    asked: list[str] = []
    told = EventMessages(lambda pod: asked.append(pod) or "n1")
    names = [f"shop/p-{number:03d}" for number in range(50)]
    notes = {one: note for one, *_, note in heard(told.of_finding(finding("evil/x", *names)))}
    assert notes[f"Pod {names[7]}"].startswith("shop/p-000 on n1, shop/p-001 on n1, 48 more and 1 pod of another")
    assert len(notes) == 52
    assert len(asked) == 51 + 2 + 1, "for their nodes, and where two of shop and the one of evil are named"


def outcome(kind: str, target: str, result: str, reason: str, id_: str = "o1") -> Outcome:
    return Outcome(id_, kind, target, result, reason)


LABEL, PAIR = "node/n1", {"cluster": "C0", "type": "anti-affinity", "vms": ["vm-1", "vm-2"], "mandatory": False}
MOVED = "moved from host esx-1 to host esx-2"
EVICTED = "evicted from n1; the next one fits on n2"
EVICT = {"uid": "u", "at": "", "node": "n1", "to": "n2"}


@pytest.mark.parametrize(
    ("row", "desired", "expected"),
    [
        pytest.param(
            outcome("label", LABEL, "applied", "set k=esx-1"), {}, [("Node n1", "Normal", "HostLabel", "set k=esx-1")],
            id="a label is set",
        ),
        pytest.param(
            outcome("label", LABEL, "applied", "set k=esx-1; removed taint uninitialized"), {},
            [
                ("Node n1", "Normal", "HostLabel", "set k=esx-1"),
                ("Node n1", "Normal", "StartupTaintRemoved", "removed taint uninitialized"),
            ],
            id="with the last label the start-up taint goes",
        ),
        pytest.param(
            outcome("label", LABEL, "refused", "label k belongs to capv"), {},
            [("Node n1", "Warning", "HostLabelRefused", "label k belongs to capv")],
            id="a label is another's",
        ),
        pytest.param(
            outcome("pod-label", "pod/shop/db-0", "refused", "label k stays"), {},
            [("Pod shop/db-0", "Warning", "HostLabelRefused", "label k stays")],
            id="a pod's label that somebody selects by",
        ),
        pytest.param(outcome("pod-label", "pod/shop/db-0", "applied", "set k=esx-1"), {}, [], id="pods' labels follow"),
        pytest.param(
            outcome("evict", "pod/shop/db-0", "applied", EVICTED), EVICT,
            [
                ("Pod shop/db-0", "Normal", "RepairEviction", EVICTED),
                ("Node n1", "Normal", "RepairEviction", f"1 pod of another namespace: {EVICTED}"),
            ],
            id="an eviction",
        ),
        pytest.param(
            outcome("evict", "pod/shop/db-0", "failed", "the budget allows none"), EVICT,
            [("Pod shop/db-0", "Warning", "RepairEvictionFailed", "the budget allows none")],
            id="an eviction that a budget forbids",
        ),
        pytest.param(
            outcome("drs-rule", "drs-rule/C0/underhost-prod-1", "applied", "added the rule"), PAIR,
            [
                ("Node n1", "Normal", "DrsRule", "C0/underhost-prod-1: added the rule"),
                ("Node n2", "Normal", "DrsRule", "C0/underhost-prod-1: added the rule"),
            ],
            id="a rule holds two nodes",
        ),
        pytest.param(
            outcome("drs-rule", "drs-rule/C0/underhost-prod-1", "refused", "the name is taken"), PAIR,
            [
                ("Node n1", "Warning", "DrsRuleRefused", "C0/underhost-prod-1: the name is taken"),
                ("Node n2", "Warning", "DrsRuleRefused", "C0/underhost-prod-1: the name is taken"),
            ],
            id="a rule that vCenter does not take",
        ),
        pytest.param(outcome("drs-rule", "drs-rule/C0/x", "applied", "removed the rule"), {}, [], id="of nobody known"),
        pytest.param(
            outcome("move", "vm/vm-1", "applied", MOVED), {}, [("Node n1", "Normal", "RepairMove", MOVED)],
            id="a VM is moved",
        ),
        pytest.param(
            outcome("move", "vm/vm-2", "refused", "it is left to a person"), {},
            [("Node n2", "Warning", "RepairMoveRefused", "it is left to a person")],
            id="a VM that is moved no more",
        ),
        pytest.param(
            outcome("move", "vm/vm-1", "failed", "the vMotion failed"), {},
            [("Node n1", "Warning", "RepairMoveFailed", "the vMotion failed")],
            id="a vMotion that fails",
        ),
        pytest.param(outcome("move", "vm/vm-1", "dry-run", "would move it"), {}, [], id="a dry run moves nothing"),
        pytest.param(outcome("move", "vm/vm-9", "applied", MOVED), {}, [], id="a VM that is no node any more"),
        pytest.param(outcome("label", LABEL, "dry-run", "would set k=esx-1"), {}, [], id="a dry run changes nothing"),
        pytest.param(outcome("label", LABEL, "noop", "is so already"), {}, [], id="what was so already"),
        pytest.param(outcome("bind", "pod/shop/db-0", "applied", "bound"), {}, [], id="a binding"),
        pytest.param(outcome("event", "event/pod/shop/db-0/X", "applied", "told X"), {}, [], id="an Event of ours"),
    ],
)  # fmt: skip
def test_what_was_done_is_told_to_whom_it_touches(
    row: Outcome, desired: dict[str, object], expected: list[Heard]
) -> None:
    action = Action(row.id, row.kind, row.target, desired, "", {})
    assert heard(messages().of_outcome(row, action, nodes_of)) == expected
    again = messages().of_outcome(row, action, nodes_of)
    assert [one.id for one in again] == [one.id for one in messages().of_outcome(row, action, nodes_of)]


def test_a_rule_that_goes_is_told_to_those_that_it_held() -> None:
    told, target = messages(), "drs-rule/C0/underhost-prod-1"
    added = outcome("drs-rule", target, "applied", "added the rule")
    told.of_outcome(added, Action("o1", "drs-rule", target, msgspec.to_builtins(PAIR), "", {}), nodes_of)
    removed = outcome("drs-rule", target, "applied", "removed the rule", "o2")
    assert heard(told.of_outcome(removed, Action("o2", "drs-rule", target, {}, "", {}), nodes_of)) == [
        (f"Node {node}", "Normal", "DrsRule", "C0/underhost-prod-1: removed the rule") for node in ("n1", "n2")
    ]
