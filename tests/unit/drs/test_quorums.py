"""The DRS rules of quorums: no host can hold more members than may be lost, and no VM is parted that need not be."""

import pytest
from support.build import HOST, a_node, a_pod, a_site, a_workload, term
from support.sites.quorate import ANNOTATION, ROLE

from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.sinks.drs.decider import NeededRules
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.vsphere import Host

DB = {"app": "db"}


def hosts(count: int) -> list[Host]:
    return [Host(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in range(1, count + 1)]


def masters(count: int):
    return [a_node(f"n{at}").labels({f"{ROLE}control-plane": ""}) for at in range(1, count + 1)]


def asking(*nodes: str, apart: bool = False):
    pods = [a_pod(f"db-{at}").on(node).labels(DB).owned_by("StatefulSet/db") for at, node in enumerate(nodes)]
    pods = [pod.apart(term(HOST, DB)) for pod in pods] if apart else pods
    workload = a_workload("StatefulSet", "db", len(nodes)).metadata(annotations={ANNOTATION: "true"})
    return [*(a_node(node) for node in sorted(set(nodes))), workload, *pods]


def rules_of(site: Snapshot) -> list[tuple[str, str]]:
    """(what the name says, VMs) of each rule."""
    needed = NeededRules(Evaluator(Options()), Options())(site)
    return [(rule.name.split("-", 2)[2].rpartition("-")[0], " ".join(rule.vms)) for rule in needed]


@pytest.mark.parametrize(
    ("objects", "usable", "expected"),
    [
        pytest.param(masters(3), 4, [("kube-system.control-plane.quorum", "vm-n1 vm-n2 vm-n3")], id="all of three"),
        pytest.param(
            masters(5),
            4,
            [
                ("kube-system.control-plane.quorum", "vm-n1 vm-n3 vm-n5"),
                ("kube-system.control-plane.quorum.2", "vm-n2 vm-n4"),
            ],
            id="of five two may share a host",
        ),
        pytest.param(
            masters(3), 2, [("kube-system.control-plane.quorum", "vm-n1 vm-n3")], id="as many as there are hosts"
        ),
        pytest.param(masters(2), 4, [], id="two members are never right"),
        pytest.param(asking("n1", "n2", "n3"), 4, [("shop.db.quorum", "vm-n1 vm-n2 vm-n3")], id="a workload"),
        pytest.param(asking("n1", "n2", "n3", apart=True), 4, [("shop.db", "vm-n1 vm-n2 vm-n3")], id="apart already"),
        pytest.param(
            asking("n1", "n1", "n2", "n3", "n4"),
            4,
            [("shop.db.quorum", "vm-n1 vm-n2 vm-n3 vm-n4")],
            id="a VM that holds two of five",
        ),
        pytest.param(asking("n1", "n1", "n1"), 4, [], id="all on one VM: DRS cannot part them"),
    ],
)
def test_which_vms_a_quorum_keeps_apart(objects: list[object], usable: int, expected: list[tuple[str, str]]) -> None:
    on = {f"n{at}": "h1" for at in range(1, 6)}
    assert rules_of(a_site(*objects, on=on, hosts=hosts(usable))) == expected


def a_quorum(kind: str, name: str, *nodes: str):
    pods = [a_pod(f"{kind.lower()}-{at}").on(node).owned_by(f"{kind}/{name}") for at, node in enumerate(nodes)]
    return [a_workload(kind, name, len(nodes)).metadata(annotations={ANNOTATION: "true"}), *pods]


def test_quorums_of_two_kinds_and_one_name_have_a_rule_each() -> None:
    site = a_site(
        *(a_node(f"n{at}") for at in range(1, 9)),
        *a_quorum("ReplicaSet", "db", "n1", "n2", "n3", "n4", "n5"),
        *a_quorum("StatefulSet", "db", "n6", "n7", "n8"),
        on={f"n{at}": "h1" for at in range(1, 9)},
        hosts=hosts(8),
    )
    assert rules_of(site) == [
        ("shop.db.quorum", "vm-n1 vm-n3 vm-n5"),
        ("shop.db.quorum.2", "vm-n2 vm-n4"),
        ("shop.db.quorum.3", "vm-n6 vm-n7 vm-n8"),
    ]


def test_a_quorum_takes_no_name_of_an_application_that_is_called_like_its_rule() -> None:
    away = [a_pod(f"x-{node}").on(node).labels(DB).owned_by("StatefulSet/db.quorum") for node in ("n4", "n5")]
    site = a_site(
        *(a_node(f"n{at}") for at in range(1, 6)),
        *a_quorum("StatefulSet", "db", "n1", "n2", "n3"),
        *(pod.apart(term(HOST, DB)) for pod in away),
        on={f"n{at}": f"h{at}" for at in range(1, 6)},
        hosts=hosts(5),
    )
    assert rules_of(site) == [("shop.db.quorum", "vm-n4 vm-n5"), ("shop.db.quorum.2", "vm-n1 vm-n2 vm-n3")]


def test_members_in_other_vsphere_clusters_count_for_none_of_them() -> None:
    there = [Host(id=f"h{at}", name=f"esx-{at}", cluster=f"C{at}") for at in (1, 2, 3)]
    assert rules_of(a_site(*masters(3), on={"n1": "h1", "n2": "h2", "n3": "h3"}, hosts=there)) == []


def test_a_rule_comes_with_the_annotation_and_goes_with_it() -> None:
    on = {f"n{at}": f"h{at}" for at in range(1, 4)}
    site = a_site(*asking("n1", "n2", "n3"), on=on, hosts=hosts(3))
    bare = a_site(*(one for one in asking("n1", "n2", "n3") if one.kind != "StatefulSet"), on=on, hosts=hosts(3))
    evaluator, rules = Evaluator(Options()), RulesByCluster(Options())
    found = [len(rules.of(now, evaluator.state(now).model, evaluator.quorums(now))) for now in (bare, site, bare)]
    assert found == [0, 1, 0]
