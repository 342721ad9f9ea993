import numpy as np
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, term

from underhost.agents.compiled.counters import Counter
from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.model import compile
from underhost.agents.compiled.state import State
from underhost.agents.site.selectors import SelectorTable, integer, matches_value
from underhost.agents.site.snapshot import Options


def test_labels_that_no_selector_names_do_not_make_a_class() -> None:
    pods = [
        a_pod(f"web-{i}")
        .put("metadata", "labels", value={"app": "web", "pod-name": f"web-{i}"})
        .apart(term(HOST, app("web")))
        .on("n1")
        for i in range(5)
    ]
    model = compile(a_site(a_node("n1"), *pods), Options())
    assert [cls.labels for cls in model.classes] == [{"app": "web"}]
    assert model.pods_of(0).tolist() == [0, 1, 2, 3, 4]


def test_pods_that_differ_only_in_size_are_one_class_with_two_requests() -> None:
    model = compile(
        a_site(a_node("n1"), a_pod("a").needs(cpu="1").on("n1"), a_pod("b").needs(cpu="2").on("n1")), Options()
    )
    assert (len(model.classes), [request.fit for request in model.requests]) == (1, [{"cpu": 1000}, {"cpu": 2000}])


def test_finished_pods_are_left_out_and_pods_on_absent_nodes_are_unbound() -> None:
    pods = [a_pod("done").on("n1").finished("Failed"), a_pod("lost").on("gone"), a_pod("web").on("n1"), a_pod("new")]
    model = compile(a_site(a_node("n1"), *pods), Options())
    assert model.running.keys == ["shop/web"]
    assert [pod.key for pod in model.unbound] == ["shop/lost"]
    assert [pod.key for pod in model.pending] == ["shop/new"]


def test_nodes_are_sorted_by_name_and_their_resources_are_rows() -> None:
    model = compile(a_site(a_node("n2").has(**{"example.com/gpu": "2"}), a_node("n10")), Options())
    assert model.nodes.names == ["n10", "n2"]
    assert model.nodes.allocatable[model.nodes.row("example.com/gpu")].tolist() == [0, 2]
    assert model.nodes.allocatable[0].tolist() == [4000, 4000]


def test_domains_of_a_shared_and_of_a_unique_key() -> None:
    zones = Domains(ZONE, ["a", None, "", "a"])
    assert (zones.codes.tolist(), zones.values, zones.missing, zones.unique) == ([0, -1, 1, 0], ["a", ""], True, False)
    names = Domains(HOST, ["x", None, "y"])
    assert (names.codes.tolist(), names.size, names.unique) == ([0, -1, 2], 3, True)


def test_a_counter_follows_pods_that_come_and_go_whenever_it_is_built() -> None:
    here = State(compile(a_site(a_node("n1").zone("a"), a_node("n2").zone("b"), a_pod("web").on("n1")), Options()))
    zones = here.model.topology.of(ZONE)
    early = here.counter(zones, here.weights({0: 1}))
    here.add(0, 0, 1)
    here.add(0, 0, 0, -1)
    late = here.counter(zones, here.weights({0: 1}), np.array([True, True]), "another mask")
    assert early.values().tolist() == late.values().tolist() == [0, 1]
    assert here.pods.tolist() == [0, 1]


def test_a_counter_leaves_out_nodes_that_its_mask_does_not_have() -> None:
    here = State(compile(a_site(a_node("n1").zone("a"), a_node("n2").zone("b"), a_pod("web").on("n1")), Options()))
    masked = here.counter(here.model.topology.of(ZONE), here.weights({0: 1}), np.array([False, True]), "only n2")
    assert masked.values().tolist() == [0, 0]
    here.add(0, 0, 0)
    here.add(0, 0, 1)
    assert masked.values().tolist() == [0, 1]
    assert masked.share(0, slice(None)).tolist() == [0, 1]


def test_equal_counters_are_one() -> None:
    here = State(compile(a_site(a_node("n1"), a_pod("web").on("n1")), Options()))
    zones = here.model.topology.of(HOST)
    assert here.counter(zones, here.weights({0: 1})) is here.counter(zones, here.weights({0: 1}))
    assert here.counter(zones, here.weights({0: 1})) is not here.counter(zones, here.weights({0: 2}))


def test_a_pods_own_share_is_what_it_counts_where_it_runs() -> None:
    here = State(compile(a_site(a_node("n1").zone("a"), a_node("n2"), a_pod("web").on("n1")), Options()))
    counter: Counter = here.counter(here.model.topology.of(ZONE), here.weights({0: 3}))
    assert counter.at(slice(None)).tolist() == [3, 0]
    assert counter.share(0, slice(None)).tolist() == [3, 0]
    assert counter.share(7, slice(None)).tolist() == [0, 0]


def test_selectors_are_deduplicated_and_matched_through_their_first_equality() -> None:
    table = SelectorTable()
    web = table.add(frozenset({"shop"}), (("app", "In", ("web",)), ("tier", "Exists", ())))
    every = table.add(None, ())
    assert table.add(frozenset({"shop"}), (("app", "In", ("web",)), ("tier", "Exists", ()))) is web
    matched = table.match(
        [("shop", {"app": "web", "tier": ""}), ("shop", {"app": "web"}), ("other", {"app": "web", "tier": ""})]
    )
    assert (web.classes, every.classes) == ((0,), (0, 1, 2))
    assert [[one.id for one in mine] for mine in matched] == [[0, 1], [1], [1]]


def test_integers_are_read_as_go_reads_them() -> None:
    read = {text: integer(text) for text in ("5", "+5", "-5", "007", " 5", "5_0", "1.5", "", "9223372036854775808")}
    assert read == {
        "5": 5,
        "+5": 5,
        "-5": -5,
        "007": 7,
        " 5": None,
        "5_0": None,
        "1.5": None,
        "": None,
        "9223372036854775808": None,
    }
    assert matches_value(("k", "Lt", ("9223372036854775807",)), "9223372036854775806")
