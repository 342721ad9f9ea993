"""What stands in the way, in words: equal reasons over nodes are one group."""

from typing import Any

import pytest
from support.answers.rules import verdict
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, labelled, spread, term

from underhost.agents.schedule.obstacles import grouped, listing
from underhost.agents.site.snapshot import Options, Snapshot

ESXI = "node.cluster.x-k8s.io/esxi-host"


def groups(snapshot: Snapshot, **options: Any) -> list[str]:
    """`2 n1,n2: text` of each group of nodes that refuse the pod `new`."""
    found = grouped("shop/new", verdict(snapshot, "new", Options(**options)).nodes)
    return [f"{len(one.nodes)} {','.join(one.nodes)}: {one.text}" for one in found]


def db(name: str, node: str, namespace: str = "shop") -> Any:
    return a_pod(name, namespace).labels(app="db").on(node)


NEW = a_pod("new").labels(app="db")
NODES = [a_node(f"n{at}") for at in range(1, 5)]
ON = {"n1": "h1", "n2": "h1", "n3": "h1", "n4": "h2"}


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(
            a_site(*NODES, db("db-0", "n1"), db("db-1", "n2"), NEW.apart(term(ESXI, app("db"))), on=ON),
            ["3 n1,n2,n3: InterPodAffinity: db-0 and db-1 are on esx-h1"],
            id="the nodes of one host",
        ),
        pytest.param(
            a_site(*NODES, *(db(f"db-{at}", f"n{at}") for at in range(1, 5)), NEW.apart(term(HOST, app("db")))),
            ["4 n1,n2,n3,n4: InterPodAffinity: db-1 is on n1, db-2 on n2, db-3 on n3 and 1 more"],
            id="each node for a pod of its own",
        ),
        pytest.param(
            a_site(
                *(a_node(f"n{at}").zone("ab"[at % 2]) for at in range(4)),
                db("db-0", "n0"),
                db("db-1", "n1", "other"),
                NEW.apart(term(ZONE, app("db"), namespaces=["shop", "other"])),
            ),
            [
                "2 n0,n2: InterPodAffinity: db-0 is in zone a",
                "2 n1,n3: InterPodAffinity: other/db-1 is in zone b",
            ],
            id="a zone at a time, pods of other namespaces by their whole name",
        ),
        pytest.param(
            a_site(
                a_node("n1").has(cpu="4", pods="9"),
                a_node("n2").has(cpu="2", pods="9"),
                a_node("n3").has(cpu="1", pods="9"),
                a_pod("there").needs(cpu="3").on("n1"),
                a_pod("here").needs(cpu="500m").on("n2"),
                NEW.needs(cpu="3"),
            ),
            ["3 n1,n2,n3: NodeResourcesFit: asks for 3 cpu, at most 1500m of 2 is free (on n2)"],
            id="a resource, with the node that has most left of it",
        ),
        pytest.param(
            a_site(a_node("n1").has(cpu="1", pods="9"), NEW.needs(cpu="3")),
            ["1 n1: NodeResourcesFit: asks for 3 cpu, 1 of 1 is free"],
            id="a resource of one node",
        ),
        pytest.param(
            a_site(
                a_node("n1").tainted("gpu:NoSchedule"),
                a_node("n2").tainted("gpu:NoSchedule").labels(disk="hdd"),
                a_node("n3").labels(disk="tape"),
                NEW.node_terms(labelled("disk", "In", "ssd")),
            ),
            [
                "1 n1: TaintToleration: taint gpu:NoSchedule; NodeAffinity: asks for disk in (ssd), which is missing",
                "1 n2: TaintToleration: taint gpu:NoSchedule; NodeAffinity: asks for disk in (ssd), not hdd",
                "1 n3: NodeAffinity: asks for disk in (ssd), not tape",
            ],
            id="all that stands in the way of a node",
        ),
        pytest.param(
            a_site(*NODES, NEW.node_terms(labelled("disk"), labelled("kubernetes.io/hostname", "In", "n8"))),
            [
                "4 n1,n2,n3,n4: NodeAffinity: label disk is missing, "
                "asks for kubernetes.io/hostname in (n8), not n1, n2, n3 and 1 more"
            ],
            id="a label that is missing, and one that is another on each node",
        ),
        pytest.param(
            a_site(a_node("n1").labels(disk=""), NEW.node_terms(labelled("disk", "In", "ssd"))),
            ["1 n1: NodeAffinity: asks for disk in (ssd), not ''"],
            id="a label that is empty",
        ),
        pytest.param(
            a_site(a_node("n1").labels({HOST: ""}), db("db-0", "n1"), NEW.apart(term(HOST, app("db")))),
            ["1 n1: InterPodAffinity: db-0 is on ''"],
            id="a node whose label is empty",
        ),
        pytest.param(
            a_site(a_node("n1").zone(""), db("db-0", "n1"), NEW.apart(term(ZONE, app("db")))),
            ["1 n1: InterPodAffinity: db-0 is in zone ''"],
            id="a zone whose label is empty",
        ),
        pytest.param(
            a_site(*NODES, NEW.near(term(HOST, app("web")))),
            ["4 n1,n2,n3,n4: InterPodAffinity: no pod with app in (web) is there"],
            id="nobody to be near to",
        ),
        pytest.param(
            a_site(
                *NODES[:2],
                a_pod("a").ports({"hostPort": 80}).on("n1"),
                a_pod("b").ports({"hostPort": 80}).on("n2"),
                NEW.ports({"hostPort": 80}),
            ),
            ["2 n1,n2: NodePorts: a and b hold port 0.0.0.0/80/TCP"],
            id="a port, by who holds it",
        ),
        pytest.param(
            a_site(*NODES[:1], NEW.spreads(spread(HOST, app("db"), minDomains=2))),
            [],
            id="nothing where every node takes the pod",
        ),
    ],
)
def test_nodes_with_equal_reasons_are_told_once(snapshot: Snapshot, expected: list[str]) -> None:
    assert groups(snapshot) == expected


def test_a_reason_that_names_nothing_is_upstreams_own() -> None:
    site = a_site(a_node("n1").zone("a"), NEW.near(term(HOST, None)))
    assert groups(site) == ["1 n1: InterPodAffinity: node(s) didn't match pod affinity rules"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        ([*"abcde"], "a, b, c and 2 more"),
        ([*"abcdefghij"], "a, b, c and others"),
    ],
    ids=["one", "two", "three", "more than are named", "as many as the rules name at most"],
)
def test_a_list_names_three(names: list[str], expected: str) -> None:
    assert listing(names) == expected
