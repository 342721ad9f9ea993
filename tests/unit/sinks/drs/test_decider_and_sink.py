"""The DRS translator: which rules are ordered and when, and what the sink does with an order."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.build import HOST, a_node, a_pod, a_site, term
from support.fakes.vcenter import FakeDrsWriter

from underhost.agents.drs.names import rule_name
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.sinks.drs.decider import DrsDecider, NeededRules, Pacing
from underhost.agents.sinks.drs.sink import DrsSink
from underhost.agents.sinks.orders import order
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import Conflict, Gone, Refused, Unreachable
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import Cluster, DrsRule, Vm

DB, WEB, OLD = (rule_name("s", label) for label in ("shop.db", "shop.web", "shop.old"))
OTHER_SITE = rule_name("s-2", "shop.db")


def a_rule(name: str, *vms: str, cluster: str = "C0", **changes: object) -> DrsRule:
    return DrsRule(name=name, type="anti-affinity", vms=list(vms), cluster=cluster, **changes)  # type: ignore[arg-type]


def a_snapshot(*rules: DrsRule, offset: int = 1, vsphere: bool = True) -> Snapshot:
    return Snapshot(
        site="s",
        vms={f"vm-{i}": Vm(name=f"node-{i}", id=f"vm-{i}", host=f"host-{i}") for i in range(1, 8)},
        clusters={"C0": Cluster(name="C0"), "C1": Cluster(name="C1")},
        rules={(rule.cluster, rule.name): rule for rule in rules},
        vsphere=vsphere,
        offsets={"underhost.pods": offset},
    )


class Wanted(list[DrsRule]):
    """The rules that are needed; counts how often it is asked."""

    asked = 0

    def __call__(self, snapshot: Snapshot) -> list[DrsRule]:
        self.asked += 1
        return list(self)


def a_decider(*wanted: DrsRule, pacing: Pacing | None = None) -> tuple[DrsDecider, Wanted]:
    needed = Wanted(wanted)
    return DrsDecider("s", needed, pacing=pacing or Pacing(steady=0.0)), needed


def ordered(actions: Sequence[Action]) -> list[tuple[str, object]]:
    return [(action.target, action.desired.get("vms")) for action in actions]


def answer(action: Action, result: str) -> Outcome:
    return Outcome(action.id, action.kind, action.target, result, "")


# ------------------------------------------------------------------------------------------------------- the decider
def test_a_missing_rule_is_ordered_with_its_members_and_a_reason_for_people() -> None:
    decider, _ = a_decider(a_rule(DB, "vm-2", "vm-1"))
    [action] = decider.decide(a_snapshot(), now=0.0)
    assert action.kind == "drs-rule"
    assert action.target == f"drs-rule/C0/{DB}"
    assert action.desired == {"cluster": "C0", "type": "anti-affinity", "vms": ["vm-1", "vm-2"], "mandatory": False}
    assert action.because == "pods on VMs node-1, node-2 must be on different hosts"
    assert action.snapshot == {"underhost.pods": 1}


@pytest.mark.parametrize(
    ("rule", "because"),
    [
        pytest.param(
            a_rule(DB, *(f"vm-{number}" for number in range(1, 7))),
            "pods on VMs node-1, node-2, node-3, node-4, node-5 and 1 more must be on different hosts",
            id="more VMs than are named",
        ),
        pytest.param(
            DrsRule(name=DB, type="affinity", vms=["vm-1", "vm-2"], cluster="C0"),
            "pods on VMs node-1, node-2 must be on one host",
            id="VMs that must be together",
        ),
    ],
)
def test_the_reason_of_a_rule_names_its_vms_and_says_where_they_must_be(rule: DrsRule, because: str) -> None:
    decider, _ = a_decider(rule)
    assert [action.because for action in decider.decide(a_snapshot(), now=0.0)] == [because]


def test_a_rule_that_is_as_needed_is_left_alone_even_if_somebody_disabled_it() -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    assert decider.decide(a_snapshot(a_rule(DB, "vm-2", "vm-1", key=7, enabled=False)), now=0.0) == []


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(a_rule(DB, "vm-1", "vm-3"), id="other members"),
        pytest.param(a_rule(DB, "vm-1", "vm-2", mandatory=True), id="mandatory"),
    ],
)
def test_a_rule_that_differs_is_ordered_anew(there: DrsRule) -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    assert ordered(decider.decide(a_snapshot(there), now=0.0)) == [(f"drs-rule/C0/{DB}", ["vm-1", "vm-2"])]


@pytest.mark.parametrize(
    "needed",
    [
        pytest.param([], id="nobody needs it"),
        pytest.param([a_rule(DB, "vm-1")], id="one VM is left"),
        pytest.param([a_rule(DB, "vm-1", "vm-1")], id="one VM, named twice"),
    ],
)
def test_an_own_rule_below_two_members_is_removed(needed: list[DrsRule]) -> None:
    decider, _ = a_decider(*needed)
    [action] = decider.decide(a_snapshot(a_rule(DB, "vm-1", "vm-2")), now=0.0)
    assert (action.target, action.desired) == (f"drs-rule/C0/{DB}", {})


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(a_rule("web-apart", "vm-1", "vm-2"), id="an operator's rule"),
        pytest.param(a_rule("underhost-s-by-hand", "vm-1", "vm-2"), id="a rule that only looks like ours"),
        pytest.param(a_rule(OTHER_SITE, "vm-1", "vm-2"), id="a rule of site s-2"),
        pytest.param(DrsRule(name=DB, type="other", cluster="C0"), id="a VM-Host rule, even by our name"),
    ],
)
def test_others_rules_are_never_ordered_away(foreign: DrsRule) -> None:
    decider, _ = a_decider()
    assert decider.decide(a_snapshot(foreign), now=0.0) == []


def test_rules_are_mandatory_only_where_somebody_asks_for_it() -> None:
    wanted = [DrsRule(rule_name("s", "shop.db"), "anti-affinity", ["vm-1", "vm-2"], cluster="C0")]
    for asked in (False, True):
        decider = DrsDecider("s", Wanted(wanted), pacing=Pacing(steady=0.0), mandatory=asked)
        (action,) = decider.decide(a_snapshot(), 0.0)
        assert action.desired["mandatory"] is asked


def test_nothing_is_ordered_for_a_site_without_vsphere() -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    assert decider.decide(a_snapshot(vsphere=False), now=0.0) == []


def test_a_rule_is_not_changed_again_before_vcenter_has_shown_our_last_change() -> None:
    held: dict[str, float] = {}
    needed = Wanted([a_rule(DB, "vm-1", "vm-2")])
    decider = DrsDecider("s", needed, lambda target: held.get(target, 0.0), pacing=Pacing(steady=0.0))
    decider.observe(answer(decider.decide(a_snapshot(), now=0.0)[0], "applied"), now=1.0)
    held[f"drs-rule/C0/{DB}"] = 60.0
    needed[:] = [a_rule(DB, "vm-1", "vm-3")]
    assert decider.decide(a_snapshot(offset=2), now=2.0) == [], "the rule that we added is not in the picture"
    assert decider.due == 60.0
    held.clear()
    there = a_snapshot(a_rule(DB, "vm-1", "vm-2"), offset=3)
    assert ordered(decider.decide(there, now=3.0)) == [(f"drs-rule/C0/{DB}", ["vm-1", "vm-3"])]


def test_two_orders_a_minute_and_cluster_removals_first_and_the_rest_later() -> None:
    decider, _ = a_decider(
        a_rule(DB, "vm-1", "vm-2"), a_rule(WEB, "vm-3", "vm-4"), a_rule(DB, "vm-5", "vm-6", cluster="C1")
    )
    snapshot = a_snapshot(a_rule(OLD, "vm-1", "vm-2"), a_rule(DB, "vm-1", "vm-7"))
    assert ordered(decider.decide(snapshot, now=0.0)) == [
        (f"drs-rule/C0/{OLD}", None),
        (f"drs-rule/C0/{DB}", ["vm-1", "vm-2"]),
        (f"drs-rule/C1/{DB}", ["vm-5", "vm-6"]),
    ]
    assert decider.due == 60.0
    assert decider.decide(snapshot, now=59.0) == []
    assert ordered(decider.decide(snapshot, now=60.0)) == [(f"drs-rule/C0/{WEB}", ["vm-3", "vm-4"])]


def test_what_was_not_written_gives_back_its_own_edit_of_the_minute_and_no_other() -> None:
    names = [rule_name("s", f"shop.{letter}") for letter in "abcd"]
    decider, _ = a_decider(*(a_rule(name, f"vm-{at}", f"vm-{at + 1}") for at, name in enumerate(names, 1)))
    first, second = decider.decide(a_snapshot(), now=0.0)
    decider.observe(answer(first, "applied"), now=1.0)
    decider.observe(answer(second, "noop"), now=1.0)
    assert [action.target for action in decider.decide(a_snapshot(offset=2), now=2.0)] == [f"drs-rule/C0/{names[2]}"]


def test_a_change_is_ordered_once_it_has_been_wanted_unchanged_for_a_while() -> None:
    decider, needed = a_decider(a_rule(DB, "vm-1", "vm-2"), pacing=Pacing(steady=2.0))
    assert (decider.decide(a_snapshot(offset=1), now=0.0), decider.due) == ([], 2.0)
    needed[:] = [a_rule(DB, "vm-1", "vm-2", "vm-3")]  # one more pod is bound
    assert (decider.decide(a_snapshot(offset=2), now=1.5), decider.due) == ([], 3.5)
    assert decider.decide(a_snapshot(offset=3), now=3.4) == []
    assert ordered(decider.decide(a_snapshot(offset=3), now=3.5)) == [(f"drs-rule/C0/{DB}", ["vm-1", "vm-2", "vm-3"])]


def test_a_rule_of_ours_that_has_the_members_already_is_kept_whatever_its_name() -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    assert decider.decide(a_snapshot(a_rule(WEB, "vm-2", "vm-1", key=7)), now=0.0) == []


def test_an_order_under_way_is_not_repeated_until_it_counts_as_lost() -> None:
    decider, needed = a_decider(a_rule(DB, "vm-1", "vm-2"))
    [first] = decider.decide(a_snapshot(), now=0.0)
    needed[:] = [a_rule(DB, "vm-1", "vm-3")]
    assert decider.decide(a_snapshot(offset=2), now=1.0) == []  # one change of a rule at a time
    [second] = decider.decide(a_snapshot(offset=3), now=90.0)
    assert second.desired["vms"] == ["vm-1", "vm-3"]
    assert second.id != first.id


def test_an_applied_order_waits_for_the_watcher_to_show_it() -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    [action] = decider.decide(a_snapshot(), now=0.0)
    decider.observe(answer(action, "applied"), now=1.0)
    assert decider.decide(a_snapshot(offset=2), now=2.0) == []
    assert decider.decide(a_snapshot(a_rule(DB, "vm-1", "vm-2"), offset=3), now=3.0) == []
    again = decider.decide(a_snapshot(offset=4), now=61.0)
    assert ordered(again) == [(f"drs-rule/C0/{DB}", ["vm-1", "vm-2"])]  # somebody removed it


@pytest.mark.parametrize(
    ("result", "pause"),
    [pytest.param("failed", 60.0, id="failed"), pytest.param("refused", 600.0, id="refused")],
)
def test_what_did_not_work_is_ordered_again_after_a_pause(result: str, pause: float) -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    [action] = decider.decide(a_snapshot(), now=0.0)
    decider.observe(answer(action, result), now=10.0)
    assert decider.decide(a_snapshot(offset=2), now=9.9 + pause) == []
    assert len(decider.decide(a_snapshot(offset=3), now=10.0 + pause)) == 1


def test_a_changed_need_does_not_wait_for_the_pause_of_the_old_one() -> None:
    decider, needed = a_decider(a_rule(DB, "vm-1", "vm-2"))
    [action] = decider.decide(a_snapshot(), now=0.0)
    decider.observe(answer(action, "refused"), now=1.0)
    needed[:] = [a_rule(DB, "vm-1", "vm-3")]
    assert ordered(decider.decide(a_snapshot(offset=2), now=2.0)) == [(f"drs-rule/C0/{DB}", ["vm-1", "vm-3"])]


def test_a_dry_run_shows_the_whole_plan_once() -> None:
    decider, _ = a_decider(*(a_rule(name, "vm-1", "vm-2") for name in (DB, WEB, OLD)))
    told = []
    for now in (0.0, 1.0, 2.0, 3.0):
        for action in decider.decide(a_snapshot(offset=int(now)), now=now):
            told.append(action.target)
            decider.observe(answer(action, "dry-run"), now=now)
    assert sorted(told) == sorted(f"drs-rule/C0/{name}" for name in (DB, WEB, OLD))
    assert decider.due is None


def test_an_answer_to_an_older_order_changes_nothing() -> None:
    decider, _ = a_decider(a_rule(DB, "vm-1", "vm-2"))
    [first] = decider.decide(a_snapshot(), now=0.0)
    [second] = decider.decide(a_snapshot(offset=2), now=90.0)
    decider.observe(answer(first, "dry-run"), now=91.0)
    assert second.id != first.id
    assert len(decider.decide(a_snapshot(offset=3), now=180.0)) == 1


def test_the_same_picture_is_compared_once_however_often_it_is_asked_about() -> None:
    decider, needed = a_decider(a_rule(DB, "vm-1", "vm-2"))
    snapshot = a_snapshot()
    for now in range(10):
        decider.decide(snapshot, now=float(now))
    assert needed.asked == 1


# ---------------------------------------------------------------------------------------------------------- the sink
def set_order(name: str = DB, *vms: str, cluster: str = "C0", **changes: object) -> Action:
    desired = {"cluster": cluster, "type": "anti-affinity", "vms": list(vms or ("vm-1", "vm-2")), "mandatory": False}
    return order("drs-rule", f"drs-rule/{cluster}/{name}", {**desired, **changes}, "because", {})


def removal(name: str = DB) -> Action:
    return order("drs-rule", f"drs-rule/C0/{name}", {}, "because", {})


def own_vms() -> frozenset[str]:
    """The VMs that the site's nodes run on."""
    return frozenset(f"vm-{number}" for number in range(1, 40))


class Refreshed:
    """Counts the calls of the callback."""

    times = 0

    def __call__(self) -> None:
        self.times += 1


@pytest.mark.parametrize(
    ("held", "action", "write", "reason"),
    [
        pytest.param([], set_order(), ("add", DB), "added the rule", id="a new rule"),
        pytest.param(
            [a_rule(DB, "vm-1", "vm-3", key=7)], set_order(), ("edit", DB), "changed the rule", id="other members"
        ),
        pytest.param([a_rule(DB, "vm-1", "vm-2", key=7)], removal(), ("remove", DB), "removed the rule", id="removal"),
    ],
)
async def test_an_order_is_one_write_and_the_watcher_is_told(
    held: list[DrsRule], action: Action, write: tuple[str, str], reason: str
) -> None:
    writer, refreshed = FakeDrsWriter(*held), Refreshed()
    result = await DrsSink(writer, "s", vms=own_vms, enabled=True, refresh=refreshed).apply(action)
    assert result == Outcome(action.id, "drs-rule", action.target, "applied", reason)
    assert writer.writes == [write]
    assert refreshed.times == 1


async def test_the_same_order_five_times_is_one_write() -> None:
    writer = FakeDrsWriter()
    sink = DrsSink(writer, "s", vms=own_vms, enabled=True)
    results = await asyncio.gather(*(sink.apply(set_order()) for _ in range(5)))
    assert sorted(result.result for result in results) == ["applied", "noop", "noop", "noop", "noop"]
    assert writer.writes == [("add", DB)]


@pytest.mark.parametrize(
    ("held", "action", "reason"),
    [
        pytest.param([], set_order(), "would add the rule of VMs vm-1, vm-2", id="add"),
        pytest.param([a_rule(DB, "vm-1", "vm-3")], set_order(), "would change the rule of VMs vm-1, vm-2", id="change"),
        pytest.param([a_rule(DB, "vm-1", "vm-3")], removal(), "would remove the rule of 2 VMs", id="remove"),
    ],
)
async def test_a_sink_that_is_not_enabled_says_what_it_would_do_and_writes_nothing(
    held: list[DrsRule], action: Action, reason: str
) -> None:
    writer = FakeDrsWriter(*held)
    result = await DrsSink(writer, "s", vms=own_vms, enabled=False).apply(action)
    assert (result.result, result.reason) == ("dry-run", reason)
    assert writer.writes == []


@pytest.mark.parametrize(
    ("held", "action", "reason"),
    [
        pytest.param(
            [a_rule(DB, "vm-1", "vm-2", key=7)],
            set_order(DB, "vm-2", "vm-1"),
            "the rule is as it should be",
            id="equal",
        ),
        pytest.param(
            [a_rule(DB, "vm-1", "vm-2", key=7, enabled=False)],
            set_order(),
            "the rule is there, but it is disabled: by vCenter, for a conflict with an older rule, or by a person",
            id="equal but disabled",
        ),
        pytest.param([], removal(), "the rule is not there", id="removed already"),
    ],
)
async def test_what_is_as_ordered_already_is_a_noop(held: list[DrsRule], action: Action, reason: str) -> None:
    writer = FakeDrsWriter(*held)
    result = await DrsSink(writer, "s", vms=own_vms, enabled=True).apply(action)
    assert (result.result, result.reason) == ("noop", reason)
    assert writer.writes == []


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(set_order("web-apart"), "rule web-apart is not one of site s's own", id="an operator's name"),
        pytest.param(removal(OTHER_SITE), f"rule {OTHER_SITE} is not one of site s's own", id="another site's name"),
        pytest.param(
            removal("underhost-s-by-hand"), "rule underhost-s-by-hand is not one of site s's own", id="no hash in it"
        ),
        pytest.param(set_order(WEB), f"the name {WEB} is taken by a rule of type other", id="taken by a VM-Host rule"),
        pytest.param(removal(WEB), f"the name {WEB} is taken by a rule of type other", id="removal of a VM-Host rule"),
        pytest.param(
            set_order(OLD), f"the name {OLD} is taken by a rule of type affinity", id="taken by the opposite rule"
        ),
        pytest.param(set_order(cluster="C9"), "no cluster named C9", id="unknown cluster"),
        pytest.param(
            order("drs-rule", f"drs-rule/C0/{DB}", {**set_order().desired, "cluster": "C1"}, "", {}),
            "the command names two clusters, C0 and C1",
            id="two clusters",
        ),
        pytest.param(
            set_order(DB, "vm-1", "vm-99", "vm-98"), "no node of site s runs on VM vm-98, vm-99", id="VMs of others"
        ),
        pytest.param(set_order(DB, "vm-1", "vm-1"), "a VM-VM rule needs at least two VMs", id="one VM"),
        pytest.param(set_order(type="other"), "a rule of type other is not ours to write", id="a type we do not write"),
        pytest.param(
            order("drs-rule", f"drs-rule/C0/{DB}", {"vms": "vm-1"}, "", {}),
            "not a DRS rule command: Expected `array`, got `str` - at `$.vms`",
            id="malformed",
        ),
        pytest.param(
            order("drs-rule", "drs-rule/C0", {}, "", {}),
            "drs-rule/C0 is not the target of a DRS rule",
            id="no rule named",
        ),
    ],
)
async def test_an_order_that_must_not_be_carried_out_is_refused_with_its_reason(action: Action, reason: str) -> None:
    held = [
        DrsRule(name=WEB, type="other", cluster="C0", key=1),
        DrsRule(name=OLD, type="affinity", vms=["vm-1", "vm-2"], cluster="C0", key=2),
        a_rule("web-apart", "vm-1", "vm-2", key=3),
    ]
    writer = FakeDrsWriter(*held)
    result = await DrsSink(writer, "s", vms=own_vms, enabled=True).apply(action)
    assert (result.result, result.reason) == ("refused", reason)
    assert writer.writes == []
    assert list(writer.held.values()) == held


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        pytest.param(Refused("cluster C0: DRS is off"), "refused", id="DRS is off"),
        pytest.param(Conflict("the name is taken"), "failed", id="lost a race"),
        pytest.param(Gone("no such key"), "failed", id="removed meanwhile"),
        pytest.param(Unreachable("no answer in time"), "failed", id="vCenter away"),
    ],
)
async def test_a_write_that_vcenter_rejects_is_an_outcome_and_the_watcher_looks_again(
    fault: Exception, result: str
) -> None:
    writer, refreshed = FakeDrsWriter(), Refreshed()
    writer.faults = [fault]
    outcome = await DrsSink(writer, "s", vms=own_vms, enabled=True, refresh=refreshed).apply(set_order())
    assert (outcome.result, outcome.reason) == (result, str(fault))
    assert refreshed.times == 1


async def test_a_rule_that_somebody_removes_first_is_as_it_should_be() -> None:
    writer = FakeDrsWriter(a_rule(DB, "vm-1", "vm-2", key=7))
    writer.faults = [Gone("no such key")]
    outcome = await DrsSink(writer, "s", vms=own_vms, enabled=True).apply(removal())
    assert (outcome.result, outcome.reason) == ("noop", "the rule is not there")


async def test_a_rule_that_the_server_left_disabled_is_said_so() -> None:
    writer = FakeDrsWriter(conflicting=True)
    result = await DrsSink(writer, "s", vms=own_vms, enabled=True).apply(set_order())
    assert result.result == "applied"
    assert result.reason == (
        "added the rule, but it is disabled: by vCenter, for a conflict with an older rule, or by a person"
    )


async def test_a_rule_that_a_person_disabled_stays_disabled_when_its_members_change() -> None:
    writer = FakeDrsWriter(a_rule(DB, "vm-1", "vm-3", key=7, enabled=False))
    await DrsSink(writer, "s", vms=own_vms, enabled=True).apply(set_order())
    assert writer.held[DB] == a_rule(DB, "vm-1", "vm-2", key=7, enabled=False)


# ------------------------------------------------------------------------------------------------- the two, together
APP = {"app": "db"}
OPERATORS = a_rule("by-hand", "vm-n1", "vm-n4", key=1, mandatory=True)
VM_HOST = DrsRule(name="licence", type="other", cluster="C0", key=2)


def replicas(*nodes: str) -> Snapshot:
    """Replicas that want a node each, on these of five nodes, each on a host of its own."""
    pods = [
        a_pod(f"db-{i}").on(node).labels(APP).owned_by("StatefulSet/db").apart(term(HOST, APP))
        for i, node in enumerate(nodes)
    ]
    where = {f"n{i}": f"h{i}" for i in range(1, 6)}
    return a_site(*[a_node(node) for node in where], *pods, on=where)


async def settle(decider: DrsDecider, writer: FakeDrsWriter, site: Snapshot, start: float) -> list[str]:
    """Let decider and sink work for an hour over a site that stays as it is; what was done."""
    sink, done = DrsSink(writer, site.site, vms=lambda: site.vms.keys(), enabled=True), []
    for minute in range(60):
        now = start + 60.0 * minute
        picture = replace(site, rules={("C0", rule.name): rule for rule in writer.held.values()}, vsphere=True)
        for action in decider.decide(picture, now):
            outcome = await sink.apply(action)
            decider.observe(outcome, now)
            done.append(outcome.reason)
    return done


@pytest.mark.parametrize("seed", range(20))
def test_a_decider_that_knows_the_last_picture_orders_what_a_new_one_would(seed: int) -> None:
    pick, at_once = random.Random(seed), Pacing(steady=0.0, edits=999, failed=0.0, tenant_edits=999)
    kept, needed = a_decider(pacing=at_once)
    there: list[DrsRule] = []
    for now in range(30):
        for rules in (needed, there):
            rules[:] = [rule for rule in rules if pick.random() < 0.7]
            taken = {(rule.cluster, rule.name) for rule in rules}
            vms = pick.sample(["vm-1", "vm-2", "vm-3", "vm-4"], pick.randrange(1, 4))
            fresh = a_rule(pick.choice([DB, WEB, OLD, OTHER_SITE]), *vms, cluster=pick.choice(["C0", "C1"]))
            rules += [] if (fresh.cluster, fresh.name) in taken else [fresh]
        snapshot = a_snapshot(*there, offset=now)
        anew, _ = a_decider(*needed, pacing=at_once)
        orders = kept.decide(snapshot, float(now))
        assert orders == anew.decide(snapshot, float(now))
        for one in orders:
            kept.observe(answer(one, "failed"), float(now))


async def test_while_nobody_knows_the_nodes_vms_a_rule_waits_and_none_is_written() -> None:
    writer = FakeDrsWriter()
    result = await DrsSink(writer, "s", vms=lambda: None, enabled=True).apply(set_order())
    assert (result.result, result.reason) == ("failed", "which VMs the nodes run on is not known yet")
    assert writer.writes == []


async def test_the_rules_follow_the_replicas_and_nobody_elses_rule_changes() -> None:
    writer = FakeDrsWriter(OPERATORS, VM_HOST)
    decider = DrsDecider("default", NeededRules(Evaluator(Options()), Options()))

    def own() -> list[list[str]]:
        return [rule.vms for rule in writer.held.values() if rule not in (OPERATORS, VM_HOST)]

    assert await settle(decider, writer, replicas("n1", "n2", "n3"), 0.0) == ["added the rule"]
    assert own() == [["vm-n1", "vm-n2", "vm-n3"]]
    assert await settle(decider, writer, replicas("n1", "n2", "n5"), 10_000.0) == ["changed the rule"]
    assert own() == [["vm-n1", "vm-n2", "vm-n5"]]
    assert await settle(decider, writer, replicas("n1", "n1"), 20_000.0) == ["removed the rule"]
    assert own() == []
    assert await settle(decider, writer, replicas("n1"), 30_000.0) == []
    assert list(writer.held.values()) == [OPERATORS, VM_HOST]
