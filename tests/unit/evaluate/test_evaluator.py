"""A resident evaluator must say what a check that starts anew says, whatever has changed in between."""

import random
from dataclasses import replace

import pytest
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, nodes, spread, term
from support.sites.changing import ChangingSite

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.pending import decide
from underhost.agents.site.changes import Tracked, changed_keys
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import BadObjectError

OPTIONS = [Options(), Options(physical_host="required"), Options(host_keys=("of-no-term",))]


@pytest.mark.parametrize("seed", range(10))
def test_after_each_of_2000_changes_the_report_is_that_of_a_full_check(seed: int) -> None:
    site, options = ChangingSite(random.Random(seed), hosts=seed % 5 > 0), OPTIONS[seed % 3]
    resident = Evaluator(options)
    said: list[str] = []
    for _ in range(200):
        fresh = replace(site.snapshot)
        report = resident.update(site.snapshot)
        assert report == check(fresh, options), said[-3:]
        assert list(report.budgets) == sorted(report.budgets)
        if site.pick.random() < 0.2:
            assumed = _some_assumed(site)
            assert resident.decide(site.snapshot, assumed) == decide(replace(fresh), options, assumed), said[-3:]
        said.append(site.change())


def _some_assumed(site: ChangingSite) -> dict[str, str]:
    waiting = [key for key, pod in site.snapshot.pods.items() if not pod.spec.node_name]
    return {key: site.pick.choice(sorted(site.snapshot.nodes)) for key in waiting if site.pick.random() < 0.3}


@pytest.mark.parametrize("seed", range(3))
def test_given_the_changed_keys_it_says_the_same_though_it_missed_snapshots(seed: int) -> None:
    site, resident = ChangingSite(random.Random(100 + seed)), Evaluator(Options())
    site.snapshot = _viewed(site.snapshot, site.snapshot)
    for _ in range(80):
        if site.pick.random() < 0.8:
            assert resident.update(site.snapshot) == check(replace(site.snapshot), Options())
        before = site.snapshot
        site.change()
        site.snapshot = _viewed(before, site.snapshot)


def test_as_a_second_node_joins_what_is_said_of_replicas_on_the_only_one_changes() -> None:
    replicas = [a_pod(name).on("n1").owned_by("ReplicaSet/web") for name in ("web-0", "web-1")]
    site = a_site(a_node("n1"), *replicas)
    resident = Evaluator(Options())
    endings = []
    for names in (["n1"], ["n1", "n2"], ["n1"]):
        site = replace(site, nodes=a_site(*map(a_node, names)).nodes)
        (finding,) = resident.update(site).findings
        endings.append(finding.message.rpartition(", and ")[2])
    assert endings == ["there is no other node.", "no rule keeps them apart.", "there is no other node."]


def test_of_views_only_the_keys_that_they_name_are_looked_at() -> None:
    first = Tracked({"a": 1, "b": 2})
    second = Tracked({"a": 1, "b": 3, "c": 4}, first, ["b"])
    third = Tracked({"a": 1, "b": 3}, second, ["c"])
    assert changed_keys(first, second) == ["b"]  # nobody told of c
    assert sorted(changed_keys(first, third)) == ["b"]
    assert changed_keys(second, third) == ["c"]
    assert changed_keys(third, third) == []


def test_where_a_view_does_not_know_the_mapping_before_all_keys_are_compared() -> None:
    first, other = Tracked({"a": "x", "b": "y"}), {"a": "x", "b": "z"}
    assert changed_keys(other, Tracked({"a": "x", "b": "y"}, first, [])) == ["b"]
    assert changed_keys(other, first) == ["b"]
    late = first
    for _ in range(20):
        late = Tracked({"a": "x", "c": "y"}, late, [])
    assert changed_keys(first, late) == ["c", "b"]


@pytest.mark.parametrize("seed", range(4))
def test_begun_at_any_moment_it_follows_as_one_that_was_there_from_the_start(seed: int) -> None:
    site, options = ChangingSite(random.Random(200 + seed), hosts=seed > 0), OPTIONS[seed % 3]
    for step in range(100):
        if step % 5 == 0:
            resident = Evaluator(options)
        assert resident.update(site.snapshot) == check(replace(site.snapshot), options)
        site.change()


def _viewed(one: Snapshot, other: Snapshot) -> Snapshot:
    """The other snapshot as one that is taken after the first from what keeps the site's rows."""
    views = {}
    for name in ("nodes", "pods", "namespaces", "services", "workloads", "budgets", "node_hosts"):
        before, now = getattr(one, name), getattr(other, name)
        differing = {key for key in {*before, *now} if before.get(key) is not now.get(key)}
        if differing or not isinstance(before, Tracked):
            views[name] = Tracked(now, before if isinstance(before, Tracked) else None, differing)
    return replace(other, **views)


def three_nodes_on_two_hosts() -> Snapshot:
    db = a_pod("db").labels(app="db").apart(term(HOST, app("db")))
    even = a_pod("even").labels(app="even").spreads(spread(ZONE, app("even")))
    return a_site(
        *nodes("n1", "n2"),
        a_node("n3").zone("a"),
        db.on("n1"),
        even.on("n3"),
        a_pod("other").on("n2"),
        a_pod("later"),
        on={"n1": "h1", "n2": "h2", "n3": "h2"},
    )


def test_common_changes_are_followed_without_compiling_the_site_anew() -> None:
    snapshot, resident = three_nodes_on_two_hosts(), Evaluator(Options())
    resident.update(snapshot)
    second = a_pod("db-2").labels(app="db").apart(term(HOST, app("db"))).on("n1")
    own_class = a_pod("new").labels(app="even").ports({"containerPort": 80, "hostPort": 80}).on("n2")
    for pod in (second, second.on("n2"), own_class, own_class.deleted()):
        snapshot = replace(snapshot, pods={**snapshot.pods, pod.key: pod.build()})
        assert resident.update(replace(snapshot)) == check(replace(snapshot), Options())
    for node in (a_node("n3").zone("b"), a_node("n3").cordoned(), a_node("n4").zone("a")):
        snapshot = replace(snapshot, nodes={**snapshot.nodes, node.name: node.build()})
        assert resident.update(replace(snapshot)) == check(replace(snapshot), Options())
    assert resident.rebuilt == 1


def test_a_node_whose_claim_of_a_vm_is_refused_or_free_again_is_judged_anew() -> None:
    free = three_nodes_on_two_hosts()
    free = replace(free, node_hosts={name: row for name, row in free.node_hosts.items() if name != "n2"})
    resident = Evaluator(Options())
    for snapshot in (free, replace(free, rivals={"n2": "n1"}), replace(free, rivals={"n2": "n3"}), replace(free)):
        assert resident.update(snapshot) == check(replace(snapshot), Options())
    assert resident.rebuilt == 1


def test_a_pod_that_comes_too_near_is_found_and_forgotten_when_it_leaves() -> None:
    snapshot, resident = three_nodes_on_two_hosts(), Evaluator(Options())
    assert resident.update(snapshot).findings == []
    second = a_pod("db-2").labels(app="db").apart(term(HOST, app("db"))).on("n1")
    near = replace(snapshot, pods={**snapshot.pods, second.key: second.build()})
    [finding] = resident.update(near).findings
    assert (finding.rule, finding.pod, finding.peers) == ("InterPodAffinity", "shop/db", ["shop/db-2"])
    assert resident.update(replace(snapshot)).findings == []


def test_a_picture_in_which_no_object_has_changed_is_not_judged_again() -> None:
    site, evaluator = three_nodes_on_two_hosts(), Evaluator(Options())
    report = evaluator.update(site)
    assert evaluator.update(replace(site, offsets={"outcomes": 7})) is report


def test_a_report_stays_as_it_was_when_the_site_changes() -> None:
    site, resident = ChangingSite(random.Random(11)), Evaluator(Options())
    given = []
    for _ in range(60):
        report = resident.update(site.snapshot)
        given.append((report.findings, [*report.findings]))
        site.change()
    assert len({len(findings) for findings, _ in given}) > 5  # some came and went
    assert [findings for findings, _ in given] == [copy for _, copy in given]


def test_where_no_finding_came_or_went_the_list_is_the_same_one() -> None:
    site = a_site(a_node("n1"), a_node("n2"), a_pod("a").on("n3"))
    resident = Evaluator(Options())
    first = resident.update(site).findings
    more = replace(site, nodes={**site.nodes, **a_site(a_node("n4")).nodes})
    assert [finding.pod for finding in first] == ["shop/a"]
    assert resident.update(more).findings is first


def test_a_wrong_object_is_named_every_time_and_the_next_good_picture_is_judged() -> None:
    good, resident = three_nodes_on_two_hosts(), Evaluator(Options())
    resident.update(good)
    wrong = a_pod("wrong").needs(cpu="much").on("n1")
    bad = replace(good, pods={**good.pods, wrong.key: wrong.build()})
    for _ in range(2):
        with pytest.raises(BadObjectError, match=r"^Pod shop/wrong: spec.containers\[0\]"):
            resident.update(replace(bad))
    assert resident.update(replace(good)) == check(replace(good), Options())


def test_preferences_are_judged_by_the_full_check() -> None:
    options, near = Options(drift=True), a_pod("near").prefers_near(10, term(HOST, app("db"))).on("n2")
    snapshot = three_nodes_on_two_hosts()
    snapshot = replace(snapshot, pods={**snapshot.pods, near.key: near.build()})
    report = Evaluator(options).update(snapshot)
    assert [(finding.severity, finding.pod) for finding in report.findings] == [("drift", "shop/near")]
    assert report == check(replace(snapshot), options)


def test_without_a_pod_to_place_nothing_is_decided_and_a_waiting_one_is_placed() -> None:
    resident = Evaluator(Options(scheduler_names=("underhost",)))
    assert resident.decide(three_nodes_on_two_hosts()) == []
    assert [(one.pod, one.node) for one in Evaluator(Options()).decide(three_nodes_on_two_hosts())] == [
        ("shop/later", "n1")
    ]


def test_classes_of_pods_long_gone_are_forgotten() -> None:
    snapshot, resident = three_nodes_on_two_hosts(), Evaluator(Options())
    resident.update(snapshot)
    for number in range(3000):
        pod = a_pod("job", f"ns-{number}").labels(app="db").apart(term(HOST, app("db"))).on("n1").build()
        resident.update(replace(snapshot, pods={**snapshot.pods, f"ns-{number}/job": pod}))
    last = replace(snapshot)
    assert resident.update(last) == check(replace(snapshot), Options())
    assert resident.rebuilt == 2
    assert len(resident.state(last).model.classes) < 3000
