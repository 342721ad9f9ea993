"""Pods that must be apart, counted by vSphere cluster, while VMs move within one, to another and out of sight."""

from dataclasses import replace
from random import Random

import pytest
from support.build import HOST, a_node, a_pod, a_site, term

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.evaluate.unsatisfiable import REASON_TOO_MANY
from underhost.agents.site.places import place_of, share
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.vsphere import CONNECTED, DISCONNECTED, Host

DB = {"app": "db"}
LARGE, SMALL = ["l1", "l2", "l3", "l4"], ["s1"]
HOSTS = [Host(id=name, name=f"esx-{name}", cluster=name[0].upper()) for name in (*LARGE, *SMALL)]


def a_site_on(on: dict[str, str]) -> Snapshot:
    """A pod of one application on every node, no two of which may share a node."""
    pods = [a_pod(f"db-{node}").on(node).labels(DB).apart(term(HOST, DB)) for node in on]
    return a_site(*map(a_node, on), *pods, on=on, hosts=HOSTS)


@pytest.mark.parametrize(
    ("on", "clusters"),
    [
        pytest.param({"n1": "l1", "n2": "l2", "n3": "l3", "n4": "s1"}, [], id="as many as hosts, or fewer"),
        pytest.param({"n1": "l1", "n2": "s1", "n3": "s1"}, ["S"], id="more than the small cluster has"),
        pytest.param({f"n{at}": LARGE[at % 4] for at in range(5)}, ["L"], id="more than the large cluster has"),
    ],
)
def test_a_crowd_is_too_many_for_the_hosts_of_its_own_cluster(on: dict[str, str], clusters: list[str]) -> None:
    found = [one for one in check(a_site_on(on), Options()).findings if one.reason == REASON_TOO_MANY]
    assert [one.domain.value for one in found if one.domain is not None] == clusters


@pytest.mark.parametrize("seed", range(10))
def test_moves_within_and_between_clusters_are_judged_as_a_fresh_look_does(seed: int) -> None:
    random = Random(seed)
    on = {f"n{at}": random.choice(LARGE) for at in range(5)}
    evaluator, now = Evaluator(Options()), a_site_on(on)
    for _ in range(30):
        moved = random.sample(sorted(on), random.randint(1, 3))
        on |= {node: random.choice([*LARGE, *SMALL, ""]) for node in moved}
        joined = a_site_on(on).node_hosts
        now = replace(now, node_hosts={**now.node_hosts, **{node: joined[node] for node in moved}})
        if random.random() < 0.3:
            host = now.hosts[random.choice(sorted(now.hosts))]
            other = DISCONNECTED if host.state == CONNECTED else CONNECTED
            changed = Host(id=host.id, name=host.name, cluster=host.cluster, state=other)
            now = replace(now, hosts={**now.hosts, host.id: changed})
        assert evaluator.update(now) == check(now, Options())
    assert evaluator.rebuilt == 1


def test_two_nodes_share_a_place_where_the_place_of_both_is_one() -> None:
    site = a_site_on({"n1": "l1", "n2": "l1", "n3": "l2", "n4": "", "n5": ""})
    gone = replace(site, nodes={name: node for name, node in site.nodes.items() if name != "n2"})
    for snapshot in (site, gone):
        for one in (*site.nodes, "absent"):
            for other in {*site.nodes, "absent"} - {one}:
                same = place_of(snapshot, one) == place_of(snapshot, other)
                assert share(snapshot, one, other) == same
