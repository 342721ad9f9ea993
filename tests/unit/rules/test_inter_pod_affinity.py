from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.answers.rules import refused, scores
from support.build import HOST, ZONE, PodBuilder, a_namespace, a_node, a_pod, a_site, app, term

from underhost.agents.rules.inter_pod_affinity import (
    NAME,
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
)
from underhost.agents.site.snapshot import Options
from underhost.schemas.errors import BadObjectError
from underhost.schemas.vsphere import Host

ZONED = [a_node("a1").zone("a"), a_node("a2").zone("a"), a_node("b1").zone("b"), a_node("bare")]
DB = a_pod("db-0").labels(app="db")
APART, EXISTING, NEAR = [REASON_ANTI_AFFINITY], [REASON_EXISTING_ANTI_AFFINITY], [REASON_AFFINITY]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(term(HOST, app("db")), {"a1": APART}, id="the host of db-0 is refused"),
        pytest.param(term(ZONE, app("db")), {"a1": APART, "a2": APART}, id="the whole zone of db-0 is refused"),
        pytest.param(term("rack", app("db")), {}, id="a key that no node has keeps nothing apart"),
        pytest.param(term(HOST, app("web")), {}, id="a selector that matches no pod keeps nothing apart"),
        pytest.param(term(HOST, None), {}, id="a null selector matches no pod"),
        pytest.param(term(HOST, {}), {"a1": APART}, id="an empty selector matches every pod of the namespace"),
        pytest.param(
            term(HOST, app("db"), namespaces=["other"]), {}, id="another namespace's pods are meant, not db-0"
        ),
        pytest.param(term(HOST, app("db"), namespaceSelector={}), {"a1": APART}, id="{} selects every namespace"),
        pytest.param(
            term(HOST, app("db"), namespaceSelector={"matchLabels": {"env": "prod"}}),
            {"a1": APART},
            id="namespaces are selected by label",
        ),
        pytest.param(
            term(HOST, app("db"), namespaceSelector={"matchLabels": {"env": "dev"}}),
            {},
            id="a namespaceSelector does not add the own namespace",
        ),
        pytest.param(
            term(HOST, app("db"), namespaces=["shop"], namespaceSelector={"matchLabels": {"env": "dev"}}),
            {"a1": APART},
            id="names and selector are a union",
        ),
        pytest.param(
            term(HOST, app("db"), namespaceSelector={"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}),
            {},
            id="DoesNotExist does not select a namespace with the label, upstream's bug 141526 apart",
        ),
        pytest.param(
            term(HOST, {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
            {"a1": APART},
            id="NotIn matches the other value",
        ),
        pytest.param(
            term(HOST, {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}),
            {"a1": APART},
            id="NotIn matches a pod without the label",
        ),
        pytest.param(
            term(HOST, {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web"]}]}),
            {},
            id="In does not",
        ),
    ],
)
def test_own_anti_affinity_against_db_0_on_a1(own: Mapping[str, Any], expected: dict[str, list[str]]) -> None:
    snapshot = a_site(
        *ZONED, DB.on("a1"), a_pod("new").apart(own), a_namespace("shop", env="prod"), a_namespace("dev", env="dev")
    )
    assert refused(snapshot, "new", NAME) == expected


def test_terms_are_ored_and_each_refuses_its_own_domain() -> None:
    pods = [DB.on("a1"), a_pod("log").labels(app="log").on("b1")]
    new = a_pod("new").apart(term(HOST, app("db")), term(ZONE, app("log")))
    assert refused(a_site(*ZONED, *pods, new), "new", NAME) == {"a1": APART, "b1": APART}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(a_pod("new").labels(app="web"), {"a1": EXISTING, "a2": EXISTING}, id="its term holds against web"),
        pytest.param(a_pod("new").labels(app="db"), {}, id="it does not hold against what it does not select"),
        pytest.param(a_pod("new", "other").labels(app="web"), {}, id="nor against web of another namespace"),
    ],
)
def test_anti_affinity_of_a_running_pod_on_a1(new: PodBuilder, expected: dict[str, list[str]]) -> None:
    there = DB.apart(term(ZONE, app("web"))).on("a1")
    assert refused(a_site(*ZONED, there, new), new.key, NAME) == expected


def test_own_terms_are_named_before_those_of_others() -> None:
    there = DB.apart(term(ZONE, app("db"))).on("a1")
    new = a_pod("db-1").labels(app="db").apart(term(HOST, app("db")))
    assert refused(a_site(*ZONED, there, new), "db-1", NAME) == {"a1": APART, "a2": EXISTING}


def test_a_pod_on_a_node_without_the_key_keeps_nobody_away() -> None:
    new = a_pod("new").apart(term(ZONE, app("db")))
    assert refused(a_site(*ZONED, DB.on("bare"), new), "new", NAME) == {}


def test_nodes_with_an_empty_value_are_one_domain() -> None:
    empty = [a_node("n1").zone(""), a_node("n2").zone(""), a_node("n3")]
    new = a_pod("new").apart(term(ZONE, app("db")))
    assert refused(a_site(*empty, DB.on("n1"), new), "new", NAME) == {"n1": APART, "n2": APART}


def test_a_pod_being_deleted_still_counts_and_a_finished_one_does_not() -> None:
    new = a_pod("new").apart(term(HOST, app("db")))
    snapshot = a_site(*ZONED, DB.on("a1").deleted(), a_pod("db-1").labels(app="db").on("b1").finished(), new)
    assert refused(snapshot, "new", NAME) == {"a1": APART}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(
            a_pod("new").near(term(ZONE, app("db"))), {"b1": NEAR, "bare": NEAR}, id="only the zone of db-0 will do"
        ),
        pytest.param(
            a_pod("new").near(term(ZONE, app("db")), term(HOST, app("db"))),
            {"a2": NEAR, "b1": NEAR, "bare": NEAR},
            id="terms are ANDed",
        ),
        pytest.param(
            a_pod("new").near(term(ZONE, app("db")), term(ZONE, app("log"))),
            {name: NEAR for name in ("a1", "a2", "b1", "bare")},
            id="one single pod must match all terms",
        ),
        pytest.param(
            a_pod("new").labels(app="db").near(term(ZONE, app("db"))),
            {"b1": NEAR, "bare": NEAR},
            id="a pod that matches itself is not the first where another is there",
        ),
        pytest.param(
            a_pod("new").labels(app="web").near(term(ZONE, app("web"))),
            {"bare": NEAR},
            id="the first of its kind may go wherever the key is",
        ),
        pytest.param(
            a_pod("new").near(term(ZONE, app("web"))),
            {name: NEAR for name in ("a1", "a2", "b1", "bare")},
            id="who does not match itself is never the first",
        ),
        pytest.param(
            a_pod("new").near(term(ZONE, None)),
            {name: NEAR for name in ("a1", "a2", "b1", "bare")},
            id="a null selector is never met",
        ),
    ],
)
def test_affinity_to_db_0_on_a1(new: PodBuilder, expected: dict[str, list[str]]) -> None:
    pods = [DB.on("a1"), a_pod("log").labels(app="log").on("a1")]
    assert refused(a_site(*ZONED, *pods, new), "new", NAME) == expected


def test_a_running_pod_is_not_its_own_neighbour() -> None:
    apart = [a_pod(f"db-{i}").labels(app="db").apart(term(HOST, app("db"))) for i in range(2)]
    snapshot = a_site(*ZONED, apart[0].on("a1"), apart[1].on("b1"))
    assert refused(snapshot, "db-0", NAME) == {"b1": APART}


def test_preferences_own_and_others_are_scaled_between_the_worst_and_the_best_node() -> None:
    # b1: −40 of its own; a1 and a2: 10 of db-0, which prefers web near; bare: 0
    there = DB.prefers_near(10, term(ZONE, app("web"))).on("a1")
    rival = a_pod("web-0").labels(app="web").on("b1")
    new = a_pod("new").labels(app="web").prefers_apart(40, term(HOST, app("web")))
    assert scores(a_site(*ZONED, there, rival, new), "new", NAME) == {"a1": 100, "a2": 100, "b1": 0, "bare": 80}


def test_required_affinity_of_a_running_pod_attracts_with_weight_one() -> None:
    there = [DB.near(term(ZONE, app("web"))).on("a1"), a_pod("cache").prefers_near(4, term(ZONE, app("web"))).on("b1")]
    snapshot = a_site(*ZONED, *there, a_pod("new").labels(app="web"))
    assert scores(snapshot, "new", NAME) == {"a1": 25, "a2": 25, "b1": 100, "bare": 0}


def test_a_pod_that_no_preference_concerns_is_not_scored() -> None:
    assert scores(a_site(*ZONED, DB.on("a1"), a_pod("new")), "new", NAME) == {}


def test_a_host_key_means_the_live_host_where_hosts_are_known() -> None:
    key = "example.com/esxi"
    stale = [
        a_node("n1").labels({key: "x"}),
        a_node("n2").labels({key: "y"}),
        a_node("n3").labels({key: "x"}),
        a_node("n4"),
    ]
    pods = [DB.on("n1"), a_pod("new").apart(term(key, app("db")))]
    options = Options(host_keys=(key,))
    assert refused(a_site(*stale, *pods), "new", NAME, options) == {"n1": APART, "n3": APART}
    hosts = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": ""}
    assert refused(a_site(*stale, *pods, on=hosts), "new", NAME, options) == {"n1": APART, "n2": APART}


def test_where_hosts_are_known_but_no_nodes_is_the_host_key_is_missing_everywhere() -> None:
    key = "example.com/esxi"
    pods = [DB.on("n1"), a_pod("new").near(term(key, app("db")))]
    labelled = a_site(a_node("n1").labels({key: "x"}), a_node("n2"), *pods)
    options = Options(host_keys=(key,))
    assert refused(labelled, "new", NAME, options) == {"n2": NEAR}
    unjoined = replace(labelled, hosts={"h1": Host(id="h1", name="esx-1")})
    assert refused(unjoined, "new", NAME, options) == {"n1": NEAR, "n2": NEAR}


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            a_pod("new").apart(term(HOST, {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]})),
            "Pod shop/new: spec.affinity.podAntiAffinity.labelSelector.matchExpressions[0].operator: 'Near'",
            id="an unknown operator",
        ),
        pytest.param(
            a_pod("new").near({"topologyKey": 5}),
            "Pod shop/new: spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
            id="a topologyKey that is a number",
        ),
    ],
)
def test_a_wrong_term_is_named_with_its_pod_and_field(pod: PodBuilder, message: str) -> None:
    with pytest.raises(BadObjectError) as caught:
        refused(a_site(a_node("n1"), pod), "new", NAME)
    assert str(caught.value).startswith(message)
