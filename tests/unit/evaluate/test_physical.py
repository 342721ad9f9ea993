"""Findings about the hardware: shared hosts, replicas in one place, unknown nodes and hosts, drifting nodes."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import HOST, PREFERRED, a_node, a_pod, a_site, a_workload, spread, term

from underhost.agents.compiled.model import compile
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.hosts.colocated import REASON_HOST, REASON_NODE
from underhost.agents.evaluate.nodes import REASON_CLAIMED, REASON_NO_HOST, REASON_NO_VM
from underhost.agents.rules import physical_host
from underhost.agents.site.snapshot import Joining, Options

HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
ZONE = "topology.kubernetes.io/zone"
DB, WEB = {"app": "db"}, {"app": "web"}


def nodes(count):
    """Each in a rack of its own, all in one room, none in a zone."""
    return [a_node(f"n{at}").labels(rack=f"r{at}", room="cellar") for at in range(1, count + 1)]


def findings(severity, site):
    return [finding for finding in check(site, Options()).findings if finding.severity == severity]


def found(severity, site):
    return [(finding.pod, finding.peers, finding.domain.value) for finding in findings(severity, site)]


def db(at, node, key):
    return a_pod(f"db-{at}").on(node).labels(DB).apart(term(key, DB))


TWO_ON_H1 = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
                a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)),
                a_pod("db-2").on("n3").labels(DB).apart(term(HOST, DB)),
            ],
            [("shop/db-0", ["shop/db-1"], "esx-h1")],
            id="two of three replicas on nodes of one host",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
                a_pod("db-1").on("n3").labels(DB).apart(term(HOST, DB)),
            ],
            [],
            id="two replicas on two hosts",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).spreads(spread(HOST, DB)),
                a_pod("db-1").on("n2").labels(DB).spreads(spread(HOST, DB)),
            ],
            [("shop/db-0", ["shop/db-1"], "esx-h1")],
            id="a DoNotSchedule spread is undone as well",
        ),
        pytest.param(
            [db(0, "n1", "topology.kubernetes.io/zone"), db(1, "n2", "topology.kubernetes.io/zone")],
            [],
            id="a key that no node carries keeps nothing apart",
        ),
        pytest.param(
            [db(0, "n1", "rack"), db(1, "n2", "rack")],
            [("shop/db-0", ["shop/db-1"], "esx-h1")],
            id="a term on any label key counts",
        ),
        pytest.param(
            [db(0, "n1", "room"), db(1, "n2", "room")],
            [],
            id="two pods in one domain of the key are a violation, not undone",
        ),
        pytest.param(
            [db(0, "n1", "kubernetes.io/hostname"), db(1, "n1", "kubernetes.io/hostname")],
            [],
            id="two pods on one node are a violation, not undone",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).apart(term(HOST_KEY, DB)),
                a_pod("db-1").on("n2").labels(DB).apart(term(HOST_KEY, DB)),
            ],
            [],
            id="a term on the host key is judged as a violation, not here",
        ),
        pytest.param(
            [a_pod("web-0").on("n1").labels(WEB).apart(term(HOST, DB)), a_pod("db-0").on("n2").labels(DB)],
            [("shop/db-0", ["shop/web-0"], "esx-h1")],
            id="the term of one pod is enough",
        ),
        pytest.param(
            [
                a_pod("web-0").on("n1").labels(WEB).apart(term(HOST, DB)),
                a_pod("db-0").on("n2").labels(DB),
                a_pod("db-1").on("n2").labels(DB),
            ],
            [("shop/db-0", ["shop/db-1", "shop/web-0"], "esx-h1")],
            id="pods are one group through the one that refuses them both",
        ),
        pytest.param(
            [
                a_pod("a-0").on("n1").labels(app="a").apart(term(HOST, {"app": "a"})),
                a_pod("a-1").on("n2").labels(app="a").apart(term(HOST, {"app": "a"})),
                a_pod("b-0").on("n1").labels(app="b").apart(term(HOST, {"app": "b"})),
                a_pod("b-1").on("n2").labels(app="b").apart(term(HOST, {"app": "b"})),
            ],
            [("shop/a-0", ["shop/a-1"], "esx-h1"), ("shop/b-0", ["shop/b-1"], "esx-h1")],
            id="two applications on one host are two findings",
        ),
        pytest.param(
            [a_pod("db-0").on("n1").labels(DB), a_pod("db-1").on("n2").labels(DB)],
            [],
            id="without a term there is no finding",
        ),
        pytest.param(
            [
                a_pod("web-0").on("n1").labels(WEB).apart(term(HOST, DB)),
                a_pod("web-1").on("n2").labels(WEB).apart(term(HOST, DB)),
                a_pod("db-0").on("n1").labels(DB),
                a_pod("db-1").on("n2").labels(DB),
            ],
            [("shop/db-0", ["shop/web-1"], "esx-h1"), ("shop/db-1", ["shop/web-0"], "esx-h1")],
            id="pods that refuse one another crosswise are two groups",
        ),
    ],
)
def test_pods_that_must_be_apart_and_share_a_host_are_found(objects, expected):
    assert found("physical", a_site(*nodes(4), *objects, on=TWO_ON_H1)) == expected


def test_a_physical_finding_names_pods_nodes_and_host():
    pods = [a_pod(f"db-{at}").on(f"n{at + 1}").labels(DB).apart(term(HOST, DB)) for at in range(2)]
    site = a_site(*nodes(2), *pods, on={"n1": "h1", "n2": "h1"}, site="prod-a")
    (finding,) = findings("physical", site)
    assert (finding.severity, finding.rule, finding.source) == ("physical", "PhysicalHost", "InterPodAffinity")
    assert (finding.node, finding.domain.key, finding.domain.value) == ("n1", "host", "esx-h1")
    assert finding.message == (
        "shop/db-0 (node n1) and shop/db-1 (node n2) both run on ESXi host esx-h1, though a required anti-affinity by "
        "kubernetes.io/hostname keeps them apart: one host failure takes them together."
    )


def test_an_id_stays_while_other_members_come_and_go():
    def ids(count, site="default"):
        pods = [a_pod(f"db-{at}").on(f"n{at + 1}").labels(DB).apart(term(HOST, DB)) for at in range(count)]
        snapshot = a_site(*nodes(3), *pods, on=dict.fromkeys(("n1", "n2", "n3"), "h1"), site=site)
        return [finding.id for finding in findings("physical", snapshot)]

    assert ids(2) == ids(3)
    assert ids(2) != ids(2, site="other")


def test_nodes_of_unknown_hosts_never_share_one():
    pods = [a_pod(f"db-{at}").on(f"n{at + 1}").labels(DB).apart(term(HOST, DB)) for at in range(3)]
    assert found("physical", a_site(*nodes(3), *pods, on={"n1": "h1", "n2": "", "n3": ""})) == []


def test_without_hosts_there_is_nothing_physical():
    pods = [a_pod(f"db-{at}").on(f"n{at + 1}").labels(DB).apart(term(HOST, DB)) for at in range(2)]
    assert found("physical", a_site(*nodes(2), *pods)) == []


APPS = ("a", "b", "c")
KEYS = {
    "kubernetes.io/hostname": {"n1": "n1", "n2": "n2", "n3": "n3", "n4": "n4"},
    "half": {"n1": "x", "n2": "x", "n3": "y", "n4": "y"},
    "some": {"n1": "x", "n2": "y"},
}
LABELLED = [a_node(n).labels({key: of[n] for key, of in KEYS.items() if n in of}) for n in ("n1", "n2", "n3", "n4")]


@st.composite
def clusters(draw):
    """Up to eight pods of three applications, with terms against one another, on four nodes of up to three hosts."""
    on = {f"n{at}": draw(st.sampled_from(["h1", "h2", "h3", ""])) for at in range(1, 5)}
    specs = {}
    for app in APPS:
        against = draw(st.sets(st.sampled_from(APPS), max_size=2))
        key = draw(st.sampled_from(sorted(KEYS)))
        terms = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": other}}} for other in sorted(against)]
        required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        specs[app] = ({"affinity": required} if terms else {}, against, KEYS[key])
    pods = draw(st.lists(st.tuples(st.sampled_from(APPS), st.sampled_from(sorted(on))), max_size=8))
    return on, specs, pods


@given(clusters(), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_the_sweep_finds_what_a_walk_over_all_pairs_finds(cluster, rng):
    on, specs, placed = cluster
    named = {f"shop/p{at}": (app, node) for at, (app, node) in enumerate(placed)}
    pods = [a_pod(f"p{at}").on(node).labels(app=app).spec(**specs[app][0]) for at, (app, node) in enumerate(placed)]
    objects = [*LABELLED, *pods]
    rng.shuffle(objects)

    def refuses(one, other):
        _, against, values = specs[named[one][0]]
        here, there = values.get(named[one][1]), values.get(named[other][1])
        return named[other][0] in against and None not in (here, there) and here != there

    pairs = {
        (one, other)
        for one, other in itertools.permutations(named, 2)
        if on[named[one][1]]
        and on[named[one][1]] == on[named[other][1]]
        and (refuses(one, other) or refuses(other, one))
    }
    expected = []
    rest = {pod for pair in pairs for pod in pair}
    while rest:
        group = {min(rest)}
        while more := {other for one, other in pairs if one in group} - group:
            group |= more
        rest -= group
        first, *peers = sorted(group)
        expected.append((first, peers, f"esx-{on[named[first][1]]}"))
    site = a_site(*objects, on=on)
    assert found("physical", site) == sorted(expected)
    assert conflicts_by_rule(site) == {pod: sum(one == pod for one, _ in pairs) for pod in named}


def conflicts_by_rule(site):
    """What the rule PhysicalHost counts against each running pod on its own node."""
    model = compile(site, Options())
    state = State(model)
    counts = {}
    for key, cls, node in zip(model.running.keys, model.running.classes, model.running.nodes, strict=True):
        prepared = physical_host.prepare(state, model.classes[cls])
        counted = prepared.conflicts(np.array([node])) if prepared is not None else None
        counts[key] = 0 if counted is None else int(counted[0])
    return counts


# ------------------------------------------------------------------------------------------------------- co-located


def web(at, node):
    return a_pod(f"web-{at}").on(node).labels(WEB).owned_by("ReplicaSet/web-1")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([web(0, "n1"), web(1, "n2")], [("shop/web-0", ["shop/web-1"], "esx-h1")], id="all on one host"),
        pytest.param([web(0, "n1"), web(1, "n3")], [], id="on two hosts"),
        pytest.param([web(0, "n1")], [], id="one replica is alone anywhere"),
        pytest.param([web(0, "n1"), web(1, "n2").ready(False)], [], id="a replica that is not ready does not count"),
        pytest.param([web(0, "n1"), web(1, "n2").deleted()], [], id="a replica that is going does not count"),
        pytest.param(
            [web(0, "n1"), web(1, "n2"), web(2, "n3").ready(False)],
            [("shop/web-0", ["shop/web-1"], "esx-h1")],
            id="the ready ones share a host, whatever the others do",
        ),
        pytest.param([web(0, "n1"), web(1, "n2"), web(2, "gone")], [], id="one is on a node that nobody knows"),
        pytest.param(
            [web(0, "n1").apart(term(ZONE, WEB)), web(1, "n2").apart(term(ZONE, WEB))],
            [("shop/web-0", ["shop/web-1"], "esx-h1")],
            id="a rule on a key that no node carries says nothing",
        ),
        pytest.param(
            [web(0, "n1").near(term(HOST_KEY, WEB)), web(1, "n2").near(term(HOST_KEY, WEB))],
            [],
            id="a required affinity told them to",
        ),
        pytest.param([a_pod("a").on("n1"), a_pod("b").on("n1")], [], id="pods without an owner are no replicas"),
        pytest.param(
            [a_pod("d-1").on("n1").owned_by("DaemonSet/d"), a_pod("d-2").on("n2").owned_by("DaemonSet/d")],
            [],
            id="a DaemonSet's pods are where their nodes are",
        ),
        pytest.param(
            [a_pod("j-1").on("n1").owned_by("Job/j"), a_pod("j-2").on("n2").owned_by("Job/j")],
            [],
            id="a Job's pods are no replicas",
        ),
        pytest.param(
            [
                a_workload("ReplicaSet", "web-1").owned_by("Deployment/web"),
                a_workload("ReplicaSet", "web-2").owned_by("Deployment/web"),
                web(0, "n1"),
                a_pod("web-9").on("n2").owned_by("ReplicaSet/web-2"),
            ],
            [("shop/web-0", ["shop/web-9"], "esx-h1")],
            id="two ReplicaSets of one Deployment are one application",
        ),
        pytest.param(
            [
                a_workload("VirtualMachineInstanceReplicaSet", "mssql"),
                a_pod("virt-launcher-1").on("n1").owned_by("VirtualMachineInstance/mssqlp948r"),
                a_pod("virt-launcher-2").on("n2").owned_by("VirtualMachineInstance/mssqlz2qnw"),
            ],
            [("shop/virt-launcher-1", ["shop/virt-launcher-2"], "esx-h1")],
            id="two KubeVirt machines of one replica set are one application",
        ),
    ],
)
def test_replicas_that_share_one_host_without_a_rule_are_found(objects, expected):
    assert found("co-located", a_site(*nodes(4), *objects, on=TWO_ON_H1)) == expected


def test_replicas_of_a_physical_finding_are_not_found_again():
    site = a_site(*nodes(4), web(0, "n1").apart(term(HOST, WEB)), web(1, "n2").apart(term(HOST, WEB)), on=TWO_ON_H1)
    assert found("co-located", site) == []


def test_where_hosts_are_unknown_the_node_is_the_place():
    site = a_site(*nodes(2), web(0, "n1"), web(1, "n1"))
    (finding,) = findings("co-located", site)
    assert (finding.severity, finding.reason, finding.domain.key, finding.domain.value) == (
        "co-located",
        REASON_NODE,
        "node",
        "n1",
    )
    assert finding.message == (
        "All 2 ready replicas of ReplicaSet shop/web-1 (shop/web-0 and shop/web-1) run on node n1, "
        "and no rule keeps them apart."
    )


PREFERS = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term(HOST, WEB)}]}}
PREFERS_OTHERS = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term(HOST, DB)}]}}


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        pytest.param({"affinity": PREFERS}, "only a preference keeps", id="a preferred anti-affinity"),
        pytest.param({"affinity": PREFERS_OTHERS}, "no rule keeps", id="a preferred anti-affinity to others"),
        pytest.param(
            {"topologySpreadConstraints": [spread(HOST, WEB, soft=True)]},
            "only a preference keeps",
            id="a preferred spread",
        ),
        pytest.param({}, "no rule keeps", id="nothing"),
    ],
)
def test_the_message_tells_a_preference_from_no_rule(spec, rule):
    site = a_site(*nodes(2), web(0, "n1").spec(**spec), web(1, "n1").spec(**spec))
    (finding,) = findings("co-located", site)
    assert finding.message.endswith(f" run on node n1, and {rule} them apart.")


def test_the_message_names_the_nodes_of_a_shared_host():
    site = a_site(*nodes(3), web(0, "n1"), web(1, "n2"), on={"n1": "h1", "n2": "h1", "n3": "h2"})
    (finding,) = findings("co-located", site)
    assert finding.reason == REASON_HOST
    assert "run on ESXi host esx-h1 (nodes n1 and n2), and no rule keeps them apart." in finding.message


ONE_HOST = {"n1": "h1", "n2": "h1"}


@pytest.mark.parametrize(
    ("count", "on", "ending"),
    [
        pytest.param(1, {}, " run on node n1, and there is no other node.", id="one node"),
        pytest.param(1, {"n1": "h1"}, " run on ESXi host esx-h1, and there is no other node.", id="one node on a host"),
        pytest.param(2, ONE_HOST, " run on ESXi host esx-h1, and there is no other host.", id="one host"),
        pytest.param(2, {}, " run on node n1, and no rule keeps them apart.", id="two nodes"),
    ],
)
def test_where_there_is_no_other_place_no_rule_is_missed(count, on, ending):
    site = a_site(*nodes(count), web(0, "n1"), web(1, "n1"), on=on)
    (finding,) = findings("co-located", site)
    assert finding.message.endswith(ending)


# ---------------------------------------------------------------------------------------------------- nodes and hosts


def test_pods_on_a_node_that_the_input_lacks_are_found():
    site = a_site(a_node("n1"), a_pod("a").on("gone"), a_pod("b").on("n1"), a_pod("c").on("gone").finished())
    (finding,) = findings("unknown-node", site)
    assert (finding.severity, finding.rule, finding.pod, finding.node) == ("unknown-node", "NodeName", "shop/a", "gone")
    assert finding.message == "Pod shop/a is bound to node gone, which is not in the input."


def test_nodes_without_a_host_are_found_only_where_vsphere_is_configured():
    on = {"n1": "h1", "n2": ""}
    unknown = findings("unknown-host", a_site(*nodes(3), on=on))
    assert [(finding.node, finding.reason) for finding in unknown] == [("n2", REASON_NO_HOST), ("n3", REASON_NO_VM)]
    assert findings("unknown-host", a_site(*nodes(3))) == []


@pytest.mark.parametrize(
    ("node", "why"),
    [
        pytest.param(
            a_node("n1").spec(providerID="vsphere://42170000-0000-0000-0000-000000000001"),
            "not exactly one VM has the uuid of its providerID",
            id="a providerID",
        ),
        pytest.param(
            a_node("n1").put("status", "nodeInfo", value={"systemUUID": "42170000-0000-0000-0000-000000000001"}),
            "not exactly one VM has the uuid of its systemUUID",
            id="a systemUUID",
        ),
        pytest.param(a_node("n1"), "no uuid and no name is exactly one VM's", id="no uuid"),
    ],
)
def test_a_node_without_a_vm_is_told_by_what_its_vm_was_looked_for(node, why):
    (finding,) = findings("unknown-host", a_site(node, on={}))
    assert finding.message == f"Node n1 is joined to no VM: {why}. Its pods are judged by labels only."


def test_a_node_without_a_uuid_is_told_that_names_are_not_asked():
    (finding,) = findings("unknown-host", replace(a_site(a_node("n1"), on={}), joining=Joining(by_name=False)))
    assert finding.message == (
        "Node n1 is joined to no VM: it has no uuid, and names are not asked (vsphere.joinByName). "
        "Its pods are judged by labels only."
    )


def test_a_node_that_claims_another_nodes_vm_is_found():
    site = replace(a_site(*nodes(2), on={"n1": "h1"}), rivals={"n2": "n1"})
    (finding,) = findings("unknown-host", site)
    assert (finding.node, finding.reason) == ("n2", REASON_CLAIMED)
    assert finding.message == (
        "Node n2 claims the VM that node n1 is, and one VM is one node. The pods of n2 are judged by labels only."
    )


def taint(effect="NoSchedule", key="dedicated", value="db"):
    return {"taints": [{"key": key, "value": value, "effect": effect}]}


TOLERATES_ALL = {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize(
    ("node", "pods", "expected"),
    [
        pytest.param(
            a_node("n1").cordoned(),
            [a_pod("a").on("n1"), a_pod("b").on("n1")],
            [("NodeUnschedulable", "n1", 2)],
            id="a cordoned node with two pods",
        ),
        pytest.param(
            a_node("n1").spec(**{"unschedulable": True, **taint(key="node.kubernetes.io/unschedulable", value="")}),
            [a_pod("a").on("n1")],
            [("NodeUnschedulable", "n1", 1)],
            id="the cordon's own taint makes no second finding",
        ),
        pytest.param(
            a_node("n1").spec(**taint()),
            [a_pod("a").on("n1")],
            [("TaintToleration", "n1", 1)],
            id="an untolerated taint",
        ),
        pytest.param(
            a_node("n1").spec(**taint()), [a_pod("a").on("n1").spec(**TOLERATES_ALL)], [], id="a tolerated taint"
        ),
        pytest.param(
            a_node("n1").cordoned(),
            [a_pod("a").on("n1").spec(**TOLERATES_ALL)],
            [],
            id="a pod that tolerates the cordon",
        ),
        pytest.param(a_node("n1").spec(**taint("NoExecute")), [a_pod("a").on("n1")], [], id="NoExecute is no drift"),
        pytest.param(
            a_node("n1").spec(**taint("PreferNoSchedule")), [a_pod("a").on("n1")], [], id="a preference is no drift"
        ),
        pytest.param(
            a_node("n1").cordoned(),
            [
                a_pod("daemon").on("n1").owned_by("DaemonSet/d"),
                a_pod("static").on("n1").metadata(annotations={"kubernetes.io/config.mirror": "x"}),
                a_pod("done").on("n1").finished("Failed"),
            ],
            [],
            id="DaemonSet, mirror and finished pods never count",
        ),
        pytest.param(a_node("n1").cordoned(), [], [], id="an empty node has nothing that drifts"),
    ],
)
def test_nodes_that_would_not_take_their_pods_now_are_found(node, pods, expected):
    site = a_site(node, *pods)
    drifting = findings("drift", site)
    assert [(finding.rule, finding.node, finding.pods) for finding in drifting] == expected


def test_a_drifting_node_names_its_taint_and_its_pods():
    site = a_site(a_node("n1").spec(**taint()), a_pod("a").on("n1"))
    (finding,) = findings("drift", site)
    assert finding.message == (
        "Node n1 has taint dedicated=db:NoSchedule, and 1 pod that it would not take now runs there: shop/a."
    )
