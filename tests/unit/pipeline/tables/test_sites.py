"""What is held and what is ready: the conditions under which anything is decided."""

import pytest

from underhost.agents.pipeline.tables.sites import Sites, sites_of
from underhost.schemas.keys import listed_key, parse_key
from underhost.schemas.kubernetes import Metadata, Node, NodeMetadata, Pod, raw
from underhost.schemas.records import Listed
from underhost.schemas.topics import NODES, OUTCOMES, PODS, VMS, Topic
from underhost.streams.settings.model import Settings

READ = (NODES, PODS, VMS)


def sites(*sources: str, only: frozenset[str] | None = None) -> Sites:
    return Sites(
        READ,
        (OUTCOMES,),
        partition_of=lambda site: int(site[-1]),
        sources=lambda state: frozenset(sources),
        only=only,
    )


def mark(of: Sites, site: str, source: str, *topics: Topic, epoch: int = 5) -> None:
    for topic in topics:
        of.apply(topic, parse_key(listed_key(site, source)), Listed(epoch, 1), 0.0)


def a_pod(of: Sites, site: str, name: str) -> None:
    of.apply(PODS, parse_key(f"{site}/pod/shop/{name}"), Pod(Metadata(name=name)), 0.0)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"a": "b"}, {"a": "b"}, id="some"),
        pytest.param(None, {}, id="null"),
        pytest.param({"a": 5}, {}, id="what cannot be read"),
    ],
)
def test_the_labels_of_a_node_are_those_that_the_watch_has_shown(labels: object, expected: dict[str, str]) -> None:
    held = sites("kubernetes")
    held.apply(NODES, parse_key("s-1/node//n1"), Node(NodeMetadata(name="n1", labels=raw(labels))), 0.0)
    assert held.labels_of("s-1", "n1") == expected
    assert held.labels_of("s-1", "n2") is None


def test_a_site_whose_partition_is_not_held_is_not_ready() -> None:
    held = sites("kubernetes")
    held.resume({1}, {}, {})
    mark(held, "s-2", "kubernetes", NODES, PODS)
    assert held.unready("s-2") == "the site's partition is not held"


def test_a_site_is_ready_once_every_topic_of_every_source_is_listed() -> None:
    held = sites("kubernetes", "vsphere")
    held.resume({1}, {}, {})
    assert held.unready("s-1") == "nothing has been listed"
    mark(held, "s-1", "kubernetes", NODES)
    assert held.unready("s-1") == "kubernetes has not listed pods"
    mark(held, "s-1", "kubernetes", PODS)
    assert held.unready("s-1") == "vsphere has not listed vms"
    mark(held, "s-1", "vsphere", VMS)
    assert held.unready("s-1") is None


def test_a_marker_of_another_source_does_not_count() -> None:
    held = sites("kubernetes")
    held.resume({1}, {}, {})
    mark(held, "s-1", "vsphere", NODES, PODS)
    assert held.unready("s-1") == "kubernetes has not listed nodes"


@pytest.mark.parametrize(
    "before", [pytest.param(5, id="an earlier run"), pytest.param(7, id="an earlier run: the clock was set back since")]
)
def test_where_the_watcher_runs_here_only_the_marker_of_its_run_counts(before: int) -> None:
    held = sites("kubernetes")
    held.resume({1}, {}, {})
    mark(held, "s-1", "kubernetes", NODES, PODS, epoch=before)
    held.require_epoch("s-1", "kubernetes", 6)
    assert held.unready("s-1") == "kubernetes has not listed nodes"
    mark(held, "s-1", "kubernetes", NODES, PODS, epoch=6)
    assert held.unready("s-1") is None


@pytest.mark.parametrize("topic", [PODS, OUTCOMES], ids=lambda topic: topic.short)
def test_a_site_is_ready_once_every_topic_is_read_to_its_end_at_the_assignment(topic: Topic) -> None:
    held = sites("kubernetes")
    held.resume({1}, {(topic.short, 1): 7}, {(topic.short, 1): 9})
    mark(held, "s-1", "kubernetes", NODES, PODS)
    assert held.unready("s-1") == f"{topic.short} is read up to 7 of 9"
    held.advance(topic, 1, 7)
    held.advance(topic, 1, 8)
    assert held.unready("s-1") is None


def test_reaching_the_end_wakes_the_site_even_by_a_record_that_changes_nothing() -> None:
    held = sites()
    held.resume({1}, {("pods", 1): 7}, {("pods", 1): 9})
    a_pod(held, "s-1", "a")
    woken: list[str] = []
    held.on_change = woken.append
    held.advance(PODS, 1, 7)
    assert woken == []
    held.advance(PODS, 1, 8)
    assert woken == ["s-1"]


def test_a_rebalance_suspends_every_site() -> None:
    held = sites()
    held.resume({1}, {}, {})
    a_pod(held, "s-1", "a")
    held.suspend()
    assert held.held() == []
    assert held.unready("s-1") == "the site's partition is not held"


def test_the_state_of_a_site_that_moved_away_is_dropped() -> None:
    held = sites()
    held.resume({1, 2}, {}, {})
    a_pod(held, "s-1", "a")
    a_pod(held, "s-2", "b")
    held.resume({2}, {}, {})
    assert sorted(held.states) == ["s-2"]
    held.resume({1, 2}, {}, {})
    assert dict(held.snapshot("s-1").pods) == {}


def test_a_worker_of_one_site_holds_no_other() -> None:
    held = sites(only=frozenset({"s-1"}))
    held.resume({1, 2}, {}, {})
    assert held.held() == ["s-1"]
    assert not held.wants("s-2")


def test_a_worker_of_one_site_is_ready_though_other_sites_partitions_have_a_backlog() -> None:
    ends = {("pods", 1): 9, ("pods", 2): 1_000_000}
    limited, unlimited = sites(only=frozenset({"s-1"})), sites()
    for held in (limited, unlimited):
        held.resume({1, 2}, {("pods", 1): 9}, ends)
    assert (limited.behind(), unlimited.behind()) == (0, 1_000_000)


def test_a_snapshot_names_the_last_offset_of_each_topic_that_is_in_it() -> None:
    held = sites()
    held.resume({1}, {("pods", 1): 7}, {})
    a_pod(held, "s-1", "a")
    held.advance(NODES, 1, 3)
    assert dict(held.snapshot("s-1").offsets) == {"nodes": 3, "pods": 6}


def test_a_snapshot_is_not_changed_by_what_comes_after_it() -> None:
    held = sites()
    held.resume({1}, {}, {})
    a_pod(held, "s-1", "a")
    before = held.snapshot("s-1")
    a_pod(held, "s-1", "b")
    held.apply(PODS, parse_key("s-1/pod/shop/a"), None, 0.0)
    assert sorted(before.pods) == ["shop/a"]
    assert sorted(held.snapshot("s-1").pods) == ["shop/b"]


def test_what_did_not_change_is_not_copied_for_the_next_snapshot() -> None:
    held = sites()
    held.resume({1}, {}, {})
    a_pod(held, "s-1", "a")
    one = held.snapshot("s-1")
    held.apply(NODES, parse_key("s-1/node//n1"), None, 0.0)
    assert held.snapshot("s-1").pods is one.pods


@pytest.mark.parametrize(
    ("vsphere", "asked"),
    [
        pytest.param({"url": "https://vc/sdk"}, False, id="a vCenter's are not"),
        pytest.param({"url": "https://vc/sdk", "joinByName": True}, True, id="unless a person allows it"),
        pytest.param({"inventory": "inventory.yaml"}, True, id="a file's are"),
        pytest.param({"simulated": "kubevirt"}, True, id="so are those of a simulated site"),
        pytest.param({}, False, id="nobody knows whose they are"),
    ],
)
def test_whether_names_may_say_which_vm_a_node_is(vsphere: dict[str, object], asked: bool) -> None:
    settings = Settings.model_validate({"site": "s-1", "vsphere": vsphere})
    assert sites_of(settings, READ, ()).snapshot("s-1").joining.by_name is asked
