"""The DRS rules that a site needs."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import HOST, a_node, a_pod, a_site, spread, term
from support.sites.changing import ChangingSite

from underhost.agents.affinity.gathering import gatherings
from underhost.agents.affinity.separation import separations
from underhost.agents.compiled.model import compile
from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.drs.names import owns, rule_name
from underhost.agents.drs.vm_graph import Concerns, vm_graphs
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.evaluate.unsatisfiable import REASON_CONTRADICTION, REASON_TOO_MANY, unsatisfiable_findings
from underhost.agents.site.snapshot import Options
from underhost.schemas.shares import Shares
from underhost.schemas.vsphere import Host

HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = "topology.kubernetes.io/zone"
DB, WEB = {"app": "db"}, {"app": "web"}
FOUR_HOSTS = [Host(id=f"h{n}", name=f"esx-{n}", cluster="C0") for n in range(1, 5)]


def nodes(count):
    """Two to a rack, none in a zone."""
    return [a_node(f"n{at}").labels(rack=f"r{(at + 1) // 2}") for at in range(1, count + 1)]


def one_a_host(count):
    return {f"n{at}": f"h{at}" for at in range(1, count + 1)}


def desired_rules(site, options):
    """The rules, and the findings that every separation of the site makes."""
    model = compile(site, options)
    near = gatherings(model.classes, options.host_keys)
    graphs = vm_graphs(site, model, Concerns(model, separations(model.selectors), near))
    return RulesByCluster(options).of(site, model), unsatisfiable_findings(site, graphs, near)


def rules_of(site):
    rules, _ = desired_rules(site, Options())
    return [(rule.type, rule.vms) for rule in rules]


def db(at, node, key=HOST):
    return a_pod(f"db-{at}").on(node).labels(DB).owned_by("StatefulSet/db").apart(term(key, DB))


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [db(0, "n1"), db(1, "n2"), db(2, "n3")],
            [("anti-affinity", ["vm-n1", "vm-n2", "vm-n3"])],
            id="three replicas that keep apart by hostname are one rule",
        ),
        pytest.param(
            [db(0, "n1", HOST_KEY), db(1, "n2", HOST_KEY)],
            [("anti-affinity", ["vm-n1", "vm-n2"])],
            id="a term on the host key asks for the same",
        ),
        pytest.param(
            [db(0, "n1", "rack"), db(1, "n2", "rack"), db(2, "n3", "rack")],
            [("anti-affinity", ["vm-n1", "vm-n3"]), ("anti-affinity", ["vm-n2", "vm-n3"])],
            id="a term on a rack keeps the racks apart, not the machines of one rack",
        ),
        pytest.param([db(0, "n1", ZONE), db(1, "n2", ZONE)], [], id="a key that no node carries asks nothing"),
        pytest.param([db(0, "n1")], [], id="one replica needs no rule"),
        pytest.param(
            [a_pod(f"d-{at}").on(f"n{at}").labels(DB).owned_by("DaemonSet/d").apart(term(HOST, DB)) for at in (1, 2)],
            [],
            id="a DaemonSet is on every node: no machine is moved for it",
        ),
        pytest.param([db(0, "n1"), db(1, "n1")], [], id="two replicas on one node are no matter of virtual machines"),
        pytest.param([db(0, "n1"), db(1, "")], [], id="a pending replica has no virtual machine"),
        pytest.param([db(0, "n1"), db(1, "gone")], [], id="a replica on an absent node has no virtual machine"),
        pytest.param([a_pod("db-0").on("n1").labels(DB), a_pod("db-1").on("n2").labels(DB)], [], id="no term, no rule"),
        pytest.param(
            [
                a_pod("web-0").on("n1").labels(WEB).apart(term(HOST, DB)),
                a_pod("db-0").on("n2").labels(DB),
                a_pod("db-1").on("n3").labels(DB),
            ],
            [("anti-affinity", ["vm-n1", "vm-n2"]), ("anti-affinity", ["vm-n1", "vm-n3"])],
            id="web apart from every db never keeps the dbs apart from one another",
        ),
        pytest.param(
            [
                db(0, "n1"),
                db(1, "n2"),
                a_pod("cache-0").on("n1").labels(app="cache").apart(term(HOST, {"app": "cache"})),
                a_pod("cache-1").on("n2").labels(app="cache").apart(term(HOST, {"app": "cache"})),
            ],
            [("anti-affinity", ["vm-n1", "vm-n2"])],
            id="two applications on the same machines share one rule",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).spreads(spread(HOST, DB)),
                a_pod("db-1").on("n2").labels(DB).spreads(spread(HOST, DB)),
            ],
            [("anti-affinity", ["vm-n1", "vm-n2"])],
            id="a DoNotSchedule spread keeps its pods apart",
        ),
        pytest.param(
            [
                a_pod("db-0").on("n1").labels(DB).spreads(spread(HOST, DB, soft=True)),
                a_pod("db-1").on("n2").labels(DB).spreads(spread(HOST, DB, soft=True)),
            ],
            [],
            id="a ScheduleAnyway spread is a preference",
        ),
        pytest.param(
            [db(0, "n1"), a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)).deleted()],
            [("anti-affinity", ["vm-n1", "vm-n2"])],
            id="a terminating pod counts for anti-affinity",
        ),
        pytest.param(
            [db(0, "n1"), a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)).finished()],
            [],
            id="a finished pod counts for nothing",
        ),
        pytest.param(
            [db(0, "n1"), a_pod("db-0", "other").on("n2").labels(DB)],
            [],
            id="a term without namespaces stays in its own",
        ),
        pytest.param(
            [
                a_pod("web-0").on("n1").labels(WEB).near(term(HOST_KEY, DB)),
                a_pod("db-0").on("n2").labels(DB),
            ],
            [("affinity", ["vm-n1", "vm-n2"])],
            id="required affinity by host keeps two machines together",
        ),
        pytest.param(
            [
                a_pod("web-0").on("n1").labels(WEB).near(term(HOST_KEY, DB)),
                a_pod("db-0").on("n1").labels(DB),
                a_pod("db-1").on("n2").labels(DB),
            ],
            [],
            id="affinity that the own node meets needs no rule",
        ),
        pytest.param(
            [
                a_pod("web-0").on("n1").labels(WEB).near(term(HOST, DB)),
                a_pod("db-0").on("n2").labels(DB),
            ],
            [],
            id="affinity by node is no matter of hosts",
        ),
    ],
)
def test_rules_follow_what_kubernetes_requires(objects, expected):
    site = a_site(*nodes(4), *objects, on=one_a_host(4))
    rules, findings = desired_rules(site, Options())
    assert [(rule.type, rule.vms) for rule in rules] == expected
    assert findings == []
    assert all(rule.enabled and not rule.mandatory and rule.cluster == "C0" for rule in rules)


def test_affinity_stays_with_the_machine_that_shares_the_host_already():
    site = a_site(
        *nodes(3),
        a_pod("web-0").on("n1").labels(WEB).near(term(HOST_KEY, DB)),
        a_pod("db-0").on("n2").labels(DB),
        a_pod("db-1").on("n3").labels(DB),
        on={"n1": "h1", "n2": "h2", "n3": "h1"},
    )
    assert rules_of(site) == [("affinity", ["vm-n1", "vm-n3"])]


def test_replicas_that_must_share_a_host_keep_their_machines_together():
    pair = [a_pod(f"db-{at}").on(f"n{at}").labels(DB).near(term(HOST_KEY, DB)) for at in (1, 2)]
    assert rules_of(a_site(*nodes(2), *pair, on=one_a_host(2))) == [("affinity", ["vm-n1", "vm-n2"])]
    assert rules_of(a_site(*nodes(2), pair[0], on=one_a_host(2))) == []


@pytest.mark.parametrize(
    ("key", "kept", "said"),
    [
        pytest.param(HOST_KEY, "anti-affinity", "no DRS rule is written for the affinity.", id="both of the host"),
        pytest.param(HOST, "affinity", "the DRS rules keep the affinity.", id="apart by node, which only we extend"),
    ],
)
def test_pods_that_must_share_a_host_and_be_apart_are_found_and_kubernetes_wins(key, kept, said):
    torn = a_pod("web-0").on("n1").labels(WEB).near(term(HOST_KEY, DB)).apart(term(key, DB))
    site = a_site(*nodes(2), torn, a_pod("db-0").on("n2").labels(DB), on=one_a_host(2))
    rules, (finding,) = desired_rules(site, Options())
    assert [rule.type for rule in rules] == [kept]
    assert (finding.severity, finding.reason, finding.pod) == ("unsatisfiable", REASON_CONTRADICTION, "shop/db-0")
    assert (finding.peers, finding.message.endswith(said)) == (["shop/web-0"], True)


def test_machines_that_cannot_all_be_apart_stay_where_few_pairs_share_a_host_now():
    pair = [a_pod(f"a-{at}").on(f"n{at}").labels(app="a").apart(term(HOST, {"app": "a"})) for at in (3, 4)]
    away = [a_pod(f"b-{at}").on(f"n{at}").labels(app="b").apart(term(HOST, {"app": "a"})) for at in (1, 2)]
    site = a_site(*nodes(4), *pair, *away, on={"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2"}, hosts=FOUR_HOSTS[:2])
    assert rules_of(site) == [("anti-affinity", ["vm-n1", "vm-n3"]), ("anti-affinity", ["vm-n2", "vm-n3"])]


def test_machines_of_two_clusters_are_never_in_one_rule():
    hosts = [
        Host(id="h1", name="a", cluster="A"),
        Host(id="h2", name="b", cluster="A"),
        Host(id="h3", name="c", cluster="B"),
    ]
    site = a_site(*nodes(3), db(0, "n1"), db(1, "n2"), db(2, "n3"), on=one_a_host(3), hosts=hosts)
    rules, findings = desired_rules(site, Options())
    assert [(rule.cluster, rule.vms) for rule in rules] == [("A", ["vm-n1", "vm-n2"])]
    assert findings == []


def test_a_machine_whose_host_is_unknown_is_in_no_rule():
    site = a_site(*nodes(3), db(0, "n1"), db(1, "n2"), db(2, "n3"), on={"n1": "h1", "n2": "h2", "n3": ""})
    assert rules_of(site) == [("anti-affinity", ["vm-n1", "vm-n2"])]


def test_more_replicas_than_usable_hosts_keep_as_many_apart_as_fit_and_are_found():
    hosts = [*FOUR_HOSTS[:3], Host(id="h4", name="esx-4", cluster="C0", state="maintenance")]
    site = a_site(
        *nodes(5),
        *(db(at, f"n{at + 1}") for at in range(5)),
        on={"n1": "h1", "n2": "h2", "n3": "h3", "n4": "h1", "n5": "h2"},
        hosts=hosts,
    )
    rules, (finding,) = desired_rules(site, Options())
    assert [rule.vms for rule in rules] == [["vm-n1", "vm-n2", "vm-n3"], ["vm-n4", "vm-n5"]]
    assert (finding.severity, finding.rule, finding.reason) == ("unsatisfiable", "PhysicalHost", REASON_TOO_MANY)
    assert (finding.pod, finding.peers) == ("shop/db-0", ["shop/db-1", "shop/db-2", "shop/db-3", "shop/db-4"])
    assert finding.message == (
        "shop/db-0, shop/db-1 and 3 more run on 5 VMs that must all be apart, but vSphere cluster C0 has 3 usable "
        "hosts: some must share one. The DRS rules keep apart as many as fit."
    )


@pytest.mark.parametrize("outside", [1, 3, 5])
def test_a_machine_without_the_key_hides_no_group_that_is_too_large(outside):
    made = [a_node(f"n{at}") if at == outside else a_node(f"n{at}").zone(f"z{at}") for at in range(1, 6)]
    pods = [db(at, f"n{at}", ZONE) for at in range(1, 6)]
    site = a_site(*made, *pods, on=one_a_host(3) | {"n4": "h1", "n5": "h2"}, hosts=FOUR_HOSTS[:3])
    _, (finding,) = desired_rules(site, Options())
    assert finding.reason == REASON_TOO_MANY
    assert [finding.pod, *finding.peers] == [f"shop/db-{at}" for at in range(1, 6) if at != outside]
    assert [one for one in check(site, Options()).findings if one.severity == "unsatisfiable"] == [finding]


def test_an_application_called_like_the_second_rule_of_another_keeps_its_name():
    other = [a_pod(f"x-{at}").on(f"n{at}").labels(WEB).owned_by("StatefulSet/db.2") for at in (4, 5)]
    site = a_site(
        *nodes(5),
        *(db(at, f"n{at}", "rack") for at in (1, 2, 3)),
        *(pod.apart(term("rack", WEB)) for pod in other),
        on=one_a_host(4) | {"n5": "h1"},
        hosts=FOUR_HOSTS,
    )
    rules, _ = desired_rules(site, Options())
    assert [(rule.name.rpartition("-")[0], rule.vms) for rule in rules] == [
        ("underhost-default-shop.db", ["vm-n1", "vm-n3"]),
        ("underhost-default-shop.db.2", ["vm-n4", "vm-n5"]),
        ("underhost-default-shop.db.3", ["vm-n2", "vm-n3"]),
    ]


def test_two_groups_too_large_for_the_hosts_with_one_first_pod_are_one_finding():
    gold = {"tier": "gold"}
    site = a_site(
        *nodes(6),
        a_pod("a").on("n1").labels(DB).labels(gold).apart(term(HOST, DB), term(HOST, gold)),
        *(a_pod(f"b-{at}").on(f"n{at}").labels(DB).apart(term(HOST, DB)) for at in (2, 3)),
        *(a_pod(f"c-{at}").on(f"n{at}").labels(gold).apart(term(HOST, gold)) for at in (4, 5, 6)),
        on={"n1": "h1", "n2": "h2", "n3": "h1", "n4": "h2", "n5": "h1", "n6": "h2"},
        hosts=FOUR_HOSTS[:2],
    )
    _, (finding,) = desired_rules(site, Options())
    assert (finding.reason, finding.pod) == (REASON_TOO_MANY, "shop/a")
    assert finding.peers == ["shop/b-2", "shop/b-3", "shop/c-4", "shop/c-5", "shop/c-6"]
    assert finding.message == (
        "shop/a, shop/c-4 and 2 more run on 4 VMs that must all be apart, but vSphere cluster C0 has 2 usable hosts: "
        "some must share one. The DRS rules keep apart as many as fit. The same is true of another such group with "
        "shop/a."
    )


def test_pods_apart_from_another_application_need_a_host_each_where_vms_have_both():
    away = [a_pod(f"db-{at}").on(f"n{at}").labels(DB).apart(term(HOST, WEB)) for at in (1, 2)]
    web = [a_pod(f"web-{at}").on(f"n{at}").labels(WEB) for at in (1, 2)]
    site = a_site(*nodes(2), *away, *web, on={"n1": "h1", "n2": "h1"}, hosts=FOUR_HOSTS[:1])
    _, expected = desired_rules(site, Options())
    assert [(one.reason, one.pod, one.peers) for one in expected] == [
        (REASON_TOO_MANY, "shop/db-1", ["shop/db-2", "shop/web-1", "shop/web-2"])
    ]
    assert [one for one in check(site, Options()).findings if one.severity == "unsatisfiable"] == expected


def test_one_replica_needs_no_usable_host():
    hosts = [Host(id="h1", name="esx-1", cluster="C0", state="maintenance")]
    assert desired_rules(a_site(*nodes(1), db(0, "n1"), on={"n1": "h1"}, hosts=hosts), Options()) == ([], [])


def test_check_finds_what_the_rules_cannot_keep():
    for pods, on in ((5, ["h1", "h2", "h3", "h1", "h2"]), (3, ["h1", "h2", "h3"]), (2, ["h1", "h1"])):
        site = a_site(
            *nodes(pods),
            *(db(at, f"n{at + 1}") for at in range(pods)),
            on={f"n{at + 1}": host for at, host in enumerate(on)},
            hosts=FOUR_HOSTS[:3],
        )
        _, expected = desired_rules(site, Options())
        report = check(site, Options())
        assert [one for one in report.findings if one.severity == "unsatisfiable"] == expected
        assert len(expected) == (pods == 5)


def test_a_spread_over_more_machines_than_hosts_is_split_but_not_unsatisfiable():
    pods = [a_pod(f"db-{at}").on(f"n{at + 1}").labels(DB).spreads(spread(HOST, DB)) for at in range(3)]
    site = a_site(*nodes(3), *pods, on={"n1": "h1", "n2": "h2", "n3": "h1"}, hosts=FOUR_HOSTS[:2])
    rules, findings = desired_rules(site, Options())
    assert [rule.vms for rule in rules] == [["vm-n1", "vm-n2"]]
    assert findings == []


def test_rules_are_named_after_the_application_and_keep_it_while_members_change():
    small = a_site(*nodes(4), db(0, "n1"), db(1, "n2"), on=one_a_host(4), site="prod-a")
    large = a_site(*nodes(4), db(0, "n4"), db(1, "n2"), db(2, "n3"), on=one_a_host(4), site="prod-a")
    (before,), _ = desired_rules(small, Options())
    (after,), _ = desired_rules(large, Options())
    assert before.name == after.name
    assert before.name.startswith("underhost-prod-a-shop.db-")


def test_a_site_owns_only_rules_of_its_own_name():
    name = rule_name("a-b", "shop.db")
    assert owns("a-b", name)
    assert not owns("a", name)
    assert not owns("a-b", "underhost-a-b-shop.db")
    assert not owns("a-b", "operators-rule")


def test_a_long_name_is_cut_to_what_vcenter_takes():
    name = rule_name("s" * 40, "n" * 63 + "." + "o" * 63)
    assert len(name) == 80
    assert owns("s" * 40, name)
    assert name != rule_name("s" * 40, "n" * 63 + "." + "o" * 62 + "p")


GRAPH = st.tuples(st.integers(2, 7), st.integers(0, 2**21 - 1))


@given(GRAPH)
@settings(max_examples=120)
def test_the_rules_allow_exactly_the_placements_that_keep_every_required_pair_apart(graph):
    size, chosen = graph
    every = list(itertools.combinations(range(size), 2))
    edges = [pair for at, pair in enumerate(every) if chosen >> at & 1]
    # pod i asks to be apart from j by a label that only j has: one term for each edge, no clique is given away
    pods = [
        a_pod(f"p{i}").on(f"n{i + 1}").labels(id=f"i{i}").spec(**_terms([j for a, j in edges if a == i]))
        for i in range(size)
    ]
    site = a_site(*nodes(size), *pods, on=one_a_host(size))
    rules, findings = desired_rules(site, Options())
    assert findings == []
    members = [[int(vm.removeprefix("vm-n")) - 1 for vm in rule.vms] for rule in rules]
    for hosts in itertools.product(range(3), repeat=size):
        wanted = all(hosts[a] != hosts[b] for a, b in edges)
        kept = all(len({hosts[vm] for vm in rule}) == len(rule) for rule in members)
        assert kept == wanted
    assert {pair for rule in members for pair in itertools.combinations(rule, 2)} == set(edges)


def _terms(others):
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"id": f"i{other}"}}}
        for other in others
    ]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}} if terms else {}


@given(st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_the_input_does_not_matter(rng: random.Random):
    objects = [
        *nodes(6),
        *(db(at, f"n{at + 1}") for at in range(4)),
        *(a_pod(f"web-{at}").on(f"n{at + 2}").labels(WEB).apart(term(HOST, DB)) for at in range(4)),
        a_pod("near").on("n6").labels(app="near").near(term(HOST_KEY, WEB)),
    ]
    on = {"n1": "h1", "n2": "h2", "n3": "h3", "n4": "h4", "n5": "h1", "n6": "h2"}
    expected = desired_rules(a_site(*objects, on=on), Options())
    rng.shuffle(objects)
    shuffled = list(on.items())
    rng.shuffle(shuffled)
    assert desired_rules(a_site(*objects, on=dict(shuffled)), Options()) == expected


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(), id="namespaces by themselves"),
        pytest.param(Options(cross_namespace="act"), id="terms act across namespaces"),
        pytest.param(Options(shares=Shares(drs_rules=1, owner=50)), id="some are beyond their share"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_after_each_change_the_rules_are_those_of_a_site_compiled_anew(seed, options):
    site = ChangingSite(random.Random(seed))
    evaluator, kept = Evaluator(options), RulesByCluster(options)
    for at in range(60):
        said = site.exchange_nodes() if at % 6 == 5 else site.change()
        now = site.snapshot
        quorums = evaluator.quorums(now)
        anew = RulesByCluster(options)
        rules = anew.of(now, compile(now, options), quorums)
        assert (kept.of(now, evaluator.state(now).model, quorums), kept.left_out) == (rules, anew.left_out), said


def test_a_moved_pod_makes_no_rule_of_another_namespace_anew():
    other = [a_pod(f"db-{at}", "other").on(f"n{at + 1}").labels(DB).apart(term(HOST, DB)) for at in range(2)]
    before = a_site(*nodes(4), db(0, "n1"), db(1, "n2"), *other, on=one_a_host(4))
    after = a_site(*nodes(4), db(0, "n1"), db(1, "n3"), *other, on=one_a_host(4))
    after = replace(
        after, pods={key: pod if key == "shop/db-1" else before.pods[key] for key, pod in after.pods.items()}
    )
    after = replace(after, nodes=before.nodes, node_hosts=before.node_hosts, hosts=before.hosts)
    evaluator, kept = Evaluator(Options()), RulesByCluster(Options())
    first = kept.of(before, evaluator.state(before).model)
    second = kept.of(after, evaluator.state(after).model)
    assert [rule.vms for rule in first] == [["vm-n1", "vm-n2"], ["vm-n1", "vm-n2"]]
    assert [rule.vms for rule in second] == [["vm-n1", "vm-n2"], ["vm-n1", "vm-n3"]]
    assert second[0] is first[0]


def test_a_change_that_moves_no_pod_reads_none():
    hosts = [Host(id="h1", name="esx-1", cluster="C0"), Host(id="h2", name="esx-2", cluster="C0")]
    objects = [*nodes(2), db(0, "n1"), db(1, "n2")]
    site = a_site(*objects, on={"n1": "h1", "n2": "h2"}, hosts=hosts)
    evaluator, kept = Evaluator(Options()), RulesByCluster(Options())
    first = kept.of(site, evaluator.state(site).model)
    other = replace(site, pods=Counting({**site.pods, "shop/more": a_pod("more").build()}))
    model = evaluator.state(other).model
    other.pods.asked.clear()
    assert kept.of(other, model) == first != []
    assert other.pods.asked == []


class Counting(dict):
    """Pods that note which of them are asked for."""

    def __init__(self, pods):
        super().__init__(pods)
        self.asked = []

    def __getitem__(self, name):
        self.asked.append(name)
        return super().__getitem__(name)
