import pytest
from support.answers.rules import refused, verdict
from support.build import HOST, RACK, ZONE, NodeBuilder, a_node, a_pod, a_site, app, nodes, spread, term

from underhost.agents.rules.physical_host import NAME, REASON_SHARED_HOST
from underhost.agents.schedule.pending import decide, schedule
from underhost.agents.site.snapshot import Options, Snapshot

REQUIRED = Options(physical_host="required")
HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": ""}
DB = a_pod("db-0").labels(app="db")
NEW = a_pod("db-1").labels(app="db").apart(term(HOST, app("db")))


def conflicts(snapshot: Snapshot, pod: str) -> dict[str, object]:
    """Physical conflicts on the nodes that Kubernetes itself would take."""
    return {name: one.physical_conflicts for name, one in verdict(snapshot, pod).nodes.items() if one.feasible}


def test_the_other_node_of_the_host_conflicts_and_a_node_of_unknown_host_does_not() -> None:
    snapshot = a_site(*nodes("n1", "n2", "n3", "n4"), DB.on("n1"), NEW, on=HOSTS)
    assert conflicts(snapshot, "db-1") == {"n2": 1, "n3": 0, "n4": 0}


def test_without_an_inventory_nothing_conflicts() -> None:
    snapshot = a_site(*nodes("n1", "n2", "n3", "n4"), DB.on("n1"), NEW)
    assert conflicts(snapshot, "db-1") == {"n2": 0, "n3": 0, "n4": 0}


@pytest.mark.parametrize(
    ("there", "new", "expected"),
    [
        pytest.param(
            DB.apart(term(HOST, app("web"))),
            a_pod("w").labels(app="web"),
            {"n2": 1, "n3": 0},
            id="the running pod's term",
        ),
        pytest.param(
            DB, a_pod("w").labels(app="db").spreads(spread(HOST, app("db"))), {"n2": 1, "n3": 0}, id="a strict spread"
        ),
        pytest.param(
            DB.spreads(spread(HOST, app("db"))),
            a_pod("w").labels(app="db"),
            {"n1": 0, "n2": 1, "n3": 0},
            id="its spread",
        ),
        pytest.param(
            DB,
            a_pod("w").labels(app="db").spreads(spread(HOST, app("db"), soft=True)),
            {"n1": 0, "n2": 0, "n3": 0},
            id="a preference separates nothing",
        ),
        pytest.param(
            DB,
            a_pod("w").prefers_apart(100, term(HOST, app("db"))),
            {"n1": 0, "n2": 0, "n3": 0},
            id="nor does preferred anti-affinity",
        ),
        pytest.param(
            DB,
            a_pod("w").apart(term("alpha.cna.vmware.com/host", app("db"))),
            {"n3": 0},
            id="a host key is InterPodAffinity's, which refuses n1 and n2",
        ),
        pytest.param(
            DB, a_pod("w").apart(term(RACK, app("db"))), {"n1": 0, "n2": 0, "n3": 0}, id="no node has the key"
        ),
        pytest.param(
            DB,
            a_pod("w").apart(term(HOST, app("db")), term(ZONE, app("db"))),
            {"n2": 1, "n3": 0},
            id="a pod kept apart by two keys conflicts once",
        ),
    ],
)
def test_what_separates_from_db_0_on_n1(there, new, expected) -> None:  # type: ignore[no-untyped-def]
    zoned = [a_node("n1").zone("a"), a_node("n2").zone("b"), a_node("n3").zone("c")]
    assert conflicts(a_site(*zoned, there.on("n1"), new, on=HOSTS), new.name) == expected


def test_pods_of_one_zone_on_one_host_do_not_conflict_by_a_zone_key() -> None:
    zoned = [a_node("n1").zone("a"), a_node("n2").zone("a"), a_node("n3").zone("b")]
    new = a_pod("w").labels(app="db").spreads(spread(ZONE, app("db"), 5))
    assert conflicts(a_site(*zoned, DB.on("n1"), new, on=HOSTS), "w") == {"n1": 0, "n2": 0, "n3": 0}


@pytest.mark.parametrize(
    ("n2", "expected"),
    [
        pytest.param(a_node("n2").zone("a"), {"n1": 1, "n2": 1, "n3": 2, "n4": 0}, id="of every name"),
        pytest.param(
            a_node("n2").zone("a").labels({HOST: None}),
            {"n1": 0, "n3": 2, "n4": 0},
            id="where a node lacks one of them",
        ),
    ],
)
def test_by_two_keys_a_pod_of_the_host_counts_once_and_a_pod_of_the_node_never(
    n2: NodeBuilder, expected: dict[str, int]
) -> None:
    there = [a_pod(f"db-{name}").labels(app="db").on(name) for name in ("n1", "n2", "n4")]
    new = a_pod("db-1").labels(app="db").spreads(spread(HOST, app("db"), 5), spread(ZONE, app("db"), 5))
    others = [a_node("n1").zone("a"), a_node("n3").zone("b"), a_node("n4").zone("a")]
    hosts = {"n1": "h1", "n2": "h1", "n3": "h1", "n4": ""}
    snapshot = a_site(*others, n2, *there, new, on=hosts)
    assert conflicts(snapshot, "db-1") == expected


def test_fewer_conflicts_come_before_any_score() -> None:
    full = a_pod("full").needs(cpu="3").on("n3")
    snapshot = a_site(*nodes("n1", "n2", "n3"), DB.on("n1"), full, NEW, on=HOSTS)
    assert schedule(snapshot, Options()).placements == {"shop/db-1": "n3"}
    assert schedule(a_site(*nodes("n1", "n2", "n3"), DB.on("n1"), full, NEW), Options()).placements == {
        "shop/db-1": "n2"
    }


def test_where_every_node_conflicts_preferred_takes_the_best_and_required_waits() -> None:
    snapshot = a_site(*nodes("n1", "n2"), DB.on("n1"), NEW, on=HOSTS)
    (found,) = decide(snapshot, Options())
    assert (found.node, found.physical_conflicts) == ("n2", 1)
    waiting = schedule(snapshot, REQUIRED)
    assert waiting.placements == {"shop/db-1": None}
    assert waiting.failed == {"shop/db-1": {"node(s) didn't match pod anti-affinity rules": 1, REASON_SHARED_HOST: 1}}
    assert refused(snapshot, "db-1", NAME, REQUIRED) == {"n2": [REASON_SHARED_HOST]}


def test_each_placement_counts_for_the_next() -> None:
    replicas = [a_pod(f"db-{i}").labels(app="db").apart(term(HOST, app("db"))) for i in range(3)]
    hosts = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3"}
    found = decide(a_site(*nodes("n1", "n2", "n3", "n4"), *replicas, on=hosts), Options())
    assert [(one.node, one.physical_conflicts) for one in found] == [("n1", 0), ("n3", 0), ("n4", 0)]
