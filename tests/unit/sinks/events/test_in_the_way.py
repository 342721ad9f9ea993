"""What is said of pods that wait, from the rules themselves, in as few questions and characters as may be."""

from support.build import HOST, a_node, a_pod, a_site, app, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.sinks.events.in_the_way import JUDGED, LONGEST, MOST, InTheWay
from underhost.agents.site.snapshot import Options, Snapshot

DB = term(HOST, app("db"))


def said(site: Snapshot, *pods: str) -> dict[str, str]:
    options = Options(scheduler_names=("default-scheduler",))
    evaluator = Evaluator(options)
    evaluator.update(site)
    return dict(InTheWay(evaluator, options).of(site, [f"shop/{pod}" for pod in pods]))


def test_nodes_are_told_by_what_stands_in_the_way_the_most_first() -> None:
    there = [a_pod(f"db-{at}").labels(app="db").on(f"n{at}") for at in (1, 2)]
    site = a_site(
        *(a_node(f"n{at}") for at in (1, 2)), a_node("n3").tainted("gpu:NoSchedule"), *there, a_pod("new").apart(DB)
    )
    assert said(site, "new") == {
        "shop/new": "2 nodes: InterPodAffinity: db-1 is on n1 and db-2 on n2; "
        "1 node: TaintToleration: taint gpu:NoSchedule."
    }


def test_of_a_pod_that_waits_no_more_or_whose_node_is_free_nothing_is_said() -> None:
    site = a_site(a_node("n1"), a_pod("there").on("n1"), a_pod("new"))
    assert said(site, "there", "gone", "new") == {"shop/new": ""}


def test_equal_pods_are_asked_about_once_and_of_many_different_ones_nothing_is_said() -> None:
    full = a_node("n1").has(cpu="1", pods="9")
    alike = [a_pod(f"a-{at}").needs(cpu="2") for at in range(3)]
    others = [a_pod(f"b-{at}").needs(cpu=f"{at + 3}") for at in range(MOST)]
    found = said(a_site(full, *alike, *others), *(one.name for one in (*alike, *others)))
    assert len(set(found.values())) == MOST
    assert list(found) == ["shop/a-0", "shop/a-1", "shop/a-2", *(f"shop/b-{at}" for at in range(MOST - 1))]


def test_of_a_site_of_many_nodes_nothing_is_asked() -> None:
    tainted = [a_node(f"n{at}").tainted("k:NoSchedule") for at in range(JUDGED + 1)]
    assert said(a_site(*tainted, a_pod("new")), "new") == {}


def test_what_does_not_fit_is_counted() -> None:
    tainted = [a_node(f"n{at:02}").tainted(f"{'long' * 20}-{at:02}:NoSchedule") for at in range(20)]
    [text] = said(a_site(*tainted, a_pod("new")), "new").values()
    assert len(text) <= LONGEST
    assert text.endswith("; 16 more.")


def test_a_pod_of_another_namespace_is_not_told_by_name() -> None:
    everywhere = a_pod("new").apart(term(HOST, app("db"), namespaceSelector={}))
    site = a_site(a_node("n1"), a_pod("secret", "other").labels(app="db").on("n1"), everywhere)
    assert said(site, "new") == {"shop/new": "1 node: InterPodAffinity: a pod of another namespace is on n1."}


def test_the_compiled_site_is_left_as_it_was() -> None:
    vip = a_pod("vip").needs(cpu="3").nominated("n1", 10)
    site = a_site(a_node("n1"), vip, a_pod("new").needs(cpu="2"))
    options = Options(scheduler_names=("default-scheduler",))
    evaluator = Evaluator(options)
    evaluator.update(site)
    before = evaluator.state(site).used.copy()
    InTheWay(evaluator, options).of(site, ["shop/new"])
    assert (evaluator.state(site).used == before).all() and not evaluator.state(site).log
