"""A list against what the topics hold: which records are published, and when vanished objects are not believed."""

from collections.abc import Iterable

import msgspec
import pytest
from msgspec import Raw, Struct
from support.build import a_node

from underhost.schemas import kubernetes as k8s
from underhost.schemas.keys import object_key
from underhost.schemas.records import Listed
from underhost.schemas.topics import BUDGETS, HOSTS, NODES, PODS, Topic
from underhost.schemas.vsphere import Host
from underhost.streams.ports import Outgoing
from underhost.streams.watching.reconcile import ListingPlan, doubt_of, plan_listing
from underhost.streams.watching.records import outgoing_of


def at_version(name: str, version: str = "1", **labels: str) -> k8s.Node:
    """A node as a list or a topic has it."""
    return a_node(name).labels(labels).metadata(resourceVersion=version).build()


def key_of(name: str, kind: str = "node") -> str:
    return object_key("s", kind, name)


def plan_of(
    held: Iterable[k8s.Node],
    listed: Iterable[k8s.Node],
    extra: dict[str, bytes] | None = None,
    *,
    accepted: Iterable[str] = (),
    doubt: str = "",
) -> ListingPlan:
    """The plan of one topic of nodes."""
    held_bytes = {key_of(node.metadata.name): k8s.encode(node) for node in held} | (extra or {})
    now = {key_of(node.metadata.name): node for node in listed}
    held_of_topic = {NODES.name: held_bytes}
    return plan_listing(
        "s", "kubernetes", [NODES], held_of_topic, {NODES.name: now}, epoch=7, accepted=set(accepted), doubt=doubt
    )


def changes(plan: ListingPlan) -> dict[str, str]:
    """The plan without its markers: key to what happens with it."""
    return {
        record.key: "tombstone" if record.value is None else "put"
        for record in plan.records()
        if "/listed/" not in record.key
    }


def nodes(count: int, version: str = "1") -> list[k8s.Node]:
    return [at_version(f"n{i}", version) for i in range(count)]


def test_an_object_that_is_new_or_changed_is_published() -> None:
    plan = plan_of(
        [at_version("n1"), at_version("n2")], [at_version("n1"), at_version("n2", "2", zone="a"), at_version("n3")]
    )
    assert changes(plan) == {"s/node//n2": "put", "s/node//n3": "put"}


def test_a_new_resource_version_alone_publishes_nothing() -> None:
    assert changes(plan_of(nodes(3), nodes(3, version="99"))) == {}


def test_an_older_version_than_is_held_replaces_it_though_nothing_else_differs() -> None:
    plan = plan_of(nodes(2, version="99"), [at_version("n0", "99"), at_version("n1", "7")])
    told = [(record.key, record.event_id) for record in plan.changes()]
    assert told == [("s/node//n1", "s/node//n1/deleted"), ("s/node//n1", "uid-n1/7")]


def test_a_version_of_more_digits_than_python_reads_is_neither_older_nor_newer() -> None:
    endless = "9" * 5000
    plan = plan_of([at_version("n1", "7"), at_version("n2", endless)], [at_version("n1", endless), at_version("n2")])
    assert changes(plan) == {}


def test_the_listed_marker_comes_last_with_epoch_and_count() -> None:
    plan = plan_of([], nodes(2))
    assert [record.key for record in plan.records()] == ["s/node//n0", "s/node//n1", "s/listed/kubernetes"]
    assert list(plan.records())[-1].value is not None
    assert msgspec.json.decode(list(plan.records())[-1].value, type=Listed) == Listed(epoch=7, count=2)


def test_what_vanished_is_tombstoned() -> None:
    plan = plan_of(nodes(5), nodes(3))
    assert changes(plan) == {"s/node//n3": "tombstone", "s/node//n4": "tombstone"}
    assert [r.event_id for r in plan.records() if r.value is None] == ["s/node//n3/deleted", "s/node//n4/deleted"]
    assert plan.shrunk == []


@pytest.mark.parametrize(
    ("held", "listed", "believed"),
    [
        pytest.param(5, 0, False, id="an empty list is not believed"),
        pytest.param(1, 0, False, id="an empty list is not believed even for a single object"),
        pytest.param(10, 5, False, id="half of the objects gone is not believed"),
        pytest.param(10, 6, True, id="exactly 40 percent gone is believed"),
        pytest.param(2, 1, True, id="one single object gone beside another is believed"),
    ],
)
def test_a_list_that_shrank_too_much_deletes_nothing(held: int, listed: int, believed: bool) -> None:
    plan = plan_of(nodes(held), nodes(listed))
    gone = {f"s/node//n{i}": "tombstone" for i in range(listed, held)}
    assert changes(plan) == (gone if believed else {})
    if believed:
        assert plan.shrunk == []
    else:
        assert plan.shrunk == [
            f"nodes: {held - listed} of {held} objects of site s are missing in the new list; not believed"
        ]
    assert list(plan.records())[-1].key == "s/listed/kubernetes"


def test_the_markers_carry_the_doubt() -> None:
    plan = plan_of(nodes(5), [])
    assert list(plan.records())[-1].value is not None
    assert msgspec.json.decode(list(plan.records())[-1].value, type=Listed).doubt == plan.shrunk[0]
    held = {NODES.name: {list(plan.records())[-1].key: list(plan.records())[-1].value}}
    assert doubt_of("s", "kubernetes", held) == plan.shrunk[0]
    assert doubt_of("s", "vsphere", held) == ""
    assert doubt_of("s", "kubernetes", {NODES.name: {list(plan.records())[-1].key: b"not json"}}) == ""


def test_while_a_doubt_lasts_nothing_at_all_is_deleted() -> None:
    plan = plan_of(nodes(10), nodes(9), doubt="nodes: 6 of 10 are missing")
    assert changes(plan) == {}
    assert plan.missing == {"s/node//n9"}
    assert plan.shrunk == ["nodes: 1 of 10 objects of site s are missing in the new list; not believed"]
    whole = plan_of(nodes(10), nodes(10), doubt="nodes: 6 of 10 are missing")
    assert (whole.shrunk, whole.missing) == ([], set())
    assert list(whole.records())[-1].value is not None
    assert msgspec.json.decode(list(whole.records())[-1].value, type=Listed).doubt == "nodes: 6 of 10 are missing"


def test_what_a_person_has_accepted_is_deleted_and_no_more_than_that() -> None:
    accepted = [key_of(f"n{i}") for i in range(5, 10)]
    assert changes(plan_of(nodes(10), nodes(5), accepted=accepted)) == dict.fromkeys(accepted, "tombstone")
    plan = plan_of(nodes(10), nodes(2), accepted=accepted)
    assert changes(plan) == dict.fromkeys(accepted, "tombstone")
    assert plan.missing == {"s/node//n2", "s/node//n3", "s/node//n4"}
    assert plan.shrunk == ["nodes: 3 of 5 objects of site s are missing in the new list; not believed"]


def test_nothing_of_a_shrunken_list_is_published_so_inventories_never_mix() -> None:
    plan = plan_of(nodes(5), [at_version("new"), at_version("n0", "2", zone="a")])
    assert changes(plan) == {}
    assert plan.frozen == {NODES.name}


@pytest.mark.parametrize(
    ("listed_nodes", "expected"),
    [
        pytest.param(3, {"s/poddisruptionbudget/a/b": "tombstone"}, id="budgets may all go while the nodes are there"),
        pytest.param(0, {}, id="budgets are kept when the nodes vanish as well"),
    ],
)
def test_an_empty_list_of_budgets_is_believed_only_beside_a_full_list_of_nodes(
    listed_nodes: int, expected: dict[str, str]
) -> None:
    budget = k8s.Budget(metadata=k8s.Metadata(name="b", namespace="a", uid="u"))
    held: dict[str, dict[str, bytes]] = {
        NODES.name: {key_of(n.metadata.name): k8s.encode(n) for n in nodes(3)},
        BUDGETS.name: {object_key("s", "poddisruptionbudget", "b", "a"): k8s.encode(budget)},
    }
    listed: dict[str, dict[str, Struct]] = {NODES.name: {key_of(n.metadata.name): n for n in nodes(listed_nodes)}}
    assert changes(plan_listing("s", "kubernetes", [NODES, BUDGETS], held, listed, epoch=1)) == expected


def test_markers_and_unreadable_keys_that_are_held_are_left_alone() -> None:
    plan = plan_of([], [], {"s/listed/kubernetes": b'{"epoch":1,"count":0}', "x": b"{}"})
    assert changes(plan) == {}


def test_an_unreadable_record_is_replaced() -> None:
    assert changes(plan_of([], [at_version("n1")], {key_of("n1"): b'{"metadata":'})) == {"s/node//n1": "put"}


@pytest.mark.parametrize(
    ("topic", "key", "value", "event_id"),
    [
        pytest.param(NODES, "s/node//n", at_version("n", "5"), "uid-n/5", id="uid and version"),
        pytest.param(HOSTS, "s/host//h", Host(name="e", id="h", uid="h", resource_version="3"), "h/3", id="vSphere"),
        pytest.param(PODS, "s/pod/a/b", None, "s/pod/a/b/deleted", id="a tombstone of unknown uid is named by its key"),
    ],
)
def test_the_event_id_is_uid_and_resource_version(topic: Topic, key: str, value: Struct | None, event_id: str) -> None:
    assert outgoing_of(topic, key, value).event_id == event_id


def test_equal_objects_of_a_file_without_uid_get_equal_ids_and_other_ones_do_not() -> None:
    def sent(**labels: str) -> Outgoing:
        node = k8s.Node(metadata=k8s.Metadata(name="n", labels=Raw(msgspec.json.encode(labels))))
        return outgoing_of(NODES, "s/node//n", node)

    assert sent(a="1").event_id == sent(a="1").event_id
    assert sent(a="1").event_id != sent(a="2").event_id
    assert sent().event_id.startswith("s/node//n/")
