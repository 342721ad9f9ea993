"""What one namespace may have of the vMotions: its share of an hour, and its turn among the others."""

import pytest
from support.sites.moving import MovingSite, replicas

from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import Campaign
from underhost.schemas.shares import Capped
from underhost.streams.settings.sinks import MoveSettings

HOUR = 3600
QUICK = MoveSettings(wait=0, per_minute=60)
TOLD = "for its findings no more than 2 vMotions are made in an hour"


def pairs(*namespaces: str) -> MovingSite:
    """For each a host with two replicas that must not share one, of this namespace; as many empty hosts."""
    on = {f"n{at}{which}": f"h{at}" for at in range(1, len(namespaces) + 1) for which in "ab"}
    pods = [
        pod
        for at, namespace in enumerate(namespaces, 1)
        for pod in replicas(f"db{at}", f"n{at}a", f"n{at}b", namespace=namespace)
    ]
    return MovingSite(on, *pods, hosts=2 * len(namespaces), mib=4096)


def moved(site: MovingSite) -> list[str]:
    """Of each move the number of its pair."""
    return [vm.removeprefix("vm-n")[0] for vm, _ in site.vcenter.moves]


async def test_a_namespace_that_has_had_its_share_waits_an_hour() -> None:
    site = pairs("evil", "evil", "evil")
    decider = site.decider(QUICK, share=2)
    await site.run(decider, HOUR - 10)
    assert len(site.vcenter.moves) == 2
    await site.run(decider, 20)
    assert len(site.vcenter.moves) == 3


async def test_who_has_had_its_share_is_told_until_it_has_something_left() -> None:
    site = pairs("evil", "evil", "evil")
    decider = site.decider(QUICK, share=2)
    assert decider.capped == []
    await site.run(decider, 10)
    assert decider.capped == [Capped("moves", "evil", "", TOLD)]
    assert decider.due == pytest.approx(HOUR, abs=10)
    await site.run(decider, HOUR)
    assert decider.capped == []


async def test_a_namespace_is_moved_for_while_another_waits() -> None:
    site = pairs("evil", "evil", "evil", "shop")
    await site.run(site.decider(QUICK, share=1), 60)
    assert "4" in moved(site)
    assert len(site.vcenter.moves) == 2


async def test_namespaces_take_turns_within_the_cap_of_all() -> None:
    site = pairs("evil", "evil", "evil", "shop")
    await site.run(site.decider(MoveSettings(wait=0, per_minute=1)), 119)
    assert sorted(moved(site)) == ["1", "4"]


async def test_of_one_plan_each_namespace_is_served_before_any_is_served_twice() -> None:
    site = pairs("evil", "evil", "evil", "shop")
    actions = site.decide(site.decider(MoveSettings(wait=0, per_cluster=2, per_minute=60)))
    assert sorted(action.desired["namespaces"][0] for action in actions) == ["evil", "shop"]  # type: ignore[index]


async def test_a_move_for_a_finding_that_has_not_stood_long_enough_is_of_a_share_too() -> None:
    """The plan for a finding that has stood long enough is one for all findings."""
    site = pairs("shop", "evil", "evil", "evil")
    site.vcenter.at |= {"vm-n2b": "h5", "vm-n3b": "h6", "vm-n4b": "h7"}
    decider = site.decider(MoveSettings(wait=30, per_minute=60), share=1)
    await site.run(decider, 29)
    site.vcenter.at |= {"vm-n2b": "h2", "vm-n3b": "h3", "vm-n4b": "h4"}
    await site.run(decider, 5)
    assert sorted(moved(site)) in (["1", "2"], ["1", "3"], ["1", "4"])
    await site.run(decider, 60)
    assert len(site.vcenter.moves) == 2


async def test_a_restart_gives_nobody_another_share() -> None:
    site = pairs("evil", "evil", "evil")
    await site.run(site.decider(QUICK, share=2), 10)
    await site.run(site.decider(QUICK, share=2, earlier=site.orders, outcomes=site.outcomes), 60)
    assert len(site.vcenter.moves) == 2


async def test_what_a_person_asks_for_is_nobodys_share() -> None:
    site = pairs("evil", "evil", "evil")
    decider = site.decider(MoveSettings(wait=0, per_minute=60, automatic=False), share=1)
    site.campaigns.add(Campaign("s", RepairTerms(evictions=None)))
    await site.run(decider, 60)
    assert len(site.vcenter.moves) == 3
