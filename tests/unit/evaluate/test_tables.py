"""The evaluator's tables: what stands in them, whose memory that is, and which findings two reports do not share."""

import numpy as np
from support.build import a_node, a_pod, a_site

from underhost.agents.affinity.separation import Separation
from underhost.agents.compiled.model import compile
from underhost.agents.evaluate import tables
from underhost.agents.site.snapshot import Options
from underhost.schemas import frames as fr
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.records import Domain, Finding
from underhost.schemas.vsphere import Host

SITE = a_site(
    a_node("n2").cordoned(),
    a_node("n1"),
    a_node("n3"),
    a_pod("web-0").on("n2"),
    a_pod("db-0").on("n1").labels(app="db"),
    a_pod("done").on("n1").finished(),
    a_pod("waiting"),
    a_pod("lost").on("gone"),
    on={"n1": "h1", "n2": "h1"},
    hosts=[Host("esx-1", "h1", "blue", "maintenance", 40_000, 65_536)],
)
MODEL = compile(SITE, Options())
GIB = 1 << 30


def a_finding(id_: str, **fields: object) -> Finding:
    return Finding(**{"id": id_, "severity": "drift", "rule": "R", "reason": "r", "message": "m", **fields})


def test_pods_are_those_on_nodes_that_have_not_finished() -> None:
    pods, nodes = tables.pods(MODEL), tables.nodes(SITE, MODEL)
    named = zip(pods[fr.NAME], nodes[pods[fr.NODE]][fr.NAME], strict=True)
    assert list(named) == [("shop/web-0", "n2"), ("shop/db-0", "n1")]


def test_the_numbers_of_pods_are_the_models_own_memory() -> None:
    column = tables.pods(MODEL)[fr.CLASS].to_numpy(allow_copy=False)
    assert np.shares_memory(column, MODEL.running.classes)


def test_nodes_say_what_they_have_and_what_is_below_them() -> None:
    have = (4_000, 8 * GIB, 100 * GIB, 110)
    assert tables.nodes(SITE, MODEL).rows() == [
        ("n1", False, *have, "vm-n1", "h1"),
        ("n2", True, *have, "vm-n2", "h1"),
        ("n3", False, *have, None, None),
    ]


def test_hosts_and_vms_are_those_of_the_inventory() -> None:
    assert tables.hosts(SITE).rows() == [("h1", "esx-1", "blue", "maintenance", 40_000, 65_536)]
    assert tables.vms(SITE).select(fr.ID, fr.HOST, fr.POWER).rows() == [("vm-n1", "h1", "on"), ("vm-n2", "h1", "on")]


def test_separations_list_each_class_with_its_sides() -> None:
    apart = [
        Separation("InterPodAffinity", "zone", (1, 4), (1, 2)),
        Separation("PodTopologySpread", "rack", (3,), (3,)),
    ]
    assert tables.separations(apart).rows() == [
        (0, "InterPodAffinity", "zone", 1, True, True),
        (0, "InterPodAffinity", "zone", 2, False, True),
        (0, "InterPodAffinity", "zone", 4, True, False),
        (1, "PodTopologySpread", "rack", 3, True, True),
    ]


def test_budgets_are_sorted_by_name() -> None:
    figures = {"shop/web": BudgetFigures(3, 2, 2, 0), "shop/db": BudgetFigures(3, 3, 2, 1)}
    assert tables.budgets(figures).rows() == [("shop/db", 3, 3, 2, 1), ("shop/web", 3, 2, 2, 0)]


def test_findings_have_their_domain_in_two_columns() -> None:
    found = [a_finding("1", domain=Domain("host", ""), peers=["shop/b"], pods=2), a_finding("2")]
    frame = tables.findings(found).select(fr.DOMAIN_KEY, fr.DOMAIN_VALUE, fr.PEERS, fr.PODS_COUNT)
    assert frame.rows() == [("host", "", ["shop/b"], 2), (None, None, [], None)]


def test_a_site_without_anything_has_empty_tables() -> None:
    empty = a_site()
    model = compile(empty, Options())
    frames = [tables.pods(model), tables.nodes(empty, model), tables.hosts(empty), tables.vms(empty)]
    assert [frame.height for frame in (*frames, tables.budgets({}), tables.findings([]))] == [0] * 6


def test_findings_are_compared_by_their_ids_and_stay_in_order() -> None:
    before = tables.FindingSet([a_finding("b"), a_finding("a"), a_finding("c")])
    after = tables.FindingSet([a_finding("e"), a_finding("a", message="other words"), a_finding("d")])
    assert [one.id for one in after - before] == ["e", "d"]
    assert [one.id for one in before - after] == ["b", "c"]
    assert after - tables.FindingSet([]) == after.findings
