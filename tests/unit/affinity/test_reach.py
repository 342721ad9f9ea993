"""A term is followed into another namespace by upstream's rules, and by what we do about it only where that is set."""

import pytest
from support.answers.rules import refused, verdict
from support.build import HOST, RACK, ZONE, PodBuilder, a_node, a_pod, a_site, app, term
from support.sites.extender import Asking, FakeSite

from underhost.agents.compiled.model import compile
from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.rules.inter_pod_affinity import NAME, REASON_EXISTING_ANTI_AFFINITY
from underhost.agents.site.snapshot import Options
from underhost.schemas.vsphere import Host

HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2"}
EVERYBODY = {"namespaceSelector": {}}
EVIL = a_pod("x", "evil").labels(app="x").on("n1")
CLOSES = EVIL.apart(term(HOST, {"matchLabels": {}}, **EVERYBODY))
VICTIM = a_pod("db-0").labels(app="db")
WARY = VICTIM.apart(term(HOST, app("x"), namespaces=["evil"]))
THREE = [a_node(name).labels(rack=f"r-{name}") for name in HOSTS]
WAYS = [pytest.param("report", id="report"), pytest.param("act", id="act")]


@pytest.mark.parametrize(
    ("running", "new", "cross", "closed"),
    [
        pytest.param(CLOSES, VICTIM, "report", [], id="a foreign term closes no host"),
        pytest.param(CLOSES, VICTIM, "act", ["n2"], id="but where that is set"),
        pytest.param(EVIL, WARY, "report", ["n2"], id="a pod's own term is its own"),
        pytest.param(
            VICTIM.on("n1").apart(term(HOST, app("db"))), a_pod("db-1").labels(app="db"), "report", ["n2"], id="at home"
        ),
    ],
)
def test_whose_term_closes_a_physical_host(running: PodBuilder, new: PodBuilder, cross: str, closed: list[str]) -> None:
    options = Options(physical_host="required", cross_namespace=cross)
    found = refused(a_site(*THREE, running, new, on=HOSTS), new.key, "PhysicalHost", options)
    assert list(found) == closed


@pytest.mark.parametrize("cross", WAYS)
def test_upstreams_own_rule_refuses_the_node_whatever_is_set(cross: str) -> None:
    site, options = a_site(*THREE, CLOSES, VICTIM, on=HOSTS), Options(cross_namespace=cross)
    assert refused(site, VICTIM.key, NAME, options) == {"n1": [REASON_EXISTING_ANTI_AFFINITY]}


@pytest.mark.parametrize(
    ("cross", "conflicts"), [pytest.param("report", 0, id="report"), pytest.param("act", 1, id="act")]
)
def test_a_foreign_term_makes_no_node_less_liked(cross: str, conflicts: int) -> None:
    found = verdict(a_site(*THREE, CLOSES, VICTIM, on=HOSTS), VICTIM.key, Options(cross_namespace=cross))
    assert found.nodes["n2"].physical_conflicts == conflicts


@pytest.mark.parametrize(
    ("running", "cross", "left"),
    [
        pytest.param(CLOSES, "report", ["n1", "n2", "n3"], id="a foreign term by hostname"),
        pytest.param(CLOSES, "act", ["n1", "n3"], id="a foreign term by hostname that acts"),
        pytest.param(EVIL.apart(term(HOST_KEY, {}, **EVERYBODY)), "report", ["n1", "n2", "n3"], id="by the host key"),
        pytest.param(EVIL.apart(term(HOST_KEY, {}, **EVERYBODY)), "act", ["n3"], id="by the host key that acts"),
    ],
)
async def test_whose_term_closes_a_host_in_the_extender(running: PodBuilder, cross: str, left: list[str]) -> None:
    site = FakeSite(HOSTS)
    site.put(running)
    asking = Asking(site, Options(physical_host="required", cross_namespace=cross))
    try:
        assert (await asking.filter(VICTIM))[0] == left
    finally:
        asking.close()


def drs_rules(*pods: PodBuilder, cross: str = "report") -> list[tuple[str, list[str]]]:
    """The rules of a site with a node on each of three hosts."""
    hosts = [Host(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in (1, 2, 3)]
    site = a_site(*THREE, *pods, on={"n1": "h1", "n2": "h2", "n3": "h3"}, hosts=hosts)
    options = Options(cross_namespace=cross)
    return [(rule.type, rule.vms) for rule in RulesByCluster(options).of(site, compile(site, options))]


DB_1, DB_2 = VICTIM.on("n2"), a_pod("db-1").labels(app="db").on("n3")
OWN = [pod.apart(term(HOST, app("db"))) for pod in (DB_1, DB_2)]


@pytest.mark.parametrize(
    ("pods", "cross", "expected"),
    [
        pytest.param([CLOSES, DB_1, DB_2], "report", [], id="no rule for a term that selects everything"),
        pytest.param(
            [CLOSES, DB_1, DB_2],
            "act",
            [("anti-affinity", ["vm-n1", "vm-n2"]), ("anti-affinity", ["vm-n1", "vm-n3"])],
            id="one for each VM where it acts",
        ),
        pytest.param(
            [EVIL.apart(term(RACK, {}, **EVERYBODY)), *OWN],
            "report",
            [("anti-affinity", ["vm-n2", "vm-n3"])],
            id="the victim's own rule stays as it is",
        ),
        pytest.param([EVIL.near(term(HOST_KEY, {}, **EVERYBODY)), DB_1], "report", [], id="nor is a VM drawn near"),
        pytest.param(
            [EVIL.near(term(HOST_KEY, {}, **EVERYBODY)), DB_1],
            "act",
            [("affinity", ["vm-n1", "vm-n2"])],
            id="but where it acts",
        ),
        pytest.param(
            [DB_1.near(term(HOST_KEY, {"app": "db"}, namespaces=["shop", "evil"])), DB_2, EVIL.labels(app="db")],
            "report",
            [("affinity", ["vm-n2", "vm-n3"])],
            id="a pod of another namespace is no reason to give up a rule",
        ),
    ],
)
def test_no_vm_is_bound_by_a_foreign_term(
    pods: list[PodBuilder], cross: str, expected: list[tuple[str, list[str]]]
) -> None:
    assert drs_rules(*pods, cross=cross) == expected


def test_a_foreign_term_changes_no_domain_of_others() -> None:
    site = a_site(*THREE, EVIL.apart(term(ZONE, {}, **EVERYBODY)), VICTIM, on=HOSTS)
    assert all(one.feasible for one in verdict(site, VICTIM.key, Options(physical_host="required")).nodes.values())
