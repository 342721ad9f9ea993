"""What an answer leaves out is said, with its reason: no all-clear for what nobody looked at."""

from dataclasses import replace

import pytest
from support.build import PodBuilder, a_namespace, a_node, a_pod, a_site, term

from underhost.agents.site.not_judged import not_judged, not_placed, places_not_judged
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import NotJudged
from underhost.schemas.vsphere import Host

NODES = (a_node("n1"), a_node("n2"))
RUNS, WAITS, ENDED = a_pod("db-0").on("n1"), a_pod("db-1"), a_pod("job-1").finished()
ON_HOSTS = a_site(*NODES, RUNS, on={"n1": "h1", "n2": "h2"})
NO_INVENTORY = NotJudged("PhysicalHost", "no inventory")


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param(ON_HOSTS, [], id="all is judged"),
        pytest.param(a_site(*NODES, RUNS, ENDED), [NO_INVENTORY], id="no inventory"),
        pytest.param(
            replace(ON_HOSTS, hosts={}),
            [],
            id="only the VMs of an inventory name hosts",
        ),
        pytest.param(
            a_site(*NODES, RUNS, on={"n1": "h1", "n2": ""}),
            [NotJudged("PhysicalHost on 1 node", "their hosts are not known")],
            id="the host of a node is not known",
        ),
        pytest.param(
            replace(ON_HOSTS, hosts={**ON_HOSTS.hosts, "h1": Host(name="h1", state="disconnected")}),
            [NotJudged("PhysicalHost on 1 node", "vCenter has lost their hosts")],
            id="a host is lost, and HA may start its VMs elsewhere",
        ),
        pytest.param(
            replace(ON_HOSTS, hosts={**ON_HOSTS.hosts, "h1": Host(name="h1", state="maintenance")}),
            [],
            id="a host in maintenance says what runs on it",
        ),
        pytest.param(
            a_site(*NODES, RUNS, WAITS, a_pod("db-2"), on={"n1": "h1", "n2": "h2"}),
            [NotJudged("2 pods", "pending")],
            id="pods wait",
        ),
        pytest.param(a_site(*NODES, ENDED), [NO_INVENTORY, NotJudged("pods", "there are none")], id="none runs"),
        pytest.param(a_site(RUNS, WAITS), [NO_INVENTORY, NotJudged("2 pods", "no node")], id="pods, and no node"),
        pytest.param(
            Snapshot(vsphere=True),
            [NotJudged("PhysicalHost", "the inventory holds no host"), NotJudged("pods", "there are none")],
            id="an empty vCenter",
        ),
    ],
)
def test_a_check_says_what_it_leaves_out(site: Snapshot, expected: list[NotJudged]) -> None:
    assert not_judged(site) == expected


SHOPS = {"matchLabels": {"team": "shop"}}
BY_NAMESPACE = NotJudged("InterPodAffinity by namespaceSelector", "there are no namespaces")


def runs() -> PodBuilder:
    return a_pod("db-0").on("n1")


def by_namespace(selector: dict[str, object]) -> dict[str, object]:
    return term("kubernetes.io/hostname", {"app": "db"}, namespaceSelector=selector)


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param(a_site(*NODES, runs().apart(by_namespace(SHOPS))), [BY_NAMESPACE], id="anti-affinity"),
        pytest.param(a_site(*NODES, runs().near(by_namespace(SHOPS))), [BY_NAMESPACE], id="affinity"),
        pytest.param(
            a_site(*NODES, a_namespace("shop"), runs().apart(by_namespace(SHOPS))), [], id="a namespace is there"
        ),
        pytest.param(
            a_site(*NODES, a_namespace("web"), runs().apart(by_namespace(SHOPS))),
            [NotJudged("InterPodAffinity by namespaceSelector on pods of 1 namespace", "their labels are not known")],
            id="the namespace of some pods is not there",
        ),
        pytest.param(
            a_site(*NODES, a_namespace("shop"), runs().apart(by_namespace(SHOPS)), a_pod("job", "lab").finished()),
            [],
            id="the namespace of a pod that has finished is not there",
        ),
        pytest.param(a_site(*NODES, a_namespace("web"), runs().apart(by_namespace({}))), [], id="none is asked for"),
        pytest.param(a_site(*NODES, runs().apart(by_namespace({}))), [], id="every namespace, whatever its labels"),
        pytest.param(a_site(*NODES, runs().apart(term("zone", {"app": "db"}))), [], id="its own namespace"),
        pytest.param(a_site(*NODES, runs().prefers_apart(1, by_namespace(SHOPS))), [], id="a preference"),
    ],
)
def test_terms_by_labels_of_namespaces_need_namespaces(site: Snapshot, expected: list[NotJudged]) -> None:
    assert not_judged(site) == [NO_INVENTORY, *expected]
    assert places_not_judged(site) == [NO_INVENTORY, *expected]


def test_only_pods_in_scope_are_left_out() -> None:
    site = a_site(*NODES, RUNS, WAITS, on={"n1": "h1", "n2": "h2"})
    assert not_judged(site, lambda name: name == "shop/db-0") == []


def test_places_need_nodes() -> None:
    assert places_not_judged(a_site(WAITS)) == [NO_INVENTORY, NotJudged("nodes", "there are none")]


def test_a_pod_of_a_scheduler_that_is_not_asked_is_not_placed() -> None:
    others = [a_pod("b"), a_pod("c").on("n1")]
    pods = [a_pod("a").build(), *(one.spec(schedulerName="other").build() for one in others)]
    assert not_placed(pods, ("default-scheduler",)) == [NotJudged("1 pod", "of another scheduler")]
    assert not_placed(pods, ("default-scheduler", "other")) == []
