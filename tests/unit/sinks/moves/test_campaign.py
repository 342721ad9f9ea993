"""A repair that a person has asked for and that does not end with its vMotions: what it waits for, and how it ends."""

import pytest
from support.build import a_workload
from support.sites.moving import MovingSite, replicas

from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import Campaign
from underhost.agents.sinks.moves.decider import MoveDecider
from underhost.agents.sinks.orders import outcome
from underhost.schemas.errors import InputError, Refused
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import DrsRule
from underhost.streams.settings.sinks import MoveSettings

ASKED = MoveSettings(automatic=False)


def a_held_pair() -> MovingSite:
    """Two replicas that must not share h1, on VMs that a DRS rule holds together; n3 is on another host."""
    pods = [pod.owned_by("ReplicaSet/db").spec(schedulerName="underhost") for pod in replicas("db", "n1", "n2")]
    site = MovingSite({"n1": "h1", "n2": "h1", "n3": "h2"}, a_workload("ReplicaSet", "db", 2), *pods, hosts=2)
    site.rules = [DrsRule("together", "affinity", ["vm-n1", "vm-n2"], cluster="C0")]
    return site


def begun(site: MovingSite) -> tuple[MoveDecider, Campaign, str]:
    """A repair that waits for the evictor, and the id of the finding that it is for."""
    decider = site.decider(ASKED, terms=RepairTerms())
    [finding] = decider._evaluator.update(site.snapshot()).findings
    campaign = site.campaigns.add(Campaign("s", RepairTerms()))
    assert site.decide(decider) == []
    return decider, campaign, finding.id


def of_an_eviction(result: str, reason: str) -> Outcome:
    return outcome(Action("e1", "evict", "pod/shop/db-0", {}, "", {}), result, reason)


def test_what_no_vmotion_ends_is_the_evictors_and_a_person_waits_for_it() -> None:
    decider, campaign, finding = begun(a_held_pair())
    assert (campaign.progress.state, campaign.progress.why) == ("planning", "the evictor")
    assert (decider.hurries(finding), decider.hurries("another"), decider.due) == (True, False, 60.0)


def test_a_repair_ends_once_the_evictor_has_done_its_part() -> None:
    site = a_held_pair()
    decider, campaign, finding = begun(site)
    decider.observe(of_an_eviction("applied", "a shared host"), site.now)
    [step] = campaign.progress.steps
    assert (step.id, step.kind, step.pod, step.state, step.reason) == (
        "e1",
        "evict",
        "shop/db-0",
        "applied",
        "a shared host",
    )
    site.remove("db-0")
    assert site.decide(decider, 1.0) == []
    assert (campaign.progress.state, campaign.progress.left_findings, campaign.progress.why) == ("ended", [], "")
    assert not decider.hurries(finding)


@pytest.mark.parametrize(
    ("result", "ended"),
    [
        pytest.param("refused", True, id="refused"),
        pytest.param("dry-run", True, id="only tried"),
        pytest.param("failed", False, id="tried again later"),
    ],
)
def test_a_pod_that_is_not_evicted_ends_a_repair_with_the_reason(result: str, ended: bool) -> None:
    site = a_held_pair()
    decider, campaign, finding = begun(site)
    decider.observe(of_an_eviction(result, "it is mounted"), site.now)
    found = (campaign.progress.state, [one.id for one in campaign.progress.left_findings], campaign.progress.why)
    expected = ("ended", [finding], "shop/db-0 is not evicted: it is mounted")
    assert found == (expected if ended else ("acting", [], "the evictor"))


def test_a_repair_for_which_nothing_happens_any_more_ends_after_a_quarter_of_an_hour() -> None:
    site = a_held_pair()
    decider, campaign, finding = begun(site)
    for _ in range(14):
        site.decide(decider, 60.0)
    assert campaign.progress.why == "the evictor"
    decider.observe(of_an_eviction("failed", "no answer"), site.now)
    for _ in range(14):
        site.decide(decider, 60.0)
    assert campaign.progress.state == "acting"
    site.decide(decider, 60.0)
    assert (campaign.progress.state, campaign.progress.why) == ("ended", "the evictor comes no further")
    assert [one.id for one in campaign.progress.left_findings] == [finding]


def test_evictions_that_nobody_has_asked_for_are_no_part_of_a_repair() -> None:
    site = MovingSite({"n1": "h1", "n2": "h1"}, *replicas("db", "n1", "n2"))
    decider = site.decider(ASKED)
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    assert len(site.decide(decider)) == 1
    decider.observe(of_an_eviction("refused", "it is mounted"), site.now)
    assert [step.kind for step in campaign.progress.steps] == ["move"]
    assert campaign.progress.state == "acting"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(InputError("too many VMs"), "too many VMs", id="of this site"),
        pytest.param(ValueError("a bug"), "ValueError: a bug", id="a bug"),
    ],
)
def test_a_repair_that_cannot_be_planned_ends_with_the_reason_and_is_the_evictors(error: Exception, why: str) -> None:
    def fail(*args: object) -> None:
        raise error

    site = a_held_pair()
    site.plans._make = fail  # type: ignore[assignment]
    _, campaign, finding = begun(site)
    assert (campaign.progress.state, campaign.progress.why) == ("ended", f"no plan could be made: {why}")
    [left] = campaign.progress.left_findings
    assert left.id == finding
    automatic = site.decider()
    assert not automatic.leaves(left)
    assert (site.decide(automatic), automatic.leaves(left)) == ([], True)


async def test_a_repair_whose_vmotions_are_in_vain_ends_after_three() -> None:
    pods = [pod for at in (1, 3, 5) for pod in replicas(f"db{at}", f"n{at}", f"n{at + 1}")]
    site = MovingSite({f"n{at}": f"h{(at + 1) // 2}" for at in range(1, 7)}, *pods, hosts=6, mib=4096)
    site.vcenter.failures = [Refused("permission Resource.HotMigrate is missing")] * 9
    decider = site.decider(MoveSettings(automatic=False, per_minute=60, per_cluster=1))
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    await site.run(decider, 60)
    assert (campaign.progress.state, campaign.progress.why) == ("ended", "3 moves in a row were in vain")
    assert [step.state for step in campaign.progress.steps] == ["failed"] * 3
    assert len(campaign.progress.left_findings) == 3


async def test_a_repair_says_that_it_waits_for_the_minute_to_pass() -> None:
    pods = [pod for at in (1, 3) for pod in replicas(f"db{at}", f"n{at}", f"n{at + 1}")]
    site = MovingSite({f"n{at}": f"h{(at + 1) // 2}" for at in range(1, 5)}, *pods, hosts=4, mib=4096)
    decider = site.decider(MoveSettings(automatic=False, per_minute=1))
    campaign = site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    await site.run(decider, 10)
    assert (campaign.progress.state, campaign.progress.why) == ("acting", "the vMotions of the last minute")
    assert (len(site.vcenter.moves), decider.due) == (1, 60.0)
    await site.run(decider, 60)
    assert (campaign.progress.state, campaign.progress.why) == ("ended", "")
