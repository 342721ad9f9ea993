"""Pods that are being placed: what the extender makes of its own recent answers until the picture shows them."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import pytest
from support.build import HOST, ZONE, PodBuilder, a_node, a_pod, app, spread, term
from support.sites.extender import FakeSite, Start, built, questions, version_of

from underhost.agents.extender.judge import REASON_MAY_SHARE
from underhost.agents.extender.messages import reason_of
from underhost.agents.rules.physical_host import REASON_SHARED_HOST
from underhost.agents.site.objects import shared_parts
from underhost.agents.site.snapshot import Options
from underhost.schemas.kubernetes import Condition, Pod
from underhost.schemas.topics import PODS

REQUIRED = Options(physical_host="required")
ALIAS = "alpha.cna.vmware.com/host"
HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2", "n5": "h3", "n6": "h3"}
ALL = sorted(HOSTS)


def replica(number: int, key: str = HOST) -> PodBuilder:
    """Of `db`, apart from the others by anti-affinity."""
    return a_pod(f"db-{number}").labels(app="db").apart(term(key, app("db")))


def spreading(number: int) -> PodBuilder:
    """Of `db`, apart from the others by a strict spread."""
    return a_pod(f"db-{number}").labels(app="db").spreads(spread(HOST, app("db")))


A, B, C = replica(1), replica(2), replica(3)


@pytest.fixture
def ask() -> Iterator[Start]:
    """Begins to ask about a site with these pods; an answer that waits does so for ever unless `wait` is given."""
    with questions(HOSTS) as start:
        yield start


def but(*nodes: str) -> list[str]:
    """All nodes but these: what kube-scheduler offers once it has given these to replicas."""
    return [name for name in ALL if name not in nodes]


# ---------------------------------------------------------------------------------------------------- where they may be
async def test_the_only_node_that_was_left_is_where_the_pod_is(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    assert await asking.left(A, "n1") == ["n1"]
    left, failed, _ = await asking.filter(B, *but("n1"))
    assert (left, failed) == (["n3", "n4", "n5", "n6"], {"n2": f"{REASON_SHARED_HOST}: db-1 is on esx-h1"})


async def test_what_the_scheduler_offers_to_the_next_replica_says_where_the_first_went(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    assert await asking.left(A, *ALL) == ALL
    assert await asking.left(B, *but("n3")) == ["n1", "n2", "n5", "n6"]  # so A went to n3
    assert await asking.left(C, *but("n3", "n5")) == ["n1", "n2"]  # and B to n5
    assert await asking.left(replica(4), *but("n3", "n5", "n1")) == []
    assert asking.extender.assumed == 3


async def test_in_preferred_mode_the_next_replica_gets_another_host_by_score(ask: Start) -> None:
    asking = ask()
    assert await asking.scores(A, *ALL) == dict.fromkeys(ALL, 10)
    assert await asking.left(B, *but("n3")) == but("n3")
    assert await asking.scores(B, *but("n3")) == {"n1": 10, "n2": 10, "n4": 0, "n5": 10, "n6": 10}


async def test_a_term_on_the_host_key_leaves_the_whole_host_and_that_is_enough(ask: Start) -> None:
    asking = ask()
    for name, host in HOSTS.items():
        asking.site.put_node(a_node(name).labels({ALIAS: host}))
    one, two = replica(1, ALIAS), replica(2, ALIAS)
    assert await asking.left(one, *ALL) == ALL
    # kube-scheduler knows the host by its label; n4's VM has come from h2 to h1 meanwhile, and no label says so yet
    asking.site.move("n4", "h1")
    assert await asking.left(two, *but("n1", "n2")) == ["n3", "n5", "n6"]


async def test_a_node_without_the_key_may_be_offered_to_both(ask: Start) -> None:
    asking = ask(wait=0)
    one, two = replica(1, ALIAS), replica(2, ALIAS)  # no node carries the host label, so kube-scheduler sees no term
    assert await asking.left(one, "n1", "n3") == ["n1", "n3"]
    assert await asking.left(two, "n1", "n3", "n5") == ["n5"]


async def test_of_a_sample_of_nodes_only_hosts_where_the_first_may_be_are_avoided(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    assert await asking.left(A, "n1", "n3") == ["n1", "n3"]
    left, failed, unresolvable = await asking.filter(B, "n2", "n4", "n5", "n6")
    assert left == ["n5", "n6"]
    assert failed == unresolvable
    assert failed == {"n2": f"{REASON_MAY_SHARE}: db-1 on esx-h1", "n4": f"{REASON_MAY_SHARE}: db-1 on esx-h2"}
    preferred = ask()
    await preferred.left(A, "n1", "n3")
    preferred.site.put(a_pod("x").labels(app="db").on("n5"))
    assert await preferred.scores(B, "n2", "n6") == {"n2": 10, "n6": 0}  # may share is better than shares
    assert await preferred.scores(B, "n2", "n3", "n6") == {
        "n2": 5,
        "n3": 10,  # if A is on n3, this is kube-scheduler's to refuse
        "n6": 0,
    }


async def test_what_was_prioritized_narrows_what_was_filtered(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, *ALL)
    await asking.scores(A, "n1", "n2")  # another extender has refused the others
    assert await asking.left(B, "n3", "n4", "n5") == ["n3", "n4", "n5"]
    assert asking.extender.assumed == 2


async def test_the_nominated_node_is_where_the_pod_will_be(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n1", "n3", "n5")
    asking.site.put(A.nominated("n3"))
    assert await asking.left(B, "n2", "n4", "n6") == ["n2", "n6"]


async def test_another_scheduler_does_not_know_where_this_one_puts_its_pods(ask: Start) -> None:
    asking = ask(options=REQUIRED, wait=0)
    await asking.left(A, "n1", "n3")
    foreign = B.spec(schedulerName="other")
    asking.site.put(foreign)
    assert await asking.left(foreign, "n1", "n3") == ["n1", "n3"]  # A may be there, on the very node
    asking.site.drop(foreign)
    assert await asking.left(C, "n2", "n4", "n6") == ["n6"]  # nothing was learnt of A


async def test_pods_that_nothing_keeps_apart_are_not_remembered(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    assert await asking.left(a_pod("web-0").labels(app="web"), "n1") == ["n1"]
    assert asking.extender.assumed == 0
    assert await asking.left(A, "n2") == ["n2"]
    assert asking.extender.assumed == 1


# ---------------------------------------------------------------------------------------------------- answers that wait
async def test_if_only_pods_on_their_way_are_in_doubt_the_answer_waits_for_the_picture(ask: Start) -> None:
    """Spread constraints let pods meet: what is offered says nothing of where the first has gone."""
    asking = ask(options=REQUIRED)
    one, two = spreading(1), spreading(2)
    assert await asking.left(one, *ALL) == ALL
    waiting = asyncio.create_task(asking.left(two, *ALL))
    await asyncio.sleep(0)
    asking.site.put(a_pod("unrelated").on("n6"))
    asking.site.put(one.on("n3"))
    assert await waiting == ["n1", "n2", "n3", "n5", "n6"]


async def test_a_binding_of_ours_ends_the_wait(ask: Start) -> None:
    asking = ask()
    one, two = spreading(1), spreading(2)
    asking.site.put(one)
    await asking.left(one, *ALL)
    waiting = asyncio.create_task(asking.left(two, *ALL))
    await asyncio.sleep(0)
    assert await asking.bind(one, "n3") == ""
    assert await waiting == ALL
    assert await asking.scores(two, *ALL) == {"n1": 10, "n2": 10, "n3": 10, "n4": 0, "n5": 10, "n6": 10}


async def test_an_answer_waits_for_a_pod_once_and_then_keeps_to_what_is_safe(ask: Start) -> None:
    asking = ask(options=REQUIRED, wait=0)
    one, two, three = spreading(1), spreading(2), spreading(3)
    await asking.left(one, *ALL)
    for later in (two, three):
        left, failed, _ = await asking.filter(later, *ALL)
        assert (left, {reason_of(one) for one in failed.values()}) == ([], {REASON_MAY_SHARE})
    preferred = ask(wait=0)
    await preferred.left(one, *ALL)
    assert await preferred.left(two, *ALL) == ALL
    assert await preferred.scores(two, *ALL) == dict.fromkeys(ALL, 10)


async def test_nothing_waits_while_some_node_is_surely_free(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    one, two = spreading(1), spreading(2)
    await asking.left(one, "n1", "n3")
    assert await asking.left(two, "n2", "n5") == ["n5"]
    assert await asking.left(two, "n2", "fresh") == ["fresh"]  # nothing is known of its host


# ------------------------------------------------------------------------------------------------------------ their end
async def test_a_pod_that_the_picture_shows_bound_counts_once(ask: Start) -> None:
    asking = ask()
    asking.site.put(A)
    await asking.left(A, "n1")
    one_conflict = {"n2": 5, "n4": 0, "n6": 10}
    asking.site.put(a_pod("x1").labels(app="db").on("n3"))
    asking.site.put(a_pod("x2").labels(app="db").on("n3"))
    assert await asking.scores(B, "n2", "n4", "n6") == one_conflict
    asking.site.put(A.on("n1"))
    assert await asking.scores(B, "n2", "n4", "n6") == one_conflict
    assert asking.extender.assumed == 1  # B


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda site: site.put(A.on("n6")), id="it is bound elsewhere"),
        pytest.param(lambda site: site.drop(A), id="it is deleted"),
        pytest.param(lambda site: site.put(A.deleted()), id="it is being deleted"),
        pytest.param(lambda site: site.put(A.finished("Failed")), id="it has failed"),
        pytest.param(lambda site: site.put(A.spec(nodeName="gone")), id="it is bound to a node that is not there"),
        pytest.param(lambda site: site.put(A, uid="another"), id="it is another pod of that name now"),
        pytest.param(lambda site: put_unschedulable(site, A), id="kube-scheduler says that it is unschedulable"),
    ],
)
async def test_a_pod_is_forgotten_as_soon_as(ask: Start, shown: Callable[[FakeSite], object]) -> None:
    asking = ask(options=REQUIRED)
    asking.site.put(A)
    await asking.left(A, "n1")
    assert await asking.left(B, "n2") == []
    shown(asking.site)
    assert await asking.left(B, "n2") == ["n2"]


def put_unschedulable(site: FakeSite, pod: PodBuilder) -> None:
    shown = site.put(pod)
    status = msgspec.structs.replace(shown.status, conditions=[Condition("PodScheduled", "False", "Unschedulable")])
    put_whole(site, msgspec.structs.replace(shown, status=status))


def put_whole(site: FakeSite, pod: Pod) -> None:
    from underhost.schemas import topics
    from underhost.schemas.keys import Key

    site.rows.put(topics.PODS, Key("default", "pod", pod.metadata.namespace, pod.metadata.name), pod)


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda site: site.put(A), id="its creation"),
        pytest.param(lambda site: site.put(A.labels(app="db", more="yes")), id="a label"),
        pytest.param(lambda site: put_whole(site, failed_before()), id="an attempt before this one"),
        pytest.param(lambda site: site.list_anew(), id="a list that has it"),
        pytest.param(lambda site: site.put(a_pod("other").on("n1")), id="another pod"),
    ],
)
async def test_a_pod_is_not_forgotten_for(ask: Start, shown: Callable[[FakeSite], object]) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n1")
    shown(asking.site)
    assert await asking.left(B, "n2") == []


def failed_before() -> Pod:
    pod = version_of(A.build(), 1000)
    status = msgspec.structs.replace(pod.status, conditions=[Condition("PodScheduled", "False", "Unschedulable")])
    return msgspec.structs.replace(pod, status=status)


async def test_a_pod_that_is_made_anew_counts_once_the_new_one_is_shown(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    asking.site.put(A.on("n5"), uid="old")
    assert await asking.left(built(A), "n1") == ["n1"]
    asking.site.put(A)
    assert await asking.left(B, "n2", "n6") == ["n6"]  # the old one is gone, as there is a new one of its name


# ----------------------------------------------------------------------------------------- who is no scheduler, or lies
@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda site: None, id="there is no pod of that name"),
        pytest.param(lambda site: site.put(A, uid="real"), id="the pod of that name is another"),
        pytest.param(lambda site: site.put(A.on("n5"), uid="real"), id="the pod of that name runs"),
    ],
)
async def test_a_pod_that_only_the_caller_knows_takes_nobodys_host(
    ask: Start, shown: Callable[[FakeSite], object]
) -> None:
    asking = ask(options=REQUIRED, wait=0)
    shown(asking.site)
    asking.invented = True
    for foreign in (A, A.spec(schedulerName="nobody")):
        assert await asking.left(foreign, "n1") == ["n1"]
        assert await asking.scores(foreign, "n1", "n2") == {"n1": 10, "n2": 10}
    asking.invented = False
    assert await asking.left(B, "n2", "n3") == ["n2", "n3"]
    assert asking.extender.assumed == 1  # B


async def test_a_pod_that_kube_scheduler_knows_first_is_waited_for_by_the_next_one(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    asking.invented = True
    assert await asking.left(A, "n1") == ["n1"]
    assert asking.extender.assumed == 0
    waiting = asyncio.create_task(asking.left(B, "n2"))
    await asyncio.sleep(0)
    asking.site.put(A)
    assert await waiting == []
    assert asking.extender.assumed == 1


async def test_an_invented_pod_is_waited_for_once_and_kept_aside_for_ten_seconds(ask: Start) -> None:
    asking = ask(options=REQUIRED, wait=0)
    asking.invented = True
    await asking.left(A, "n1")
    asking.invented = False
    assert await asking.left(B, "n2") == ["n2"]
    asking.site.drop(B)
    asking.now += 10
    await asking.left(a_pod("unrelated"), "n1")
    asking.site.put(A)  # it was no invention, but nobody knows any more where it went
    assert await asking.left(C, "n2") == ["n2"]


@pytest.mark.parametrize("version", ["²", "9" * 5000, ""], ids=["no number", "without an end", "none"])
async def test_an_invented_version_that_is_no_number_spoils_no_later_answer(ask: Start, version: str) -> None:
    asking = ask(options=REQUIRED, wait=0)
    asking.invented = True
    assert await asking.left(version_of(A.build(), version, uid="invented"), "n1") == ["n1"]
    asking.invented = False
    asking.site.put(A)
    assert await asking.left(B, "n2") == ["n2"]
    assert list(asking.extender._assumed.pods()) == ["shop/db-2"]


async def test_inventions_push_nobody_out_that_is_known(ask: Start) -> None:
    asking = ask(options=REQUIRED, wait=0)
    await asking.left(A, "n1")
    asking.invented = True
    for number in range(2, 700):
        await asking.left(replica(number).apart(term(ZONE, app("db"))), "n3")
    held = asking.extender._assumed.pods()
    assert (asking.extender.assumed, len(held), "shop/db-1" in held) == (1, 257, True)


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        pytest.param(599.0, [], id="as long as kube-scheduler may take over volumes"),
        pytest.param(600.0, ["n2"], id="longer than any scheduler takes"),
    ],
)
async def test_a_pod_that_never_comes_is_forgotten_by_time(ask: Start, seconds: float, left: list[str]) -> None:
    asking = ask(A.spec(schedulerName="nobody"), options=REQUIRED)
    assert await asking.left(A.spec(schedulerName="nobody"), "n1") == ["n1"]
    asking.now += seconds
    assert await asking.left(B, "n2") == left


async def test_what_our_own_binder_places_is_not_forgotten_by_time(ask: Start) -> None:
    asking = ask(A, options=REQUIRED)
    asking.site.decide(A, "n1")
    assert await asking.left(B, "n2", "n3") == ["n3"]
    asking.now += 6000
    assert await asking.left(B, "n2", "n3") == ["n3"]


async def test_what_we_have_bound_is_there_whatever_a_scheduler_offers(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    asking.site.put(A)
    await asking.left(A, "n1")
    assert await asking.bind(A, "n1") == ""
    for _ in range(2):
        assert await asking.left(B, "n1", "n2") == ["n1"]
        asking.now += 60


async def test_a_pod_that_a_new_list_lacks_is_gone(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    asking.site.put(A)
    await asking.left(A, "n1")
    await asking.left(B, "n2")
    asking.site.rows.replace(PODS, [], shared_parts())
    assert await asking.left(B, "n2") == ["n2"]


async def test_a_pod_that_is_asked_about_again_begins_anew(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n1")
    await asking.left(A, "n3")
    assert await asking.left(B, "n2", "n4") == ["n2"]
    await asking.left(C, "n5")
    assert await asking.left(A, "n6") == []  # C is there: A is nowhere now
    assert await asking.left(B, "n4") == ["n4"]


async def test_a_failed_binding_ends_it_and_a_binding_outlives_a_failure_that_is_shown(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    asking.site.put(A)
    await asking.left(A, "n1")
    asking.site.result = ("failed", "timed out")
    await asking.bind(A, "n1")
    assert await asking.left(B, "n2") == ["n2"]
    asking.site.result = ("applied", "bound")
    await asking.left(A, "n3")
    assert await asking.bind(A, "n3") == ""
    put_unschedulable(asking.site, A)  # of an attempt before, shown late
    assert await asking.left(C, "n4") == []


async def test_a_pod_answered_for_is_counted_for_one_attempt_where_it_was_answered_best(ask: Start) -> None:
    """A scheduler offers no node where it has put a replica: this one did not put A anywhere."""
    asking = ask(options=REQUIRED)
    await asking.left(A, *ALL)
    await asking.scores(A, *ALL)
    assert await asking.left(B, *ALL) == ["n1", "n3", "n4", "n5", "n6"]  # in case it is no scheduler that asks
    asking.now += 0.9
    assert await asking.left(B, *ALL) == ["n1", "n3", "n4", "n5", "n6"]
    asking.now += 0.1  # the back-off of an attempt
    assert await asking.left(B, *ALL) == ALL


# ----------------------------------------------------------------------------------------------- while the site changes
async def test_positions_of_nodes_may_change_meanwhile(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n3", "n4")
    asking.site.put_node(a_node("a0"))
    asking.site.move("a0", "h1")
    asking.site.drop_node("n4")
    assert await asking.left(B, "a0", "n1", "n4", "n5") == ["a0", "n1", "n4", "n5"]  # n4 is not there any more
    asking.site.put_node(a_node("n31"))
    asking.site.move("n31", "h2")
    assert await asking.left(C, "n31") == []


async def test_a_node_that_goes_takes_the_pods_that_were_sent_there(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n1")
    asking.site.drop_node("n1")
    assert await asking.left(B, "n2") == ["n2"]


async def test_a_vm_that_moves_takes_the_pod_along(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n1")
    asking.site.move("n1", "h3")
    assert await asking.left(B, "n2", "n4", "n6") == ["n2", "n4"]


async def test_they_outlive_a_picture_that_is_compiled_anew(ask: Start) -> None:
    asking = ask(options=REQUIRED)
    await asking.left(A, "n1")
    compiled = asking.extender.follower.compiled
    anywhere = {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}
    choosy = a_pod("y").labels(app="db").apart(term(HOST, {"app": "x"}, namespaceSelector=anywhere))
    assert await asking.left(choosy, "n3") == ["n3"]
    assert await asking.left(a_pod("z", "a-new-namespace"), "n3") == ["n3"]
    assert asking.extender.follower.compiled == compiled + 1
    assert await asking.left(B, "n2", "n4", "n6") == ["n6"]


# ------------------------------------------------------------------------------------------- what the binder is placing
async def test_a_pod_the_binder_is_placing_counts_on_its_node_until_the_picture_shows_it(ask: Start) -> None:
    asking = ask(A, options=REQUIRED)
    assert await asking.left(B, *ALL) == ALL
    asking.site.decide(A, "n1")
    assert await asking.left(C, *ALL) == ["n3", "n4", "n5", "n6"]
    asking.site.put(A.on("n1"))
    # Now kube-scheduler sees it, too, and need not be told of the node itself.
    assert await asking.left(C, *ALL) == ["n1", "n3", "n4", "n5", "n6"]
    assert asking.extender.assumed == 2  # B and C, which are kube-scheduler's


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param("applied", ["n3", "n4", "n5", "n6"], id="bound: the picture will show it"),
        pytest.param("noop", ["n3", "n4", "n5", "n6"], id="bound before"),
        pytest.param("failed", ["n3", "n4", "n5", "n6"], id="nobody knows, and it is tried again"),
        pytest.param("refused", ALL, id="refused: its host is free"),
        pytest.param("dry-run", ALL, id="only tried"),
    ],
)
async def test_what_became_of_its_binding_says_whether_its_host_is_taken(
    ask: Start, result: str, expected: list[str]
) -> None:
    asking = ask(A, options=REQUIRED)
    asking.site.decide(A, "n1")
    await asking.left(B, "n3")  # so that it is counted already
    asking.site.answer(A, result)
    assert await asking.left(B, *ALL) == expected


async def test_a_pod_that_is_decided_anew_counts_only_where_it_goes_now(ask: Start) -> None:
    asking = ask(A, options=REQUIRED)
    asking.site.decide(A, "n1")
    assert await asking.left(B, *ALL) == ["n3", "n4", "n5", "n6"]
    asking.site.decide(A, "n3")
    assert await asking.left(B, *ALL) == ["n1", "n2", "n5", "n6"]
    asking.site.decide(A, None)
    assert await asking.left(B, *ALL) == ALL


async def test_a_pod_that_is_deleted_while_the_binder_places_it_holds_no_host(ask: Start) -> None:
    asking = ask(A, options=REQUIRED)
    asking.site.decide(A, "n1")
    assert await asking.left(B, *ALL) == ["n3", "n4", "n5", "n6"]
    asking.site.drop(A)
    assert await asking.left(B, *ALL) == ALL
