"""Nodes that come and go under a resident evaluator: every number of a node moves, no pod may lose its place."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from support.build import HOST, ZONE, NodeBuilder, PodBuilder, a_node, a_pod, a_site, app, nodes, spread, term
from support.sites.changing import ChangingSite

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.pending import decide
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding, NodeHost
from underhost.schemas.vsphere import Host


@pytest.mark.parametrize("seed", range(8))
def test_nodes_changed_in_any_order_among_pods_are_judged_as_by_a_fresh_evaluator(seed: int) -> None:
    site, options = ChangingSite(random.Random(1000 + seed), hosts=seed % 4 > 0), Options()
    resident = Evaluator(options)
    said: list[str] = []
    for _ in range(60):
        assert resident.update(site.snapshot) == check(replace(site.snapshot), options), said[-3:]
        assert resident.decide(site.snapshot) == decide(replace(site.snapshot), options), said[-3:]
        said.append(site.exchange_nodes())
        if site.pick.random() < 0.6:
            said.append(site.change())


class Followed:
    """A site under a resident evaluator that never compiles it anew, and says what a fresh one says."""

    def __init__(self, all_nodes: Iterable[NodeBuilder], pods: Iterable[PodBuilder], **more: object) -> None:
        self.snapshot = replace(a_site(*all_nodes, *pods), **more)  # type: ignore[arg-type]
        self.resident = Evaluator(Options())
        self.resident.update(self.snapshot)

    def nodes(self, *come: NodeBuilder, gone: Iterable[str] = ()) -> list[Finding]:
        """The findings after these nodes have come (or come again, changed) and those have gone."""
        kept = {name: node for name, node in self.snapshot.nodes.items() if name not in gone}
        return self.now(nodes={**kept, **{node.name: node.build() for node in come}})

    def now(self, **fields: object) -> list[Finding]:
        """The findings of the site after a change."""
        self.snapshot = replace(self.snapshot, **fields)  # type: ignore[arg-type]
        report = self.resident.update(self.snapshot)
        assert report == check(replace(self.snapshot), Options())
        assert self.resident.rebuilt == 1
        return report.findings

    def placed(self) -> dict[str, str | None]:
        """Where the pending pods go."""
        assert self.resident.decide(self.snapshot) == decide(replace(self.snapshot), Options())
        return {one.pod: one.node for one in self.resident.decide(self.snapshot)}


def said(findings: list[Finding]) -> list[tuple[str, str | None, str | None, list[str]]]:
    return [(one.rule, one.pod, one.node, one.peers) for one in findings]


def apart(name: str) -> PodBuilder:
    return a_pod(name).labels(app="db").apart(term(HOST, app("db")))


@pytest.mark.parametrize("name", ["a", "n2-5", "z"], ids=["before all others", "between", "after all others"])
def test_pods_stay_on_their_nodes_when_a_node_comes_and_goes(name: str) -> None:
    site = Followed(nodes("n1", "n2", "n3"), [apart("one").on("n2"), apart("two").on("n2"), apart("else").on("n3")])
    near = [("InterPodAffinity", "shop/one", "n2", ["shop/two"])]
    assert said(site.nodes(a_node(name))) == near
    assert said(site.nodes(gone=[name])) == near
    assert said(site.nodes(a_node(name), gone=["n1"])) == near
    two = apart("two").on(name)
    assert said(site.now(pods={**site.snapshot.pods, two.key: two.build()})) == []


def test_pods_of_a_node_that_goes_are_on_an_unknown_node_until_it_comes_back() -> None:
    even = [a_pod(f"e{at}").labels(app="even").spreads(spread(ZONE, app("even"))) for at in (1, 2, 3)]
    zones = [a_node("n1").zone("a"), a_node("n2").zone("b"), a_node("n3").zone("b")]
    site = Followed(zones, [even[0].on("n1"), even[1].on("n2"), even[2].on("n3")])
    assert said(site.nodes(gone=["n3"])) == [("NodeName", "shop/e3", "n3", [])]
    assert said(site.nodes(gone=["n2"])) == [("NodeName", "shop/e2", "n2", []), ("NodeName", "shop/e3", "n3", [])]
    back = site.nodes(a_node("n3").zone("a"), a_node("n2").zone("c"), a_node("n4").zone("b"))
    assert said(back) == [("PodTopologySpread", "shop/e1", "n1", ["shop/e3"])]


def test_ten_nodes_that_join_at_once_take_the_pods_that_wait_the_smallest_name_first() -> None:
    waiting = [a_pod(f"w{at}").needs(cpu="3").created(f"2026-01-01T00:00:0{at}Z") for at in (1, 2, 3)]
    site = Followed([a_node("n1")], [a_pod("big").needs(cpu="3").on("n1"), *waiting])
    assert site.placed() == {"shop/w1": None, "shop/w2": None, "shop/w3": None}
    site.nodes(*nodes(*(f"x{at}" for at in range(8)), "b", "a"))
    assert site.placed() == {"shop/w1": "a", "shop/w2": "b", "shop/w3": "x0"}


def test_the_load_of_each_node_moves_with_it() -> None:
    full = [a_pod(f"full-{name}").needs(cpu="3").on(name) for name in ("n1", "n3")]
    site = Followed(nodes("n1", "n2", "n3"), [*full, a_pod("later").needs(cpu="3")])
    site.nodes(a_node("a").has(cpu="1"), gone=[])
    assert site.placed() == {"shop/later": "n2"}
    site.nodes(gone=["a", "n2"])
    assert site.placed() == {"shop/later": None}
    site.nodes(a_node("n2-again"))
    assert site.placed() == {"shop/later": "n2-again"}


def test_pods_that_already_ask_for_a_resource_count_when_a_node_first_brings_it() -> None:
    gpu = {"resources": {"requests": {"example.com/gpu": "1"}}}
    hold = [a_pod(name).containers(gpu).on("n1") for name in ("one", "two")]
    site = Followed(nodes("n1"), [*hold, a_pod("wants").containers(gpu)])
    site.nodes(a_node("g").has(**{"example.com/gpu": "1"}))
    assert site.placed() == {"shop/wants": "g"}
    crowded = [("NodeResourcesFit", f"shop/{name}", "n1", []) for name in ("one", "two")]
    assert said(site.nodes(a_node("n1").has(**{"example.com/gpu": "1"}))) == crowded
    assert said(site.nodes(a_node("n1").has(**{"example.com/gpu": "2"}), gone=["g"])) == []
    assert site.placed() == {"shop/wants": None}


def test_a_node_that_joins_on_a_shared_host_is_judged_by_that_host_at_once() -> None:
    def on_host(*names: str) -> dict[str, NodeHost]:
        return {name: NodeHost(name, f"vm-{name}", "h1", "esx-h1", "name") for name in names}

    pods = [apart("one").on("n1"), apart("two").on("n2")]
    site = Followed(nodes("n1"), pods, hosts={"h1": Host("esx-h1", "h1")}, node_hosts=on_host("n1"))
    assert said(site.now(node_hosts=on_host("n1", "n2"))) == [("NodeName", "shop/two", "n2", [])]
    assert said(site.nodes(a_node("n2"))) == [("PhysicalHost", "shop/one", "n1", ["shop/two"])]
    assert said(site.nodes(gone=["n1"])) == [("NodeName", "shop/one", "n1", [])]


def test_too_many_pods_to_keep_apart_are_found_at_first_and_as_hosts_change_cluster() -> None:
    def hosts(**clusters: str) -> dict[str, Host]:
        return {name: Host(f"esx-{name}", name, cluster=cluster) for name, cluster in clusters.items()}

    names = ("n1", "n2", "n3")
    joined = {name: NodeHost(name, f"vm-{name}", "h1", "esx-h1", "name") for name in names}
    pods = [apart(f"db-{name}").on(name) for name in names]
    site = Followed(nodes(*names), pods, hosts=hosts(h1="C", h2="C"), node_hosts=joined, vsphere=True)
    together = ("PhysicalHost", "shop/db-n1", "n1", ["shop/db-n2", "shop/db-n3"])
    assert said(site.now()) == [together, together]
    assert said(site.now(hosts=hosts(h1="C", h2="C", h3="C"))) == [together]
    assert said(site.now(hosts=hosts(h1="C", h2="D", h3="D"))) == [together, together]
    assert said(site.nodes(gone=["n1", "n2"]))[:1] == [("NodeName", "shop/db-n1", "n1", [])]


def test_a_site_that_gets_a_vsphere_side_is_told_in_its_words() -> None:
    joined = {name: NodeHost(name, f"vm-{name}", "h1", "esx-h1", "name") for name in ("n1", "n2")}
    pods = [apart(f"db-{name}").on(name) for name in ("n1", "n2")]
    by_label = replace(a_site(*nodes("n1", "n2"), *pods), hosts={"h1": Host("esx-h1", "h1")}, node_hosts=joined)
    resident = Evaluator(Options())
    assert "run on host esx-h1" in resident.update(by_label).findings[0].message
    by_vsphere = replace(by_label, vsphere=True)
    assert "run on ESXi host esx-h1" in resident.update(by_vsphere).findings[0].message
    assert resident.update(by_vsphere) == check(replace(by_vsphere), Options())


def test_host_keys_are_judged_by_hosts_once_a_host_is_known_though_no_node_is_on_one() -> None:
    key = Options().host_keys[0]
    both = [a_pod(name).labels(app="db").apart(term(key, app("db"))).on(f"n-{name}") for name in ("one", "two")]
    labelled = [a_node(f"n-{name}").labels({key: "x"}) for name in ("one", "two")]
    snapshot: Snapshot = a_site(*labelled, *both)
    resident = Evaluator(Options())
    assert said(resident.update(snapshot).findings) == [("InterPodAffinity", "shop/one", "n-one", ["shop/two"])]
    with_host = replace(snapshot, hosts={"h1": Host("esx-h1", "h1")})
    assert resident.update(with_host) == check(replace(with_host), Options())
    assert resident.update(with_host).findings == []
    assert resident.update(replace(snapshot)) == check(replace(snapshot), Options())
