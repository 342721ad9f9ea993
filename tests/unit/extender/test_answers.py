"""What the extender answers kube-scheduler of a site as it stands; pods on their way are in test_assumed.py."""

import json
from collections.abc import Iterator

import msgspec
import pytest
from support.build import HOST, RACK, ZONE, PodBuilder, a_node, a_pod, app, spread, term
from support.sites.extender import Start, built, questions

from underhost.agents.rules.inter_pod_affinity import REASON_AFFINITY, REASON_ANTI_AFFINITY
from underhost.agents.rules.inter_pod_affinity import REASON_EXISTING_ANTI_AFFINITY as REASON_EXISTING
from underhost.agents.rules.physical_host import REASON_SHARED_HOST
from underhost.agents.rules.pod_topology_spread import REASON_NOT_SPREAD
from underhost.agents.site.snapshot import Options
from underhost.schemas import extender as wire
from underhost.schemas.errors import InputError, Unready
from underhost.schemas.kubernetes import encode

REQUIRED = Options(physical_host="required")
HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2", "n5": ""}
ALIAS = "alpha.cna.vmware.com/host"
DB = a_pod("db-0").labels(app="db")
NEW = a_pod("db-9").labels(app="db").apart(term(HOST, app("db")))
ALL = sorted(HOSTS)


def told(reason: str) -> str:
    """What is said of a node where db-0 on n1 is in the way."""
    return f"{reason}: db-0 is on esx-h1"


@pytest.fixture
def ask() -> Iterator[Start]:
    """Begins to ask about a site with these pods."""
    with questions(HOSTS) as start:
        yield start


async def test_required_refuses_the_other_nodes_of_a_host_where_a_replica_runs(ask: Start) -> None:
    asking = ask(DB.on("n1"), options=REQUIRED)
    # n1 itself is kube-scheduler's to refuse, by its own rule; no eviction from n2 would help.
    assert await asking.filter(NEW) == (
        ["n1", "n3", "n4", "n5"],
        {"n2": told(REASON_SHARED_HOST)},
        {"n2": told(REASON_SHARED_HOST)},
    )


async def test_of_many_hosts_eight_are_told_of_by_name(ask: Start) -> None:
    hosts = {f"n{at}{side}": f"h{at}" for at in range(10) for side in "ab"}
    replicas = [a_pod(f"old-{at}").labels(app="db").on(f"n{at}a") for at in range(10)]
    _, failed, _ = await ask(*replicas, hosts=hosts, options=REQUIRED).filter(NEW)
    named = [f"{REASON_SHARED_HOST}: old-{at} is on esx-h{at}" for at in range(8)]
    assert [failed[f"n{at}b"] for at in range(10)] == [*named, REASON_SHARED_HOST, REASON_SHARED_HOST]


async def test_pods_of_other_namespaces_are_not_told_by_name(ask: Start) -> None:
    everywhere = a_pod("new").apart(term(HOST, app("db"), namespaceSelector={}))
    site = ask(a_pod("secret", "other").labels(app="db").on("n1"), DB.on("n1"), options=REQUIRED)
    _, failed, _ = await site.filter(everywhere)
    assert failed == {"n2": f"{REASON_SHARED_HOST}: a pod of another namespace and db-0 are on esx-h1"}


async def test_preferred_refuses_nothing_and_scores_the_shared_host_lowest(ask: Start) -> None:
    asking = ask(DB.on("n1"))
    assert await asking.filter(NEW) == (ALL, {}, {})
    assert await asking.scores(NEW) == {"n1": 10, "n2": 0, "n3": 10, "n4": 10, "n5": 10}


@pytest.mark.parametrize(
    ("there", "new", "left"),
    [
        pytest.param(
            DB.apart(term(HOST, app("web"))), a_pod("w").labels(app="web"), ["n1", "n3"], id="a running pod's term"
        ),
        pytest.param(
            DB, a_pod("w").labels(app="db").spreads(spread(HOST, app("db"))), ["n1", "n3"], id="a strict spread"
        ),
        pytest.param(DB.spreads(spread(HOST, app("db"))), a_pod("w").labels(app="db"), ["n1", "n3"], id="theirs"),
        pytest.param(
            DB, a_pod("w").apart(term(HOST, app("db")), term(ZONE, app("db"))), ["n1", "n3"], id="two keys, once"
        ),
        pytest.param(
            DB,
            a_pod("w").labels(app="db").spreads(spread(HOST, app("db"), soft=True)),
            ["n1", "n2", "n3"],
            id="a loose one",
        ),
        pytest.param(DB, a_pod("w").prefers_apart(9, term(HOST, app("db"))), ["n1", "n2", "n3"], id="a preference"),
        pytest.param(DB, a_pod("w").apart(term(RACK, app("db"))), ["n1", "n2", "n3"], id="a key that no node has"),
        pytest.param(DB, a_pod("w", "other").apart(term(HOST, app("db"))), ["n1", "n2", "n3"], id="another namespace"),
        pytest.param(DB.deleted(), NEW, ["n1", "n3"], id="a pod that is being deleted still runs"),
    ],
)
async def test_what_keeps_a_pod_from_the_host_of_db_0(
    ask: Start, there: PodBuilder, new: PodBuilder, left: list[str]
) -> None:
    asking = ask(there.on("n1"), options=REQUIRED)
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "c")):
        asking.site.put_node(a_node(name).zone(zone))
    assert await asking.left(new, "n1", "n2", "n3") == left


async def test_a_finished_pod_is_in_nobodys_way(ask: Start) -> None:
    assert await ask(DB.on("n1").finished(), options=REQUIRED).left(NEW) == ALL


async def test_without_hosts_nothing_is_refused_and_every_node_is_worth_the_same(ask: Start) -> None:
    asking = ask(DB.on("n1"), hosts=dict.fromkeys(HOSTS, ""), options=REQUIRED)
    assert await asking.filter(NEW) == (ALL, {}, {})
    assert await asking.scores(NEW) == dict.fromkeys(ALL, 10)


async def test_a_node_that_nothing_is_known_of_is_left_in(ask: Start) -> None:
    asking = ask(DB.on("n1"), options=REQUIRED)
    assert await asking.left(NEW, "n2", "fresh") == ["fresh"]
    assert await asking.scores(NEW, "n2", "fresh") == {"n2": 0, "fresh": 10}


async def test_scores_are_in_proportion_and_only_the_fewest_get_ten(ask: Start) -> None:
    hosts = {
        "a1": "a",
        "a2": "a",
        "a3": "a",
        "a4": "a",
        "b1": "b",
        "b2": "b",
        "c1": "c",
        "c2": "c",
        "c3": "c",
        "d1": "d",
    }
    replicas = [a_pod(f"db-{node}").labels(app="db").on(node) for node in ("a1", "a2", "a3", "b1", "c1", "c2")]
    asking = ask(*replicas, hosts=hosts)
    assert await asking.scores(NEW, "a4", "b2", "c3", "d1") == {"a4": 0, "b2": 6, "c3": 3, "d1": 10}
    assert await asking.scores(NEW, "a4", "b2") == {"a4": 0, "b2": 10}
    assert await asking.scores(NEW, "a4") == {"a4": 10}


@pytest.mark.parametrize("key", [Options().host_keys[0], ALIAS])
async def test_a_term_on_the_host_key_is_judged_by_the_live_host_whatever_the_labels_say(ask: Start, key: str) -> None:
    asking = ask(DB.on("n1"))
    for name in ALL:  # labels of long ago: every node on a host of its own
        asking.site.put_node(a_node(name).labels({key: f"old-{name}"}))
    apart = a_pod("db-9").labels(app="db").apart(term(key, app("db")))
    # Even where PhysicalHost only prefers: this is the pod's own rule. Evicting db-0 would help n1.
    refused = dict.fromkeys(("n1", "n2"), told(REASON_ANTI_AFFINITY))
    assert await asking.filter(apart) == (["n3", "n4", "n5"], refused, {})
    theirs = ask(DB.apart(term(key, app("web"))).on("n1"))
    assert await theirs.filter(a_pod("w").labels(app="web")) == (
        ["n3", "n4", "n5"],
        dict.fromkeys(("n1", "n2"), told(REASON_EXISTING)),
        {},
    )


async def test_affinity_on_the_host_key_wants_a_pod_on_the_live_host(ask: Start) -> None:
    near = a_pod("web").near(term(ALIAS, app("db")))
    nobody, unknown = "no pod with app in (db) is there", f"label {ALIAS} is missing"
    refused = {
        "n3": f"{REASON_AFFINITY}: {nobody}",
        "n4": f"{REASON_AFFINITY}: {nobody}",
        "n5": f"{REASON_AFFINITY}: {unknown}",
    }
    assert await ask(DB.on("n1")).filter(near) == (["n1", "n2"], refused, refused)
    first = a_pod("db-0").labels(app="db").near(term(ALIAS, app("db")))
    assert await ask().left(first) == ["n1", "n2", "n3", "n4"]


async def test_a_strict_spread_over_hosts_counts_live_hosts(ask: Start) -> None:
    new = a_pod("db-9").labels(app="db").spreads(spread(ALIAS, app("db")))
    left, failed, unresolvable = await ask(DB.on("n1")).filter(new)
    assert left == ["n3", "n4"]
    assert {name: reason for name, reason in failed.items() if name != "n5"} == dict.fromkeys(
        ("n1", "n2"), told(REASON_NOT_SPREAD)
    )
    assert list(unresolvable) == ["n5"]  # its host is unknown: it has no such domain


async def test_terms_of_other_keys_are_left_to_kube_scheduler(ask: Start) -> None:
    pod = a_pod("w").labels(app="db").apart(term(HOST, app("db"))).near(term(ZONE, app("gone"))).needs(cpu="99")
    assert await ask(DB.on("n1"), options=REQUIRED).left(pod.spec(nodeSelector={"no": "where"}), "n1", "n3") == [
        "n1",
        "n3",
    ]


async def test_a_moved_vm_counts_where_it_runs_now(ask: Start) -> None:
    asking = ask(DB.on("n1"), options=REQUIRED)
    assert await asking.left(NEW) == ["n1", "n3", "n4", "n5"]
    asking.site.move("n3", "h1")
    assert await asking.left(NEW) == ["n1", "n4", "n5"]
    asking.site.move("n1", "h2")
    assert await asking.left(NEW) == ["n1", "n2", "n3", "n5"]


async def test_pods_and_nodes_that_come_and_go_are_followed_without_compiling_anew(ask: Start) -> None:
    asking = ask(DB.on("n1"), NEW, options=REQUIRED)
    assert await asking.left(NEW) == ["n1", "n3", "n4", "n5"]
    asking.site.put(a_pod("db-1").labels(app="db").on("n3"))
    asking.site.put_node(a_node("m0"))
    asking.site.move("m0", "h2")
    assert await asking.left(NEW) == ["n1", "n3", "n5"]
    asking.site.drop(DB)
    asking.site.drop_node("n4")
    assert await asking.left(NEW) == ["n1", "n2", "n3", "n5"]
    asking.site.put(a_pod("db-2").labels(app="db").on("late"))  # before its node
    asking.site.put_node(a_node("late"))
    asking.site.move("late", "h1")
    assert await asking.left(NEW) == ["n3", "n5", "late"]
    assert asking.extender.follower.compiled == 1


async def test_a_pod_of_a_kind_that_was_never_seen_is_judged_from_the_question(ask: Start) -> None:
    asking = ask(a_pod("x").labels(tier="gold").on("n1"), NEW, options=REQUIRED)
    assert await asking.left(NEW) == ALL
    unheard = a_pod("y").apart(term(HOST, {"matchLabels": {"tier": "gold"}}))  # no selector has named this label yet
    assert await asking.left(unheard) == ["n1", "n3", "n4", "n5"]
    assert asking.extender.follower.compiled == 1


async def test_a_pod_of_the_same_name_that_is_still_shown_is_gone(ask: Start) -> None:
    asking = ask(a_pod("db-9").labels(app="db").on("n1"), options=REQUIRED, wait=0.0)
    again = msgspec.structs.replace(built(NEW).metadata, uid="another")
    assert await asking.left(msgspec.structs.replace(built(NEW), metadata=again)) == ALL


async def test_nodes_that_come_whole_go_back_as_they_came(ask: Start) -> None:
    asking = ask(DB.on("n1"), NEW, options=REQUIRED)
    nodes = [{"metadata": {"name": name}, "spec": {"podCIDR": f"10.0.0.{at}/24"}} for at, name in enumerate(ALL)]
    body = json.dumps({"Pod": json.loads(encode(built(NEW))), "Nodes": {"items": nodes}, "NodeNames": None})
    answer = await asking.extender.filter(msgspec.json.decode(body, type=wire.ExtenderArgs))
    assert answer.nodes is not None and answer.node_names is None
    assert [json.loads(bytes(item)) for item in answer.nodes.items or ()] == [
        node for node in nodes if node["metadata"]["name"] != "n2"
    ]
    assert answer.failed_nodes == {"n2": told(REASON_SHARED_HOST)}


async def test_no_nodes_are_no_nodes(ask: Start) -> None:
    asking = ask(DB.on("n1"), NEW)
    empty = await asking.extender.filter(wire.ExtenderArgs(built(NEW), node_names=[]))
    assert (empty.node_names, empty.failed_nodes) == ([], {})
    assert await asking.extender.prioritize(wire.ExtenderArgs(built(NEW), node_names=[])) == []
    whole = await asking.extender.filter(wire.ExtenderArgs(built(NEW), wire.NodeList(None)))
    assert whole.nodes == wire.NodeList([])


@pytest.mark.parametrize(
    ("args", "why"),
    [
        pytest.param(wire.ExtenderArgs(built(NEW)), "NodeNames (nodeCacheCapable) or Nodes is expected", id="no nodes"),
        pytest.param(
            wire.ExtenderArgs(built(NEW), wire.NodeList([msgspec.Raw(b'{"metadata": 1}')])),
            "Nodes: Expected `object`, got `int` - at `$.metadata`",
            id="a node that is none",
        ),
        pytest.param(
            wire.ExtenderArgs(built(a_pod("w").apart({"topologyKey": 1})), node_names=["n1"]),
            "Pod shop/w: spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
            "expected a string, got an integer",
            id="a pod that breaks the API's rules",
        ),
        pytest.param(
            wire.ExtenderArgs(built(a_pod("")), node_names=["n1"]),
            "Pod: metadata.name and metadata.namespace are expected",
            id="a pod without a name",
        ),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused_by_its_place(
    ask: Start, args: wire.ExtenderArgs, why: str
) -> None:
    with pytest.raises(InputError) as caught:
        await ask(DB.on("n1")).extender.filter(args)
    assert str(caught.value) == why


async def test_nothing_is_answered_of_a_site_that_is_not_ready(ask: Start) -> None:
    asking = ask(DB.on("n1"))
    asking.site.unsure_of = "vsphere has not listed hosts"
    for question in (asking.filter(NEW), asking.scores(NEW), asking.bind(NEW, "n3"), asking.preempt(NEW, {})):
        with pytest.raises(Unready, match=r"^vsphere has not listed hosts$"):
            await question
    assert asking.site.performed == []
    asking.site.unsure_of = None
    assert await asking.left(NEW) == ALL


async def test_a_pod_that_cannot_be_judged_silences_the_extender_until_it_is_gone(ask: Start) -> None:
    broken = a_pod("bad").apart({"topologyKey": 1}).on("n1")
    asking = ask(broken)
    for _ in range(2):
        with pytest.raises(Unready, match=r"^the site cannot be judged: Pod shop/bad: spec\.affinity"):
            await asking.filter(NEW)
    asking.site.drop(broken)
    assert await asking.left(NEW) == ALL


# ------------------------------------------------------------------------------------------------------------ preempt
async def test_victims_pass_through_where_the_host_rules_let_the_pod_in(ask: Start) -> None:
    low = a_pod("low").on("n3")
    asking = ask(DB.on("n1"), low, options=REQUIRED)
    assert await asking.preempt(NEW, {"n2": [low], "n3": [low]}) == {"n3": ["uid-shop-low"]}
    assert await ask(DB.on("n1"), low).preempt(NEW, {"n2": [low]}) == {"n2": ["uid-shop-low"]}  # preferred


async def test_a_victim_that_is_in_the_way_itself_makes_room_on_its_own_node(ask: Start) -> None:
    apart = a_pod("db-9").labels(app="db").apart(term(ALIAS, app("db")))
    asking = ask(DB.on("n1"))
    other = a_pod("other").on("n1")
    assert await asking.preempt(apart, {"n1": [DB]}) == {"n1": ["uid-shop-db-0"]}
    assert await asking.preempt(apart, {"n1": [other]}) == {}


async def test_victims_that_come_whole_go_back_by_uid(ask: Start) -> None:
    asking = ask(DB.on("n1"), options=REQUIRED)
    args = wire.ExtenderPreemptionArgs(built(NEW), {"n3": wire.Victims([built(DB)], 2)})
    answer = await asking.extender.preempt(args)
    assert answer.node_name_to_meta_victims == {"n3": wire.MetaVictims([wire.MetaPod("uid-shop-db-0")], 2)}
    with pytest.raises(InputError, match=r"^NodeNameToMetaVictims"):
        await asking.extender.preempt(wire.ExtenderPreemptionArgs(built(NEW)))


# --------------------------------------------------------------------------------------------------------------- bind
async def test_a_binding_is_an_order_to_the_binder(ask: Start) -> None:
    asking = ask(DB.on("n1"), NEW)
    assert await asking.bind(NEW, "n3") == ""
    [(action, refused)] = asking.site.performed
    assert (action.kind, action.target, action.desired) == (
        "bind",
        "pod/shop/db-9",
        {"uid": "uid-shop-db-9", "node": "n3", "labels": {"node.cluster.x-k8s.io/esxi-host": "esx-h2"}},
    )
    assert (action.because, action.snapshot, refused) == (
        "kube-scheduler chose n3 for shop/db-9 of site default",
        {"pods": 7},
        None,
    )


@pytest.mark.parametrize(
    ("result", "error"),
    [
        pytest.param(("noop", "bound to n3 already"), "", id="bound already"),
        pytest.param(
            ("dry-run", "would bind to n3"), "dry-run: would bind to n3; sinks.bindings is not enabled", id="a dry run"
        ),
        pytest.param(("refused", "bound to n4 already"), "refused: bound to n4 already", id="refused"),
        pytest.param(("failed", "timed out"), "failed: timed out", id="failed"),
    ],
)
async def test_what_the_binder_did_is_the_answer(ask: Start, result: tuple[str, str], error: str) -> None:
    asking = ask(DB.on("n1"), NEW)
    asking.site.result = result
    assert await asking.bind(NEW, "n3") == error


async def test_a_binding_to_a_host_that_a_replica_has_come_to_is_refused(ask: Start) -> None:
    asking = ask(DB.on("n1"), NEW, options=REQUIRED)
    assert "n3" in await asking.left(NEW)
    asking.site.move("n3", "h1")  # between the filter and the binding
    assert await asking.bind(NEW, "n3") == f"refused: {told(REASON_SHARED_HOST)}"
    assert await asking.bind(NEW, "n4") == ""
    assert [refused for _, refused in asking.site.performed] == [told(REASON_SHARED_HOST), None]


async def test_a_binding_to_a_node_that_is_not_shown_yet_is_left_to_the_binder(ask: Start) -> None:
    asking = ask(NEW)
    asking.site.result = ("refused", "there is no node n77")
    assert await asking.bind(NEW, "n77") == "refused: there is no node n77"
    assert [refused for _, refused in asking.site.performed] == [None]


async def test_being_asked_whether_it_answers_makes_the_picture_before_it_is_needed(ask: Start) -> None:
    asking = ask(DB.on("n1"), NEW, options=REQUIRED)
    asking.extender.check()
    asking.extender.check()
    assert await asking.left(NEW) == ["n1", "n3", "n4", "n5"]
    asking.extender.check()
    await asking.left(NEW)
    assert asking.extender.follower.compiled == 1


async def test_a_pod_that_is_not_shown_yet_is_bound_and_its_uid_left_to_the_binder(ask: Start) -> None:
    asking = ask()
    assert await asking.bind(a_pod("new"), "n1", "some-uid") == ""
    assert asking.site.performed[0][0].desired == {
        "uid": "some-uid",
        "node": "n1",
        "labels": {"node.cluster.x-k8s.io/esxi-host": "esx-h1"},
    }
