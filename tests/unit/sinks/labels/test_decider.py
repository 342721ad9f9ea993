"""Which labels are ordered, and when again."""

from dataclasses import replace

import msgspec
import pytest

from underhost.agents.sinks.labels.decider import LabelDecider
from underhost.agents.sinks.orders import outcome
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Metadata, Node
from underhost.schemas.records import Action, NodeHost
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

KEY = "node.cluster.x-k8s.io/esxi-host"
HOSTS = {
    "host-1": Host(name="esx-1", id="host-1", labels={"rack": "r 17"}),
    "host-2": Host(name="esx-2", id="host-2"),
}


def site(**nodes: tuple[str, dict[str, str]]) -> Snapshot:
    """Each node with the host it runs on ("" while unknown) and its labels."""
    return Snapshot(
        nodes={
            name: Node(Metadata(name=name, uid=f"uid-{name}", labels=msgspec.Raw(msgspec.json.encode(labels))))
            for name, (_, labels) in nodes.items()
        },
        hosts=HOSTS,
        node_hosts={
            name: NodeHost(name, f"vm-{name}", host, HOSTS[host].name if host else "", "providerID")
            for name, (host, _) in nodes.items()
        },
        offsets={"nodes": 7},
    )


def ordered(actions: list[Action]) -> dict[str, object]:
    return {action.target: action.desired["labels"] for action in actions}


def test_a_node_without_the_label_gets_one_at_once() -> None:
    actions = LabelDecider(HostLabelSettings()).decide(site(n1=("host-1", {"a": "b"})), now=0.0)
    assert [(a.kind, a.target, a.desired, a.because, a.snapshot) for a in actions] == [
        (
            "label",
            "node/n1",
            {"uid": "uid-n1", "labels": {KEY: "esx-1"}},
            "node n1 runs on host esx-1",
            {"nodes": 7},
        )
    ]


def test_a_node_with_the_right_label_is_left_alone() -> None:
    assert LabelDecider(HostLabelSettings()).decide(site(n1=("host-1", {KEY: "esx-1"})), now=0.0) == []


def test_a_node_whose_labels_cannot_be_read_keeps_no_other_from_its_label() -> None:
    snapshot = site(n1=("host-1", {"a": 5}), n2=("host-1", {}))  # type: ignore[dict-item]
    assert "node/n2" in ordered(LabelDecider(HostLabelSettings()).decide(snapshot, now=0.0))


def test_an_unknown_host_is_never_a_label() -> None:
    decider = LabelDecider(HostLabelSettings())
    assert decider.decide(site(n1=("", {}), n2=("", {KEY: "esx-2"})), now=0.0) == []


def test_a_node_that_is_not_joined_or_not_there_is_left_alone() -> None:
    snapshot = site(n1=("host-1", {}))
    decider = LabelDecider(HostLabelSettings())
    assert decider.decide(replace(snapshot, nodes={}), now=0.0) == []
    assert decider.decide(replace(snapshot, node_hosts={}), now=0.0) == []


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("own", {"node/n1": {KEY: "esx-1", "rack": "r-17"}}),
        ("auto", {"node/n1": {KEY: "esx-1", "rack": "r-17"}}),
        ("observe", {"node/n1": {"rack": "r-17"}}),
    ],
)
def test_the_mode_says_whether_the_host_label_is_ours(mode: str, expected: dict[str, object]) -> None:
    settings = HostLabelSettings.model_validate({"mode": mode, "derived": [{"key": "rack", "from": "rack"}]})
    assert ordered(LabelDecider(settings).decide(site(n1=("host-1", {})), now=0.0)) == expected


RACKS = HostLabelSettings.model_validate({"derived": [{"key": "rack", "from": "rack"}]})


def test_a_derived_label_is_removed_where_this_host_has_no_value_and_others_do() -> None:
    snapshot = site(n2=("host-2", {KEY: "esx-2", "rack": "r-17"}))
    assert ordered(LabelDecider(RACKS).decide(snapshot, now=0.0)) == {"node/n2": {KEY: "esx-2", "rack": None}}
    assert LabelDecider(RACKS).decide(site(n2=("host-2", {KEY: "esx-2"})), now=0.0) == []


def test_a_host_that_gets_another_rack_tells_nodes_that_are_as_they_were() -> None:
    decider, picture = LabelDecider(RACKS), site(n1=("host-1", {KEY: "esx-1", "rack": "r-17"}))
    assert decider.decide(picture, now=0.0) == []
    hosts = {**HOSTS, "host-1": Host(name="esx-1", id="host-1", labels={"rack": "r9"})}
    actions = decider.decide(replace(picture, hosts=hosts), now=1.0)
    assert ordered(actions) == {"node/n1": {KEY: "esx-1", "rack": "r9"}}


def test_a_derived_label_that_no_host_has_is_left_alone_for_it_may_only_be_hidden() -> None:
    hosts = {ref: msgspec.structs.replace(host, labels={}) for ref, host in HOSTS.items()}
    snapshot = replace(site(n2=("host-2", {KEY: "esx-2", "rack": "r-17"})), hosts=hosts)
    assert LabelDecider(RACKS).decide(snapshot, now=0.0) == []


@pytest.mark.parametrize(
    ("source", "labels", "expected"),
    [
        pytest.param("rack", {"rack": "r7"}, "r7", id="an attribute by its name"),
        pytest.param("attribute:rack", {"rack": "r7", "tag:rack": "t"}, "r7", id="an attribute, said so"),
        pytest.param("tag:rack", {"rack": "r7", "tag:rack": "t"}, "t", id="a tag, said so"),
        pytest.param("folder", {"folder": "Racks / 7"}, "Racks-7", id="a folder, made valid"),
        pytest.param("datacenter", {"datacenter": "DC0"}, "DC0", id="the datacenter"),
    ],
)
def test_what_a_derived_label_may_come_from(source: str, labels: dict[str, str], expected: str) -> None:
    settings = HostLabelSettings.model_validate({"mode": "observe", "derived": [{"key": "rack", "from": source}]})
    snapshot = replace(site(n1=("host-1", {})), hosts={"host-1": Host(name="esx-1", id="host-1", labels=labels)})
    assert ordered(LabelDecider(settings).decide(snapshot, now=0.0)) == {"node/n1": {"rack": expected}}


def test_two_racks_whose_names_give_one_value_are_told_apart() -> None:
    hosts = {
        "host-1": Host(name="esx-1", id="host-1", labels={"rack": "row a/7"}),
        "host-2": Host(name="esx-2", id="host-2", labels={"rack": "row a 7"}),
    }
    snapshot = replace(site(n1=("host-1", {}), n2=("host-2", {})), hosts=hosts)
    found = ordered(LabelDecider(RACKS).decide(snapshot, now=0.0))
    one, other = (labels["rack"] for labels in found.values())  # type: ignore[index]
    assert one.startswith("row-a-7-")
    assert other.startswith("row-a-7-")
    assert one != other


def test_a_host_that_vsphere_has_not_shown_is_no_label_though_the_vm_names_it() -> None:
    snapshot = site(n1=("host-1", {KEY: "esx-2"}))
    assert LabelDecider(HostLabelSettings()).decide(replace(snapshot, hosts={}), now=0.0) == []


TAINT = "underhost.io/startup"
TAINTED = HostLabelSettings.model_validate(
    {"startupTaint": TAINT, "derived": [{"key": "rack", "from": "rack"}], "mode": "observe"}
)


TAINTING = HostLabelSettings.model_validate({"startupTaint": TAINT})


def tainted(snapshot: Snapshot, *keys: str) -> Snapshot:
    """The same, with these taints on every node."""
    taints = msgspec.Raw(msgspec.json.encode([{"key": key, "effect": "NoSchedule"} for key in keys]))
    nodes = {
        name: msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
        for name, node in snapshot.nodes.items()
    }
    return replace(snapshot, nodes=nodes)


def test_a_start_up_taint_goes_with_the_order_for_the_labels() -> None:
    decider = LabelDecider(TAINTED)
    before = tainted(site(n1=("host-1", {})), TAINT, "other")
    [action] = decider.decide(before, now=0.0)
    assert action.desired == {
        "uid": "uid-n1",
        "labels": {"rack": "r-17"},
        "taint": {"key": TAINT, "needs": [KEY, "rack"]},
    }
    decider.observe(outcome(action, "applied", ""), now=0.1)
    assert decider.decide(tainted(site(n1=("host-1", {KEY: "esx-1", "rack": "r-17"})), "other"), now=0.2) == []


def test_a_node_whose_taints_cannot_be_read_gets_its_label_as_others_do() -> None:
    snapshot = site(n1=("host-1", {}), n2=("host-1", {}))
    spec = msgspec.structs.replace(snapshot.nodes["n1"].spec, taints=msgspec.Raw(b'[{"key": 3}]'))
    nodes = {**snapshot.nodes, "n1": msgspec.structs.replace(snapshot.nodes["n1"], spec=spec)}
    actions = LabelDecider(TAINTING).decide(replace(snapshot, nodes=nodes), now=0.0)
    assert {action.target: action.desired for action in actions} == {
        "node/n1": {"uid": "uid-n1", "labels": {KEY: "esx-1"}},
        "node/n2": {"uid": "uid-n2", "labels": {KEY: "esx-1"}},
    }


def test_a_taint_that_could_not_go_yet_is_tried_again_when_the_labels_change() -> None:
    decider = LabelDecider(TAINTED)
    [action] = decider.decide(tainted(site(n1=("host-1", {"rack": "r-17"})), TAINT), now=0.0)
    assert action.desired["labels"] == {"rack": "r-17"}  # the host label is another controller's to write
    decider.observe(outcome(action, "refused", f"taint {TAINT} stays"), now=0.1)
    assert decider.decide(tainted(site(n1=("host-1", {"rack": "r-17"})), TAINT), now=60.0) == []
    snapshot = tainted(site(n1=("host-1", {KEY: "esx-1", "rack": "r-17"})), TAINT)
    assert len(decider.decide(snapshot, now=60.0)) == 1


def test_a_tainted_node_whose_host_is_unknown_keeps_its_taint() -> None:
    assert LabelDecider(TAINTED).decide(tainted(site(n1=("", {})), TAINT), now=0.0) == []


def test_moves_within_ten_seconds_become_one_order_of_the_last_host() -> None:
    decider = LabelDecider(HostLabelSettings())
    first = decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=0.0)
    assert ordered(first) == {"node/n1": {KEY: "esx-1"}}
    decider.observe(outcome(first[0], "applied", ""), now=0.1)
    for second in range(1, 10):  # twenty moves a minute, say
        host = "host-2" if second % 2 else "host-1"
        assert decider.decide(site(n1=(host, {KEY: "esx-1"})), now=float(second)) == []
    assert decider.decide(site(n1=("host-2", {KEY: "esx-1"})), now=9.9) == []
    assert decider.due == 10.0
    assert ordered(decider.decide(site(n1=("host-2", {KEY: "esx-1"})), now=10.0)) == {"node/n1": {KEY: "esx-2"}}
    assert decider.due is None


def test_a_move_after_ten_quiet_seconds_is_ordered_at_once() -> None:
    decider = LabelDecider(HostLabelSettings())
    decider.decide(site(n1=("host-1", {})), now=0.0)
    assert decider.decide(site(n1=("host-1", {KEY: "esx-1"})), now=1.0) == []
    assert ordered(decider.decide(site(n1=("host-2", {KEY: "esx-1"})), now=11.0)) == {"node/n1": {KEY: "esx-2"}}


def test_a_label_that_somebody_sets_back_after_our_write_waits_ten_seconds() -> None:
    decider = LabelDecider(HostLabelSettings())
    decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=0.0)
    assert decider.decide(site(n1=("host-1", {KEY: "esx-1"})), now=1.0) == []
    assert decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=9.9) == []
    assert ordered(decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=10.0)) == {"node/n1": {KEY: "esx-1"}}


def test_the_first_label_is_no_move_so_that_a_move_right_after_it_is_ordered_at_once() -> None:
    decider = LabelDecider(HostLabelSettings())
    decider.decide(site(n1=("host-1", {})), now=0.0)
    assert decider.decide(site(n1=("host-1", {KEY: "esx-1"})), now=0.5) == []
    assert ordered(decider.decide(site(n1=("host-2", {KEY: "esx-1"})), now=1.0)) == {"node/n1": {KEY: "esx-2"}}
    assert decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=2.0) == []
    assert ordered(decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=11.0)) == {"node/n1": {KEY: "esx-1"}}


def test_a_taint_ordered_by_itself_does_not_hold_up_the_move_right_after_it() -> None:
    decider = LabelDecider(TAINTING)
    decider.decide(tainted(site(n1=("host-1", {})), TAINT), now=0.0)
    seen = tainted(site(n1=("host-1", {KEY: "esx-1"})), TAINT)  # the label, and not yet that the taint has gone
    [action] = decider.decide(seen, now=0.1)
    decider.observe(outcome(action, "noop", f"taint {TAINT} is not there"), now=0.2)
    assert ordered(decider.decide(site(n1=("host-2", {KEY: "esx-1"})), now=0.3)) == {"node/n1": {KEY: "esx-2"}}


def test_a_taint_that_stays_is_tried_again_every_ten_seconds_at_most() -> None:
    decider, stays = LabelDecider(TAINTING), tainted(site(n1=("host-1", {KEY: "esx-1"})), TAINT)
    [action] = decider.decide(version(stays, "5"), now=0.0)
    decider.observe(outcome(action, "refused", f"taint {TAINT} stays"), now=0.1)
    assert decider.decide(version(stays, "6"), now=9.9) == []
    assert decider.due == 10.0
    assert len(decider.decide(version(stays, "6"), now=10.0)) == 1


def test_one_node_that_flaps_holds_up_no_other() -> None:
    decider = LabelDecider(HostLabelSettings())
    decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=0.0)
    actions = decider.decide(site(n1=("host-2", {KEY: "esx-1"}), n2=("host-2", {})), now=1.0)
    assert ordered(actions) == {"node/n2": {KEY: "esx-2"}}


def test_an_order_under_way_is_not_repeated_until_it_must_be_lost() -> None:
    decider = LabelDecider(HostLabelSettings())
    snapshot = site(n1=("host-1", {}))
    assert len(decider.decide(snapshot, now=0.0)) == 1
    assert decider.decide(snapshot, now=29.9) == []
    assert len(decider.decide(snapshot, now=30.0)) == 1


def test_a_node_that_moves_again_waits_until_the_watch_has_shown_our_last_label() -> None:
    held: dict[str, float] = {}
    decider = LabelDecider(HostLabelSettings(), lambda target: held.get(target, 0.0))
    decider.observe(outcome(decider.decide(site(n1=("host-1", {})), now=0.0)[0], "applied", ""), now=0.1)
    held["node/n1"] = 60.0
    assert decider.decide(site(n1=("host-2", {})), now=20.0) == [], "the label that we wrote is not in the picture"
    assert decider.due == 60.0
    held.clear()
    assert ordered(decider.decide(site(n1=("host-2", {KEY: "esx-1"})), now=21.0)) == {"node/n1": {KEY: "esx-2"}}


def test_a_failed_order_is_repeated_thirty_seconds_after_its_failure() -> None:
    decider = LabelDecider(HostLabelSettings())
    snapshot = site(n1=("host-1", {}))
    action = decider.decide(snapshot, now=0.0)[0]
    decider.observe(outcome(action, "failed", "timeout"), now=5.0)
    assert decider.decide(snapshot, now=34.9) == []
    assert decider.due == 35.0
    assert len(decider.decide(snapshot, now=35.0)) == 1


def test_a_refused_order_waits_longer_unless_the_labels_change() -> None:
    decider = LabelDecider(HostLabelSettings())
    action = decider.decide(site(n1=("host-1", {KEY: "esx-9"})), now=0.0)[0]
    decider.observe(outcome(action, "refused", "label belongs to capi"), now=1.0)
    assert decider.decide(site(n1=("host-1", {KEY: "esx-9"})), now=600.0) == []
    assert len(decider.decide(site(n1=("host-1", {})), now=600.0)) == 1


def version(snapshot: Snapshot, number: str) -> Snapshot:
    """All nodes of the picture in this version."""
    nodes = {
        name: msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, resource_version=number))
        for name, node in snapshot.nodes.items()
    }
    return replace(snapshot, nodes=nodes)


@pytest.mark.parametrize("result", ["refused", "noop"])
def test_a_refused_order_is_tried_again_once_the_node_has_changed_and_changed_back(result: str) -> None:
    decider, looked_alike = LabelDecider(HostLabelSettings()), site(n1=("host-1", {KEY: "esx-9"}))
    action = decider.decide(version(looked_alike, "5"), now=0.0)[0]
    decider.observe(outcome(action, result, "label belongs to capi"), now=1.0)
    assert decider.decide(version(looked_alike, "5"), now=20.0) == []
    # capi's label went, and a person set the same value: one picture shows both changes at once.
    assert ordered(decider.decide(version(looked_alike, "7"), now=20.1)) == {"node/n1": {KEY: "esx-1"}}


def test_a_node_that_changes_all_the_time_is_tried_again_every_ten_seconds_at_most() -> None:
    decider, looked_alike = LabelDecider(HostLabelSettings()), site(n1=("host-1", {KEY: "esx-9"}))
    action = decider.decide(version(looked_alike, "5"), now=0.0)[0]
    decider.observe(outcome(action, "refused", "label belongs to capi"), now=1.0)
    assert decider.decide(version(looked_alike, "6"), now=9.9) == []
    assert decider.due == 10.0


def test_an_order_under_way_is_not_repeated_because_the_node_has_another_version() -> None:
    decider, looked_alike = LabelDecider(HostLabelSettings()), site(n1=("host-1", {KEY: "esx-9"}))
    assert len(decider.decide(version(looked_alike, "5"), now=0.0)) == 1
    assert decider.decide(version(looked_alike, "6"), now=20.0) == []


def test_a_dry_run_is_not_repeated_until_something_changes() -> None:
    decider = LabelDecider(HostLabelSettings())
    action = decider.decide(site(n1=("host-1", {})), now=0.0)[0]
    decider.observe(outcome(action, "dry-run", "would set"), now=1.0)
    assert decider.decide(site(n1=("host-1", {})), now=10_000.0) == []
    assert len(decider.decide(site(n1=("host-2", {})), now=10_001.0)) == 1


def test_the_outcome_of_an_older_order_says_nothing() -> None:
    decider = LabelDecider(HostLabelSettings())
    old = decider.decide(site(n1=("host-1", {})), now=0.0)[0]
    decider.decide(site(n1=("host-2", {})), now=10.0)
    decider.observe(outcome(old, "dry-run", ""), now=11.0)
    assert len(decider.decide(site(n1=("host-2", {})), now=40.0)) == 1


def test_a_label_changed_by_hand_is_ordered_back() -> None:
    decider = LabelDecider(HostLabelSettings())
    action = decider.decide(site(n1=("host-1", {KEY: "esx-2"})), now=0.0)[0]
    decider.observe(outcome(action, "applied", ""), now=0.1)
    assert decider.decide(site(n1=("host-1", {KEY: "esx-1"})), now=0.2) == []
    assert decider.decide(site(n1=("host-1", {KEY: "mine"})), now=5.0) == []
    assert ordered(decider.decide(site(n1=("host-1", {KEY: "mine"})), now=10.0)) == {"node/n1": {KEY: "esx-1"}}


def test_a_node_made_anew_gets_an_order_with_its_new_uid() -> None:
    decider = LabelDecider(HostLabelSettings())
    decider.decide(site(n1=("host-1", {})), now=0.0)
    assert decider.decide(site(n2=("host-1", {KEY: "esx-1"})), now=1.0) == []  # n1 is gone
    actions = decider.decide(site(n1=("host-1", {})), now=2.0)
    assert [action.desired["uid"] for action in actions] == ["uid-n1"]


def test_equal_pictures_give_equal_ids() -> None:
    one = LabelDecider(HostLabelSettings()).decide(site(n1=("host-1", {})), now=0.0)
    two = LabelDecider(HostLabelSettings()).decide(site(n1=("host-1", {})), now=99.0)
    assert one[0].id == two[0].id


def test_a_node_is_looked_at_anew_when_it_its_host_or_any_host_has_changed() -> None:
    decider, first = LabelDecider(RACKS), site(n1=("host-1", {KEY: "esx-1", "rack": "r-17"}))
    assert decider.decide(first, now=0.0) == []
    other_node = replace(first, nodes=site(n1=("host-1", {KEY: "by-hand", "rack": "r-17"})).nodes)
    assert ordered(decider.decide(other_node, now=20.0)) == {"node/n1": {KEY: "esx-1", "rack": "r-17"}}
    moved = replace(first, node_hosts=site(n1=("host-2", {})).node_hosts)
    assert ordered(decider.decide(moved, now=40.0)) == {"node/n1": {KEY: "esx-2", "rack": None}}
    hosts = {**HOSTS, "host-1": Host(name="esx-1", id="host-1", labels={"rack": "r18"})}
    assert ordered(decider.decide(replace(first, hosts=hosts), now=60.0)) == {"node/n1": {KEY: "esx-1", "rack": "r18"}}
