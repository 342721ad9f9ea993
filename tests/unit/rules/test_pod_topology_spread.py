from typing import Any

import pytest
from support.answers.rules import refused, scores
from support.build import HOST, RACK, ZONE, PodBuilder, a_node, a_pod, a_service, a_site, a_workload, app, spread

from underhost.agents.rules.pod_topology_spread import NAME, REASON_MISSING_LABEL, REASON_NOT_SPREAD
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options
from underhost.schemas.errors import BadObjectError

NODES = [a_node("a1").zone("a"), a_node("a2").zone("a"), a_node("b1").zone("b"), a_node("c1").zone("c"), a_node("bare")]
WEB = a_pod("new").labels(app="web")
FULL, BARE = [REASON_NOT_SPREAD], [REASON_MISSING_LABEL]


def web(at: int, node: str) -> PodBuilder:
    return a_pod(f"web-{at}").labels(app="web").on(node)


# zone a holds two, zone b one, zone c none
THERE = [web(0, "a1"), web(1, "a2"), web(2, "b1")]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(
            WEB.spreads(spread(ZONE, app("web"))),
            {"a1": FULL, "a2": FULL, "b1": FULL, "bare": BARE},
            id="only the empty zone c is within a skew of 1",
        ),
        pytest.param(
            WEB.spreads(spread(ZONE, app("web"), 2)), {"a1": FULL, "a2": FULL, "bare": BARE}, id="a skew of 2 takes b"
        ),
        pytest.param(
            a_pod("new").spreads(spread(ZONE, app("web"))),
            {"a1": FULL, "a2": FULL, "bare": BARE},
            id="a pod that does not match itself adds nothing",
        ),
        pytest.param(
            WEB.spreads(spread("rack", app("web"))),
            dict.fromkeys(["a1", "a2", "b1", "bare", "c1"], BARE),
            id="no node has the key",
        ),
        pytest.param(WEB.spreads(spread(ZONE, None)), {"bare": BARE}, id="a null selector counts no pod"),
        pytest.param(
            WEB.spreads(spread(ZONE, {})), {"bare": BARE}, id="an empty selector counts no pod but the new one"
        ),
        pytest.param(
            WEB.spreads(spread(ZONE, app("web"), 2, minDomains=4)),
            {"a1": FULL, "a2": FULL, "bare": BARE},
            id="too few domains make the least 0",
        ),
        pytest.param(
            WEB.spec(nodeSelector={HOST: "a1"}).spreads(spread(ZONE, app("web"))),
            {"bare": BARE},
            id="only nodes that the pod may use count, so zone a is the least itself",
        ),
        pytest.param(
            WEB.spec(nodeSelector={HOST: "a1"}).spreads(spread(ZONE, app("web"), nodeAffinityPolicy="Ignore")),
            {"a1": FULL, "a2": FULL, "b1": FULL, "bare": BARE},
            id="nodeAffinityPolicy Ignore counts them all",
        ),
        pytest.param(
            WEB.spreads(spread(ZONE, app("web")), spread(HOST, app("web"))),
            {"a1": FULL, "a2": FULL, "b1": FULL, "bare": BARE},
            id="constraints are ANDed",
        ),
        pytest.param(WEB.spreads(spread(ZONE, app("web"), soft=True)), {}, id="ScheduleAnyway refuses nothing"),
    ],
)
def test_two_in_zone_a_one_in_b_none_in_c(new: PodBuilder, expected: dict[str, list[str]]) -> None:
    assert refused(a_site(*NODES, *THERE, new), "new", NAME) == expected


def test_pods_being_deleted_and_pods_of_other_namespaces_do_not_count() -> None:
    others = [web(3, "c1").deleted(), a_pod("web-4", "other").labels(app="web").on("c1")]
    found = refused(a_site(*NODES, *THERE, *others, WEB.spreads(spread(ZONE, app("web")))), "new", NAME)
    assert found == {"a1": FULL, "a2": FULL, "b1": FULL, "bare": BARE}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({}, {"a1": FULL, "a2": FULL, "b1": FULL}, id="a tainted zone is a domain all the same"),
        pytest.param(
            {"nodeTaintsPolicy": "Honor"}, {"a1": FULL, "a2": FULL}, id="nodeTaintsPolicy Honor leaves it out"
        ),
    ],
)
def test_a_zone_whose_only_node_is_tainted(policy: dict[str, Any], expected: dict[str, list[str]]) -> None:
    nodes = [*NODES[:3], a_node("c1").zone("c").tainted("k=v:NoSchedule")]
    snapshot = a_site(*nodes, *THERE, WEB.spreads(spread(ZONE, app("web"), **policy)))
    assert refused(snapshot, "new", NAME) == expected


def test_match_label_keys_count_only_pods_of_the_same_revision() -> None:
    there = [a_pod(f"old-{i}").labels(app="web", rev="1").on("a1") for i in range(3)]
    new = a_pod("new").labels(app="web", rev="2").spreads(spread(ZONE, app("web"), matchLabelKeys=["rev", "absent"]))
    assert refused(a_site(*NODES[:3], *there, new), "new", NAME) == {}


def test_a_running_pod_is_taken_out_of_its_domain_and_out_of_the_least() -> None:
    # without web-0 zone a holds one, b one, c none: a is refused; without web-2, b holds none and is fine
    constrained = [pod.spreads(spread(ZONE, app("web"))) for pod in THERE]
    snapshot = a_site(*NODES[:4], *constrained)
    assert refused(snapshot, "web-0", NAME) == {"a1": FULL, "a2": FULL, "b1": FULL}
    assert refused(snapshot, "web-2", NAME) == {"a1": FULL, "a2": FULL}


def test_soft_constraints_prefer_the_emptier_zone_and_ignore_nodes_without_the_key() -> None:
    # three zones weigh ln 5 = 1.609: a 2 → 3, b 1 → 2, c 0; 100 · (3 + 0 − it) / 3
    snapshot = a_site(*NODES, *THERE, WEB.spreads(spread(ZONE, app("web"), soft=True)))
    assert scores(snapshot, "new", NAME) == {"a1": 0, "a2": 0, "b1": 33, "bare": 0, "c1": 100}


RACKED = {"a1": 0, "b1": 14, "c1": 100, "d1": 57}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param([], {}, id="four nodes of six kinds"),
        pytest.param([("e1", "c", "r1"), ("f1", "b", "r2")], {"e1": 42, "f1": 71}, id="six nodes of six kinds"),
        pytest.param([("e1", "c", "r1"), ("bare", "a", "")], {"e1": 42, "bare": 0}, id="one of a kind of its own"),
    ],
)
def test_soft_constraints_of_two_keys_add_up(more: list[tuple[str, str, str]], expected: dict[str, int]) -> None:
    # three zones weigh ln 5, a holds two and b one; two racks weigh ln 4, r1 holds three
    # a1: 3.219 + 4.159 → 7; b1: 1.609 + 4.159 → 6; d1: 3.219 → 3; e1: 4.159 → 4; f1: 1.609 → 2; c1: 0
    places = [("a1", "a", "r1"), ("b1", "b", "r1"), ("c1", "c", "r2"), ("d1", "a", "r2"), *more]
    racked = [a_node(name).zone(zone).labels({RACK: rack or None}) for name, zone, rack in places]
    there = [web(0, "a1"), web(1, "a1"), web(2, "b1")]
    new = WEB.spreads(spread(ZONE, app("web"), soft=True), spread(RACK, app("web"), soft=True))
    assert scores(a_site(*racked, *there, new), "new", NAME) == {**RACKED, **expected}


def test_pods_without_constraints_are_spread_by_their_service() -> None:
    # hostname: 5 nodes weigh ln 7, skew 3; zone: 4 domains ("" is one) weigh ln 6, skew 5
    # a1, a2: round(1.946 + 2 + 3.584 + 4) = 12; b1: round(1.946 + 2 + 1.792 + 4) = 10; c1: 6; bare: 2
    snapshot = a_site(*NODES, *THERE, WEB, a_service("shop/web", app="web"))
    assert scores(snapshot, "new", NAME) == {"a1": 16, "a2": 16, "b1": 33, "bare": 100, "c1": 66}


OWNER = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "web", "uid": "u", "controller": True}
REPLICA_SET = a_workload("ReplicaSet", "web").selects(app("web"))
CONTROLLER = a_workload("ReplicationController", "web").selects({"app": "web"})
BY_WEB = {"a1": 16, "a2": 16, "b1": 33, "bare": 100, "c1": 66}


@pytest.mark.parametrize(
    ("owner", "others", "expected"),
    [
        pytest.param(OWNER, [REPLICA_SET], BY_WEB, id="by the selector of its ReplicaSet"),
        pytest.param(
            {**OWNER, "kind": "ReplicationController", "apiVersion": "v1"}, [CONTROLLER], BY_WEB, id="of its RC"
        ),
        pytest.param(OWNER, [], {}, id="not by an owner that the input lacks"),
        pytest.param({**OWNER, "controller": False}, [REPLICA_SET], {}, id="not by an owner that does not control it"),
        pytest.param({**OWNER, "apiVersion": "example.com/v1"}, [REPLICA_SET], {}, id="not by another API's kind"),
        pytest.param(
            OWNER,
            [REPLICA_SET, a_service("shop/s", tier="front")],
            {**dict.fromkeys(BY_WEB, 33), "bare": 100},
            id="by Service and owner together, which no running pod matches",
        ),
    ],
)
def test_pods_without_constraints_are_spread_by_their_owner(owner, others, expected) -> None:  # type: ignore[no-untyped-def]
    new = a_pod("new").labels(app="web", tier="front").metadata(ownerReferences=[owner])
    assert scores(a_site(*NODES, *THERE, new, *others), "new", NAME) == expected


def test_pods_placed_one_after_another_count_only_on_nodes_that_the_pod_may_use() -> None:
    # zone a: only a1 counts for the pods that select ssd; the pod of the other selector goes to a2 and does not count
    zoned = [
        a_node("a1").zone("a").labels(disk="ssd"),
        a_node("a2").zone("a"),
        a_node("b1").zone("b").labels(disk="ssd"),
    ]
    other = a_pod("web-0").labels(app="web").spec(nodeSelector={HOST: "a2"}, priority=9)
    pods = [
        a_pod(f"web-{i}").labels(app="web").spec(nodeSelector={"disk": "ssd"}).spreads(spread(ZONE, app("web")))
        for i in (1, 2)
    ]
    first = (
        a_pod("first")
        .labels(app="none")
        .spreads(spread(ZONE, app("web")))
        .spec(nodeSelector={"disk": "ssd"}, priority=10)
    )
    found = schedule(a_site(*zoned, first, other, *pods), Options()).placements
    assert found == {"shop/first": "a1", "shop/web-0": "a2", "shop/web-1": "b1", "shop/web-2": "a1"}


def test_a_running_pod_on_a_node_that_it_may_not_use_is_not_counted_there() -> None:
    # zone a counts the two on a1, not the judged one on a2; with it 3 − 0 is more than 2
    zoned = [
        a_node("a1").zone("a").labels(disk="ssd"),
        a_node("a2").zone("a"),
        a_node("b1").zone("b").labels(disk="ssd"),
    ]
    judged = web(2, "a2").spec(nodeSelector={"disk": "ssd"}).spreads(spread(ZONE, app("web"), 2))
    assert refused(a_site(*zoned, web(0, "a1"), web(1, "a1"), judged), "web-2", NAME)["a2"] == FULL


@pytest.mark.parametrize(
    ("constraint", "field"),
    [
        pytest.param({**spread(ZONE, {}), "whenUnsatisfiable": "Never"}, "whenUnsatisfiable", id="an unknown action"),
        pytest.param(spread(ZONE, {}, 0), "maxSkew", id="a skew of zero"),
        pytest.param(spread(ZONE, {}, nodeTaintsPolicy="Obey"), "nodeTaintsPolicy", id="an unknown policy"),
    ],
)
def test_a_wrong_constraint_is_named_with_its_pod_and_field(constraint: dict[str, Any], field: str) -> None:
    with pytest.raises(BadObjectError) as caught:
        refused(a_site(*NODES, a_pod("new").spreads(constraint)), "new", NAME)
    assert str(caught.value).startswith(f"Pod shop/new: spec.topologySpreadConstraints[0].{field}: ")
