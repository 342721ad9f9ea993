from typing import Any

import pytest
from support.answers.rules import refused, scores, verdict
from support.build import a_node, a_pod, a_site

from underhost.agents.rules.node_affinity import NAME, REASON_CONFLICT, REASON_NOT_MATCHED
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options

NODES = [a_node("fast").labels(disk="ssd", cpus="16"), a_node("slow").labels(disk="hdd", cpus="4"), a_node("bare")]


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def expressions(*all_: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(all_)}


def names(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", operator, *values)]}


@pytest.mark.parametrize(
    ("terms", "allowed"),
    [
        pytest.param([expressions(expression("disk", "In", "ssd", "nvme"))], {"fast"}, id="In needs one of the values"),
        pytest.param(
            [expressions(expression("disk", "NotIn", "ssd"))], {"slow", "bare"}, id="NotIn takes a missing label"
        ),
        pytest.param([expressions(expression("disk", "Exists"))], {"fast", "slow"}, id="Exists needs the label"),
        pytest.param([expressions(expression("disk", "DoesNotExist"))], {"bare"}, id="DoesNotExist needs its absence"),
        pytest.param([expressions(expression("cpus", "Gt", "4"))], {"fast"}, id="Gt compares integers, strictly"),
        pytest.param([expressions(expression("cpus", "Lt", "16"))], {"slow"}, id="Lt does not take a missing label"),
        pytest.param(
            [expressions(expression("disk", "Gt", "1"))], set(), id="a label that is no integer is never greater"
        ),
        pytest.param(
            [expressions(expression("cpus", "Gt", "x"))], set(), id="a bound that is no integer matches nothing"
        ),
        pytest.param(
            [expressions(expression("cpus", "Gt", "x")), expressions(expression("disk", "In", "hdd"))],
            {"slow"},
            id="a term that cannot be parsed leaves the other terms alone",
        ),
        pytest.param(
            [expressions(expression("cpus", "Gt", "-5"))], set(), id="a negative bound is no label value: no match"
        ),
        pytest.param(
            [expressions(expression("disk", "In", "ssd")), expressions(expression("cpus", "In", "4"))],
            {"fast", "slow"},
            id="terms are ORed",
        ),
        pytest.param(
            [expressions(expression("disk", "In", "ssd"), expression("cpus", "In", "4"))],
            set(),
            id="expressions are ANDed",
        ),
        pytest.param([{}], set(), id="an empty term matches no node"),
        pytest.param(
            [{}, expressions(expression("disk", "In", "hdd"))], {"slow"}, id="an empty term beside another is idle"
        ),
        pytest.param([names("In", "bare")], {"bare"}, id="a field selects the node by name"),
        pytest.param([names("NotIn", "bare")], {"fast", "slow"}, id="a field excludes the node by name"),
        pytest.param([names("In", "bare", "fast")], set(), id="a field with two values matches nothing"),
        pytest.param(
            [{**names("In", "fast"), **expressions(expression("disk", "In", "hdd"))}],
            set(),
            id="fields and expressions of a term are ANDed",
        ),
    ],
)
def test_required_terms(terms: list[dict[str, Any]], allowed: set[str]) -> None:
    found = refused(a_site(*NODES, a_pod("web").node_terms(*terms)), "web", NAME)
    assert found == {name: [REASON_NOT_MATCHED] for name in {"fast", "slow", "bare"} - allowed}


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        pytest.param({"disk": "ssd"}, {"fast"}, id="a nodeSelector needs the value"),
        pytest.param({"disk": "ssd", "cpus": "4"}, set(), id="all of a nodeSelector's labels are needed"),
        pytest.param({"disk": ""}, set(), id="an empty value is not a missing label"),
        pytest.param({}, {"fast", "slow", "bare"}, id="an empty nodeSelector asks for nothing"),
    ],
)
def test_node_selector(selector: dict[str, str], allowed: set[str]) -> None:
    found = refused(a_site(*NODES, a_pod("web").spec(nodeSelector=selector)), "web", NAME)
    assert set(found) == {"fast", "slow", "bare"} - allowed


def test_selector_and_terms_are_both_needed() -> None:
    pod = a_pod("web").spec(nodeSelector={"disk": "ssd"})
    both = a_site(*NODES, pod.node_terms(expressions(expression("cpus", "In", "4"))))
    assert set(refused(both, "web", NAME)) == {"fast", "slow", "bare"}


def test_names_that_exclude_one_another_refuse_every_node_before_any_other_rule() -> None:
    conflict = {"matchFields": [expression("metadata.name", "In", "fast"), expression("metadata.name", "In", "slow")]}
    snapshot = a_site(*NODES, a_node("off").cordoned(), a_pod("web").node_terms(conflict))
    assert refused(snapshot, "web", NAME) == {name: [REASON_CONFLICT] for name in ("bare", "fast", "off", "slow")}
    assert schedule(snapshot, Options()).failed == {"shop/web": {REASON_CONFLICT: 4}}


def test_preferred_terms_score_by_the_sum_of_their_weights() -> None:
    pod = a_pod("web").prefers_nodes(
        (60, expressions(expression("disk", "In", "ssd"))),
        (20, expressions(expression("cpus", "Exists"))),
        (50, {}),  # an empty preferred term matches nothing
    )
    assert scores(a_site(*NODES, pod), "web", NAME) == {"bare": 0, "fast": 100, "slow": 25}


def test_a_preferred_term_that_cannot_be_parsed_makes_scoring_fail() -> None:
    snapshot = a_site(*NODES, a_pod("web").prefers_nodes((1, expressions(expression("cpus", "Gt", "x")))))
    found = verdict(snapshot, "web")
    assert isinstance(found.error, str) and 'PreScore plugin "NodeAffinity"' in found.error and '"x"' in found.error
    assert schedule(snapshot, Options()).placements == {"shop/web": None}


def test_where_scoring_fails_the_only_feasible_node_is_still_taken() -> None:
    pod = a_pod("web").prefers_nodes((1, expressions(expression("cpus", "Gt", "x")))).spec(nodeSelector={"disk": "ssd"})
    assert schedule(a_site(*NODES, pod), Options()).placements == {"shop/web": "fast"}
