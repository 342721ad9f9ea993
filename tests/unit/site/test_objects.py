"""Records and rows of a site: what is read of them, what is refused, how a snapshot names them."""

import msgspec
import pytest

from underhost.agents.site.changes import Tracked
from underhost.agents.site.objects import Changes, SiteState, decode_record, read_key, read_record, shared_parts
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.errors import BadEvent
from underhost.schemas.keys import parse_key
from underhost.schemas.kubernetes import Metadata, Node, Pod, Workload, encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import DRS_RULES, NODES, OUTCOMES, PODS, SOURCE_TOPICS, VMS, WORKLOADS, Topic
from underhost.schemas.vsphere import Cluster, DrsRule, Vm


@pytest.mark.parametrize(
    ("key", "message"),
    [
        pytest.param(None, "the record has no key", id="no key"),
        pytest.param(b"\xff/pod/shop/a", "bad key: 'utf-8' codec", id="no text"),
        pytest.param(b"pod", "bad key: not a record key: 'pod'", id="no parts"),
        pytest.param(b"/pod/shop/a", "bad key: not a record key", id="no site"),
    ],
)
def test_a_key_that_is_none_of_ours_is_a_bad_event(key: bytes | None, message: str) -> None:
    with pytest.raises(BadEvent) as error:
        read_key(key)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("topic", "key", "value", "message"),
    [
        pytest.param(PODS, "s/pod/shop/a", b"{", "not a Pod: ", id="truncated"),
        pytest.param(PODS, "s/pod/shop/a", b"\xff\xfe{}", "not a Pod: ", id="no text"),
        pytest.param(PODS, "s/pod/shop/a", b"[" * 100_000, "not a Pod: ", id="too deep"),
        pytest.param(PODS, "s/pod/shop/a", b'{"spec": {}}', "not a Pod: ", id="a field is missing"),
        pytest.param(PODS, "s/node//a", b"{}", "kind 'node' does not belong to underhost.pods", id="another kind"),
        pytest.param(PODS, "s/listed/kubernetes", b"{}", "not a Listed: ", id="a marker without its fields"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_bad_event(topic: Topic, key: str, value: bytes, message: str) -> None:
    with pytest.raises(BadEvent) as error:
        read_record(topic, parse_key(key), value)
    assert str(error.value).startswith(message)


def test_a_tombstone_is_no_record() -> None:
    assert read_record(PODS, parse_key("s/pod/shop/a"), None) is None
    assert decode_record(OUTCOMES, None) is None


def test_a_record_is_read_as_the_kind_of_its_key_says() -> None:
    cluster = read_record(DRS_RULES, parse_key("s/cluster//C0"), b'{"name": "C0"}')
    rule = read_record(DRS_RULES, parse_key("s/drs-rule/C0/r"), b'{"name": "r", "type": "affinity", "cluster": "C0"}')
    assert cluster == Cluster(name="C0")
    assert rule == DrsRule(name="r", type="affinity", cluster="C0")


def test_a_snapshot_names_each_kind_as_the_evaluator_expects() -> None:
    state = SiteState("s", SOURCE_TOPICS)
    rows: list[tuple[Topic, str, msgspec.Struct]] = [
        (NODES, "s/node//n1", Node(Metadata(name="n1"))),
        (PODS, "s/pod/shop/a", Pod(Metadata(name="a", namespace="shop"))),
        (WORKLOADS, "s/statefulset/shop/db", Workload("StatefulSet", Metadata(name="db"))),
        (VMS, "s/vm//vm-1", Vm(name="n1", id="vm-1")),
        (DRS_RULES, "s/cluster//domain-c1", Cluster(name="C0", id="domain-c1")),
        (DRS_RULES, "s/drs-rule/C0/r1", DrsRule("r1", "affinity", cluster="C0")),
        (PODS, "s/listed/kubernetes", Listed(1, 1)),
    ]
    for topic, key, row in rows:
        assert state.put(topic, parse_key(key), row)
    snapshot = state.snapshot(vsphere=True, offsets={})
    assert list(snapshot.nodes) == ["n1"]
    assert list(snapshot.pods) == ["shop/a"]
    assert list(snapshot.workloads) == ["StatefulSet/shop/db"]
    assert list(snapshot.vms) == ["vm-1"]
    assert list(snapshot.clusters) == ["C0"]
    assert list(snapshot.rules) == [("C0", "r1")]


def test_every_kind_of_the_topics_has_a_name_in_the_snapshot() -> None:
    state = SiteState("s", SOURCE_TOPICS)
    for topic in SOURCE_TOPICS:
        for kind in topic.kinds:
            state.put(topic, parse_key(f"s/{kind}/a/b"), None)


def test_the_same_row_again_is_no_change() -> None:
    state = SiteState("s", SOURCE_TOPICS)
    key, pod = parse_key("s/pod/shop/a"), Pod(Metadata(name="a"))
    assert state.put(PODS, key, pod)
    assert not state.put(PODS, key, msgspec.json.decode(encode(pod), type=Pod))
    assert state.put(PODS, key, None)
    assert not state.put(PODS, key, None)


def test_after_a_recovery_only_what_the_table_holds_is_left() -> None:
    state = SiteState("s", SOURCE_TOPICS)
    state.put(PODS, parse_key("s/pod/shop/ghost"), Pod(Metadata(name="ghost")))
    state.put(PODS, parse_key("s/listed/kubernetes"), Listed(1, 1))
    state.replace(PODS, [(parse_key("s/pod/shop/a"), Pod(Metadata(name="a")))], shared_parts())
    assert list(state.snapshot(vsphere=False, offsets={}).pods) == ["shop/a"]
    assert state.epoch(PODS, "kubernetes") is None


def test_who_follows_takes_the_names_that_changed_each_once_and_in_order() -> None:
    state, woken = SiteState("s", SOURCE_TOPICS), list[int]()
    changes = Changes([PODS], lambda: woken.append(len(changes)))
    state.put(PODS, parse_key("s/pod/shop/before"), Pod(Metadata(name="before")))
    state.follow(changes)
    for name, version in (("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("c", "1")):
        state.put(PODS, parse_key(f"s/pod/shop/{name}"), Pod(Metadata(name=name, resource_version=version)))
    state.put(PODS, parse_key("s/pod/shop/b"), None)
    state.put(NODES, parse_key("s/node//n1"), Node(Metadata(name="n1")))
    assert (changes.take(PODS, 2), changes.take(PODS), changes.take(PODS)) == (["shop/a", "shop/b"], ["shop/c"], [])
    assert woken == [1, 2, 3, 3, 3]
    assert (changes.listed, changes.whole) == (set(), False)
    state.put(PODS, parse_key("s/listed/kubernetes"), Listed(1, 1))
    state.replace(NODES, [], shared_parts())
    assert (changes.listed, changes.whole) == ({"pods"}, False)
    state.replace(PODS, [], shared_parts())
    assert changes.whole
    state.unfollow(changes)
    state.put(PODS, parse_key("s/pod/shop/after"), Pod(Metadata(name="after")))
    assert changes.take(PODS) == []


def test_a_snapshot_tells_which_keys_differ_from_the_ones_before_it() -> None:
    state = SiteState("s", SOURCE_TOPICS)

    def put(name: str, uid: str | None) -> None:
        pod = None if uid is None else Pod(Metadata(name=name, namespace="shop", uid=uid))
        state.put(PODS, parse_key(f"s/pod/shop/{name}"), pod)

    def snapshot() -> Snapshot:
        return state.snapshot(vsphere=False, offsets={})

    put("a", "1")
    put("b", "1")
    first = snapshot()
    put("b", "2")
    put("c", "1")
    put("c", None)
    second = snapshot()
    put("a", None)
    third = snapshot()
    assert _told(first, second) == ["shop/b", "shop/c"]
    assert _told(second, third) == ["shop/a"]
    assert _told(first, third) == ["shop/a", "shop/b", "shop/c"]
    assert third.nodes is first.nodes
    state.replace(
        PODS, [(parse_key("s/pod/shop/a"), Pod(Metadata(name="a", namespace="shop", uid="1")))], shared_parts()
    )
    assert _told(third, snapshot()) is None


def _told(before: Snapshot, now: Snapshot) -> list[str] | None:
    assert isinstance(now.pods, Tracked)
    told = now.pods.since(before.pods)
    return None if told is None else sorted(told)
