"""When the mover moves: a plan's first wave, re-checked and within its caps, then the plan anew; never in a loop."""

import pytest
from support.build import a_pod, a_workload
from support.sites.moving import MovingSite, replicas

from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import Campaign
from underhost.agents.sinks.moves.decider import MoveDecider
from underhost.agents.sinks.moves.drs_turn import DrsTurn
from underhost.agents.sinks.moves.once_more import UnknownEnds
from underhost.agents.sinks.orders import order, outcome
from underhost.schemas.errors import Refused
from underhost.schemas.records import Action
from underhost.schemas.vsphere import DrsRule
from underhost.streams.settings.sinks import MoveSettings

DAY = 86_400.0


def a_pair(**more: object) -> MovingSite:
    """n1 and n2 share host h1, and run replicas that must not."""
    return MovingSite({"n1": "h1", "n2": "h1"}, *replicas("db", "n1", "n2"), **more)  # type: ignore[arg-type]


def three_pairs(**more: object) -> MovingSite:
    """Three hosts, each with two replicas that must not share one."""
    on = {f"n{at}": f"h{(at + 1) // 2}" for at in range(1, 7)}
    pods = [pod for at in (1, 3, 5) for pod in replicas(f"db{at}", f"n{at}", f"n{at + 1}")]
    return MovingSite(on, *pods, hosts=6, mib=4096, **more)  # type: ignore[arg-type]


def ordered(actions: list[Action]) -> list[tuple[str, object, object]]:
    return [(action.target, action.desired["from"], action.desired["to"]) for action in actions]


def test_one_vm_of_a_pair_is_moved_with_the_finding_that_it_is_for() -> None:
    site = a_pair()
    decider = site.decider()
    [action] = site.decide(decider)
    assert action.target == "vm/vm-n2"
    assert action.desired == {
        "name": "n2",
        "cluster": "C0",
        "from": "h1",
        "to": "h2",
        "from_name": "esx-1",
        "to_name": "esx-2",
        "because": action.desired["because"],
        "namespaces": ["shop"],
        "at": "2026-01-01T00:00:00.000Z",
    }
    assert action.because == f"the fewest moves that leave nothing broken: findings {action.desired['because'][0]}"  # type: ignore[index]


async def test_nothing_more_is_moved_once_nothing_is_broken() -> None:
    site = a_pair()
    decider = site.decider()
    assert await site.run(decider, DAY / 24) == ["applied"]
    assert site.vcenter.moves == [("vm-n2", "h2")]


def test_a_finding_must_have_stood_for_a_while() -> None:
    site = a_pair()
    decider = site.decider(MoveSettings(wait=60))
    assert site.decide(decider) == []
    assert decider.due == 60
    assert site.decide(decider, 59) == []
    assert len(site.decide(decider, 1)) == 1


def test_a_move_is_not_ordered_again_while_it_is_under_way() -> None:
    site = a_pair()
    decider = site.decider()
    assert len(site.decide(decider)) == 1
    assert [site.decide(decider, 60.0) for _ in range(59)] == [[]] * 59


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(MoveSettings(wait=0, per_host=9), 3, id="all of the first wave"),
        pytest.param(MoveSettings(wait=0, per_cluster=2), 2, id="so many in a cluster"),
        pytest.param(MoveSettings(wait=0, per_minute=1), 1, id="so many in a minute"),
    ],
)
async def test_not_more_are_moved_at_once_than_the_caps_say(settings: MoveSettings, expected: int) -> None:
    site = three_pairs()
    decider = site.decider(settings)
    actions = site.decide(decider)
    assert len(actions) == expected
    await site.carry_out(decider, actions)
    assert await site.run(decider, 200) == ["applied"] * (3 - expected)


async def test_of_one_host_not_more_come_and_go_at_once_than_its_cap_says() -> None:
    pods = [*replicas("db", "n1", "n2"), *replicas("web", "n3", "n4")]
    site = MovingSite(dict.fromkeys(("n1", "n2", "n3", "n4"), "h1"), *pods)
    decider = site.decider(MoveSettings(wait=0, per_host=1))
    assert len(site.decide(decider)) == 1


async def test_the_plan_is_made_anew_after_each_wave() -> None:
    site = three_pairs()
    decider = site.decider(MoveSettings(wait=0, per_cluster=1))
    await site.run(decider, 20)
    assert len(site.plans.asked) == 3
    assert len(site.vcenter.moves) == 3


def test_a_plan_that_is_being_made_keeps_nobody_waiting() -> None:
    site = a_pair()
    site.plans.slow = True
    decider = site.decider()
    assert (site.decide(decider), decider.due) == ([], 0.5)
    site.plans.slow = False
    assert len(site.decide(decider, 0.5)) == 1


async def after_a_plan(took: float, taken: float) -> tuple[MovingSite, MoveDecider]:
    """One pair was parted by a plan that took so many seconds and was taken after so many; the other two are new."""
    site = three_pairs()
    everything = site._objects
    site._objects = everything[:2]
    site.plans.slow = True
    decider = site.decider(MoveSettings(wait=0, per_minute=60))
    assert site.decide(decider) == []
    site.plans.slow, site.plans.took = False, took
    await site.carry_out(decider, site.decide(decider, taken))
    site._objects = everything
    return site, decider


async def test_a_plan_that_took_long_is_followed_by_a_rest_whatever_comes_meanwhile() -> None:
    site, decider = await after_a_plan(took=10.0, taken=10.0)
    assert await site.run(decider, 39.0) == []
    assert len(site.plans.asked) == 1
    assert await site.run(decider, 10.0) == ["applied", "applied"]


async def test_a_plan_that_nobody_could_take_is_followed_by_a_rest_for_what_it_took() -> None:
    # Writes have stopped meanwhile, or the machine stood still.
    site, decider = await after_a_plan(took=0.5, taken=3600.0)
    assert await site.run(decider, 10.0) == ["applied", "applied"]


async def test_a_person_waits_for_no_rest() -> None:
    site = three_pairs()
    site.plans.slow = True
    decider = site.decider(MoveSettings(wait=0, per_minute=60))
    site.decide(decider)
    site.plans.slow, site.plans.took = False, 10.0
    await site.carry_out(decider, site.decide(decider, 10.0))
    site._objects += replicas("web", "n1", "n2")
    site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    await site.run(decider, 10.0)
    assert len(site.plans.asked) > 1


@pytest.mark.parametrize("change", ["moved", "full", "closed", "parted"])
def test_what_has_changed_since_a_plan_was_begun_is_seen(change: str) -> None:
    site = a_pair(mib=8192)
    site.plans.slow = True
    decider = site.decider()
    site.decide(decider)
    if change == "moved":
        site.vcenter.at["vm-n2"] = "h3"
    if change == "full":
        site.host("h2", memory_mib=4096)
    if change == "closed":
        site.host("h2", state="maintenance")
    if change == "parted":
        site.vcenter.at["vm-n9"] = "h2"
        site.rules = [DrsRule("licences", "anti-affinity", ["vm-n2", "vm-n9"], cluster="C0")]
    site.plans.slow = False
    assert site.decide(decider, 1.0) == []


def test_a_host_that_a_pod_has_come_to_meanwhile_is_not_moved_to() -> None:
    site = a_pair()
    site.plans.slow = True
    decider = site.decider()
    site.decide(decider)
    site.vcenter.at["vm-n3"] = "h2"
    site._objects += replicas("db", "n1", "n2", "n3")[2:]
    site.plans.slow = False
    assert site.decide(decider, 1.0) == []
    assert ordered(site.decide(decider, 5.0)) == [("vm/vm-n2", "h1", "h3")]


# ------------------------------------------------------------------------------------------------------------ in vain
async def test_a_vm_that_could_not_be_moved_to_a_host_goes_to_another() -> None:
    site = a_pair()
    site.vcenter.failures = [Refused("no")]
    decider = site.decider()
    assert await site.run(decider, 20) == ["failed", "applied"]
    assert site.vcenter.moves[0] == ("vm-n2", "h2")
    assert site.vcenter.moves[1] != ("vm-n2", "h2")


async def test_a_vm_whose_moves_fail_twice_is_left_to_a_person_and_the_other_goes() -> None:
    site = a_pair()
    site.vcenter.failures = [Refused("no"), Refused("no")]
    decider = site.decider(MoveSettings(wait=0, per_minute=60))
    await site.run(decider, 30)
    assert site.vcenter.moves == [("vm-n2", "h2"), ("vm-n2", "h3"), ("vm-n1", "h2")]


async def test_where_no_vm_can_be_moved_a_person_is_told_once_and_nothing_more_is_tried() -> None:
    site = a_pair(hosts=2)
    site.vcenter.failures = [Refused("no")] * 99
    decider = site.decider(MoveSettings(wait=0, per_minute=60))
    results = await site.run(decider, 3600)
    assert len(site.vcenter.moves) == 4
    said = [one for one in site.outcomes if one.result == "refused"]
    assert sorted((one.target, one.reason) for one in said) == [
        (
            f"vm/vm-n{at}",
            "2 moves of it failed or were undone, at last: the vMotion failed: no: it is left to a person",
        )
        for at in (1, 2)
    ]
    assert results.count("refused") == 2


async def test_a_move_that_somebody_undoes_twice_is_left_to_a_person() -> None:
    site = a_pair(hosts=2, overrides={"vm-n2": "manual"})
    decider = site.decider(MoveSettings(wait=0, per_minute=60))
    for _ in range(5):
        await site.run(decider, 90)
        site.vcenter.at["vm-n1"] = "h1"
    await site.run(decider, 90)
    assert site.vcenter.moves == [("vm-n1", "h2")] * 2
    assert site.outcomes[-1].reason.endswith("undone: it is left to a person")


async def test_three_moves_in_vain_stop_all_others_for_a_while() -> None:
    site = three_pairs()
    site.vcenter.failures = [Refused("permission Resource.HotMigrate is missing")] * 3
    decider = site.decider(MoveSettings(wait=0, per_minute=60, per_cluster=1))
    await site.run(decider, 500)
    assert len(site.vcenter.moves) == 3
    await site.run(decider, 300)
    assert len(site.vcenter.moves) > 3


# ------------------------------------------------------------------------------------------------------- DRS, evictor
async def test_a_vm_that_drs_is_to_move_is_left_to_it_for_ten_minutes() -> None:
    site = a_pair()
    rule = DrsRule("underhost-s-db", "anti-affinity", ["vm-n1", "vm-n2"], cluster="C0")
    decider = site.decider(drs=DrsTurn(lambda snapshot: [rule]))
    await site.run(decider, 599)
    assert site.vcenter.moves == []
    await site.run(decider, 10)
    assert site.vcenter.moves == [("vm-n2", "h2")]


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param({"automation": "partiallyAutomated"}, id="a cluster that only proposes"),
        pytest.param({"drs": False}, id="a cluster without DRS"),
        pytest.param(
            {"overrides": {"vm-n1": "partiallyAutomated", "vm-n2": "partiallyAutomated"}}, id="VMs that are excepted"
        ),
    ],
)
def test_where_drs_does_not_move_by_itself_nobody_waits_for_it(cluster: dict[str, object]) -> None:
    site = a_pair(**cluster)
    rule = DrsRule("underhost-s-db", "anti-affinity", ["vm-n1", "vm-n2"], cluster="C0")
    assert len(site.decide(site.decider(drs=DrsTurn(lambda snapshot: [rule])))) == 1


async def test_a_finding_is_left_to_the_evictor_once_no_vmotion_ends_it() -> None:
    site = a_pair(hosts=1)
    decider = site.decider()
    [finding] = decider._evaluator.update(site.snapshot()).findings[:1]
    assert not decider.leaves(finding)
    site.decide(decider)
    assert decider.leaves(finding)
    site.host("h1", state="connected")
    movable = a_pair()
    other = movable.decider()
    movable.decide(other)
    assert not other.leaves(finding)


def test_where_nobody_moves_vms_everything_is_left_to_the_evictor() -> None:
    site = a_pair()
    decider = site.decider(enabled=False)
    [finding] = decider._evaluator.update(site.snapshot()).findings[:1]
    assert (site.decide(decider), site.plans.asked, decider.leaves(finding)) == ([], [], True)


def test_a_finding_that_no_vmotion_is_made_for_is_left_to_the_evictor_at_once() -> None:
    pods = [a_pod(f"web-{at}").labels(app="web").owned_by("ReplicaSet/web").on(f"n{at}") for at in (1, 2)]
    site = MovingSite({"n1": "h1", "n2": "h1"}, a_workload("ReplicaSet", "web", 2), *pods)
    decider = site.decider()
    [finding] = decider._evaluator.update(site.snapshot()).findings
    assert (finding.severity, site.decide(decider), decider.leaves(finding)) == ("co-located", [], True)


# ---------------------------------------------------------------------------------------------------- after a restart
async def test_a_command_without_an_outcome_is_ordered_once_more_just_as_it_was() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    decider = site.decider(earlier=[before])
    [again] = site.decide(decider, 20.0)
    assert (again.target, again.desired) == (before.target, before.desired)
    assert site.decide(decider, 1.0) == []
    await site.carry_out(decider, [again])
    assert await site.run(decider, 120) == []


async def test_the_outcome_of_the_earlier_command_is_the_outcome_of_that_one() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    decider = site.decider(earlier=[before])
    site.decide(decider, 20.0)
    site.vcenter.at["vm-n2"] = "h2"
    decider.observe(outcome(before, "applied", ""), site.now)
    assert await site.run(decider, 120) == []


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        pytest.param("refused", "it was ordered before a restart, and is not what is wanted now", id="refused"),
        pytest.param("failed", "vCenter v: no answer in time", id="nobody knows"),
        pytest.param("failed", "the vMotion failed: no", id="in vain"),
    ],
)
async def test_a_late_answer_to_the_earlier_command_leaves_the_newer_one_under_way(result: str, reason: str) -> None:
    site, settings = three_pairs(), MoveSettings(wait=0, per_cluster=1)
    [first] = site.decide(site.decider(settings))
    before = order("move", first.target, first.desired, first.because, {"pods": 1})
    decider = site.decider(settings, earlier=[before])
    [again] = site.decide(decider, 20.0)
    decider.observe(outcome(before, result, reason), site.now)
    assert site.decide(decider, 10.0) == []
    assert await site.carry_out(decider, [again]) == ["applied"]
    assert await site.run(decider, 200) == ["applied"] * 2


async def test_a_command_that_nobody_answers_is_ordered_again_once_it_counts_as_lost() -> None:
    site, settings = three_pairs(), MoveSettings(wait=0, per_cluster=1)
    [before] = site.decide(site.decider(settings))
    decider = site.decider(settings, earlier=[before])
    [held] = site.decide(decider, 20.0)
    assert site.decide(decider, 59.0) == []
    [again] = site.decide(decider, 1.0)
    assert again.desired == held.desired == before.desired
    assert await site.carry_out(decider, [again]) == ["applied"]
    assert await site.run(decider, 200) == ["applied"] * 2


async def test_a_vm_that_has_arrived_meanwhile_is_not_moved_again() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    site.vcenter.at["vm-n2"] = "h2"
    decider = site.decider(earlier=[before])
    assert await site.run(decider, 120) == ["noop"]
    assert site.vcenter.moves == []


LOST = "vCenter v: no answer in time"


async def test_a_move_whose_answer_is_lost_is_ordered_once_more_and_counts_until_then() -> None:
    site = three_pairs()
    decider = site.decider(MoveSettings(wait=0, per_cluster=1))
    [first] = site.decide(decider)
    await site.vcenter.relocate(first.target.removeprefix("vm/"), "h2")  # which vCenter has begun
    decider.observe(outcome(first, "failed", LOST), site.now)
    assert site.decide(decider, 4.0) == []
    [again] = site.decide(decider, 1.0)
    assert (again.target, again.desired) == (first.target, first.desired)
    site.vcenter.under_way.clear()
    assert await site.carry_out(decider, [again]) == ["applied"]
    assert await site.run(decider, 200) == ["applied"] * 2
    assert len({vm for vm, _ in site.vcenter.moves}) == 3


def test_of_moves_whose_answer_is_lost_the_first_that_is_due_is_looked_at_first() -> None:
    late, soon = (Action(name, "move", f"vm/{name}", {}, "", {}) for name in ("late", "soon"))
    ends = UnknownEnds([], [])
    ends.wait(late, 60.0)
    ends.wait(soon, 10.0)
    assert (ends.due, ends.take(9.0)) == (10.0, [])
    assert (ends.take(10.0), ends.due) == ([soon], 60.0)
    ends.forget("vm/late")
    assert (ends.take(60.0), ends.due) == ([], float("inf"))


async def test_a_move_whose_answer_is_lost_has_its_end_told_to_whoever_follows_it() -> None:
    site = a_pair()
    decider = site.decider(MoveSettings(automatic=False))
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    [first] = site.decide(decider)
    decider.observe(outcome(first, "failed", LOST), site.now)
    assert [step.state for step in campaign.progress.steps] == ["failed"]
    assert await site.run(decider, 20) == ["applied"]
    assert [(step.id, step.state) for step in campaign.progress.steps] == [(first.id, "applied")]
    assert campaign.progress.state == "ended"


async def test_a_move_whose_answer_was_lost_before_a_restart_is_ordered_once_more() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    later = site.decider(earlier=[before], outcomes=[outcome(before, "failed", LOST)])
    [again] = site.decide(later, 20.0)
    assert (again.target, again.desired) == (before.target, before.desired)


async def test_what_is_not_right_any_more_is_only_followed() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    site.host("h2", state="maintenance")
    decider = site.decider(earlier=[before])
    [followed] = site.decide(decider, 20.0)
    assert followed.desired == {**before.desired, "follow": "2026-01-01T00:00:20.000Z"}
    assert await site.carry_out(decider, [followed]) == ["refused"]
    assert await site.run(decider, 20) == ["applied"]
    assert site.vcenter.moves == [("vm-n2", "h3")]


async def test_a_move_that_vcenter_has_begun_counts_though_nobody_wants_it_any_more() -> None:
    site = a_pair()
    decider = site.decider(MoveSettings(wait=0, per_cluster=1))
    [first] = site.decide(decider)
    await site.vcenter.relocate("vm-n2", "h2")
    decider.observe(outcome(first, "failed", LOST), site.now)
    site.host("h2", state="maintenance")
    [followed] = site.decide(decider, 5.0)
    assert followed.desired == {**first.desired, "follow": "2026-01-01T00:00:05.000Z"}
    decider.observe(outcome(followed, "failed", LOST), site.now)
    assert site.decide(decider, 4.0) == []
    [again] = site.decide(decider, 1.0)
    assert await site.carry_out(decider, [again]) == ["applied"]
    assert site.vcenter.moves == [("vm-n2", "h2")]


def test_a_move_whose_answer_is_lost_is_followed_though_the_wall_clock_jumps() -> None:
    site = a_pair()
    decider = site.decider()
    [first] = site.decide(decider)
    decider.observe(outcome(first, "failed", LOST), site.now)
    site.ahead = 7200.0
    [followed] = site.decide(decider, 5.0)
    assert followed.desired == {**first.desired, "follow": "2026-01-01T02:00:05.000Z"}


async def test_a_move_of_a_maintenance_is_only_followed_by_the_mover() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    before = order("move", before.target, {**before.desired, "because": []}, "host h1 is to be empty", {})
    decider = site.decider(earlier=[before])
    [followed] = site.decide(decider, 20.0)
    assert followed.desired == {**before.desired, "follow": "2026-01-01T00:00:20.000Z"}


def test_what_was_followed_before_a_restart_is_followed_by_a_command_of_its_own() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    site.host("h2", state="maintenance")
    [followed] = site.decide(site.decider(earlier=[before]), 20.0)
    [again] = site.decide(site.decider(earlier=[followed]), 20.0)
    assert again.desired == {**before.desired, "follow": "2026-01-01T00:00:40.000Z"}


def test_a_move_of_long_ago_is_not_followed() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    site.host("h2", state="maintenance")
    [other] = site.decide(site.decider(earlier=[before]), 3660.0)
    assert ordered([other]) == [("vm/vm-n2", "h1", "h3")]


async def test_a_command_that_nobody_carried_out_is_no_move_that_was_undone() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    decider = site.decider(earlier=[before])
    [followed] = site.decide(decider, 400.0)
    assert await site.carry_out(decider, [followed]) == ["refused"]
    [anew] = site.decide(decider, 5.0)
    assert (anew.target, anew.desired.get("vain"), anew.desired.get("follow")) == (before.target, None, None)


async def test_what_was_in_vain_is_remembered() -> None:
    site = a_pair()
    [before] = site.decide(site.decider())
    lost = outcome(before, "failed", "the vMotion failed: no")
    later = site.decider(earlier=[before], outcomes=[lost])
    [action] = site.decide(later, 20.0)
    assert ordered([action]) != ordered([before])
    vain = order("move", before.target, {**before.desired, "vain": 2, "why": "no", "refuse": "no"}, "", {})
    [other] = site.decide(site.decider(earlier=[vain]), 20.0)
    assert other.target == "vm/vm-n1"


# ----------------------------------------------------------------------------------------------------- a person asks
async def test_what_a_person_asks_for_is_done_at_once_and_its_end_is_told() -> None:
    site = a_pair()
    decider = site.decider(MoveSettings(automatic=False))
    assert site.decide(decider) == []
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    assert await site.run(decider, 10) == ["applied"]
    assert (campaign.progress.state, campaign.progress.left_findings) == ("ended", [])
    [step] = campaign.progress.steps
    assert (step.vm, step.from_, step.to, step.state) == ("n2", "esx-1", "esx-2", "applied")


async def test_where_the_sink_is_off_it_is_a_dry_run_that_says_so() -> None:
    site = three_pairs()
    decider = site.decider(MoveSettings(per_host=9), enabled=False)
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    assert await site.run(decider, 60, enabled=False) == ["dry-run"] * 3
    assert (campaign.progress.state, campaign.progress.why) == ("ended", "sinks.moves is off: this was a dry run")
    assert [step.state for step in campaign.progress.steps] == ["dry-run"] * 3
    assert len(campaign.progress.left_findings) == 3


async def test_not_more_is_moved_than_a_person_has_asked_for() -> None:
    site = three_pairs()
    decider = site.decider(MoveSettings(automatic=False))
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None, most_vmotions=2)))
    await site.run(decider, 60)
    assert len(site.vcenter.moves) == 2
    assert len(campaign.progress.left_findings) == 1


async def test_what_nothing_ends_is_told_as_left() -> None:
    site = a_pair(hosts=1)
    decider = site.decider(MoveSettings(automatic=False))
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    await site.run(decider, 5)
    assert (campaign.progress.state, len(campaign.progress.left_findings)) == ("ended", 1)


async def test_rules_that_contradict_one_another_are_told_as_the_reason() -> None:
    site = a_pair()
    site.rules = [DrsRule("together", "affinity", ["vm-n1", "vm-n2"], cluster="C0")]
    decider = site.decider(MoveSettings(automatic=False))
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    assert await site.run(decider, 5) == []
    [left] = campaign.progress.left_findings
    assert (campaign.progress.state, campaign.progress.why) == (
        "ended",
        f"{left.id} stays: VM n1 stays where it is: DRS rule together keeps it with others; "
        "VM n2 stays where it is: DRS rule together keeps it with others; no evictions are asked for",
    )


async def test_a_host_that_does_not_say_what_it_has_is_tried_and_vcenter_has_the_last_word() -> None:
    site = a_pair(mib=8192)
    for host in ("h2", "h3", "h4"):
        site.host(host, memory_mib=0)
    site.vcenter.refusals = [Refused("vCenter v: InsufficientResourcesFault: no memory")]
    assert await site.run(site.decider(), 60) == ["refused", "applied"]
    assert site.outcomes[0].reason == "the vMotion failed: vCenter v: InsufficientResourcesFault: no memory"


async def test_one_repair_at_a_time() -> None:
    site = a_pair()
    site.campaigns.add(Campaign("s", RepairTerms()))
    with pytest.raises(Exception, match="another repair is under way"):
        site.campaigns.add(Campaign("s", RepairTerms()))
