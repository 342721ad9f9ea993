"""How hosts have their turn: emptied first, one after another, and stopped by whatever nobody has expected."""

from collections.abc import Callable

import pytest
from support.sites.maintained import MaintainedSite
from support.sites.moving import replicas

from underhost.agents.sinks.maintenance.run import MaintenanceRun
from underhost.agents.whatif.maintenance import Chosen
from underhost.schemas.errors import Refused
from underhost.schemas.vsphere import DrsRule
from underhost.streams.settings.sinks import MaintenanceSettings, MoveSettings

ON = {"n1": "h1", "n2": "h2", "n3": "h3"}
"""Three nodes on three hosts; the fourth has room."""


def a_site(**more: object) -> MaintainedSite:
    return MaintainedSite(ON, *replicas("db", "n1", "n2", "n3"), **more)  # type: ignore[arg-type]


def states(run: MaintenanceRun) -> dict[str, str]:
    return {one.host: one.state for one in run.progress.hosts}


def refusals(site: MaintainedSite) -> list[str]:
    return [one.reason for one in site.outcomes if (one.kind, one.result) == ("maintenance", "refused")]


def hosts(*names: str) -> Chosen:
    return Chosen(hosts=names)


async def test_each_host_is_emptied_before_it_enters_one_after_another() -> None:
    site = a_site()
    run = site.ask(hosts("h1", "h2", "h3"), out=True)
    most = 0
    worker = site.worker()
    for _ in range(60):
        await worker.run(1)
        assert not site.vcenter.in_maintenance & set(site.vcenter.at.values())
        most = max(most, len(site.vcenter.in_maintenance))
    assert (run.progress.done, run.progress.why, most) == (True, "", 1)
    assert site.vcenter.modes == [(host, mode) for host in ("h1", "h2", "h3") for mode in ("enter", "exit")]
    assert states(run) == {"esx-1": "done", "esx-2": "done", "esx-3": "done"}
    assert len(set(site.vcenter.at.values())) == 3
    assert {one.result for one in site.outcomes} == {"applied"}


async def test_without_exit_the_next_host_waits_for_a_person() -> None:
    site = a_site()
    run = site.ask(hosts("h1", "h2"))
    worker = site.worker()
    await worker.run(600)
    assert site.vcenter.modes == [("h1", "enter")]
    assert states(run) == {"esx-1": "maintenance", "esx-2": "waiting"}
    assert run.progress.why == "a person or vLCM, to take esx-1 out of maintenance mode"
    site.vcenter.in_maintenance.clear()
    await worker.run(60)
    assert states(run) == {"esx-1": "done", "esx-2": "maintenance"}
    site.vcenter.in_maintenance.clear()
    await worker.run(60)
    assert run.progress.done


async def test_the_plan_is_made_anew_before_each_step() -> None:
    site = a_site()
    site.ask(hosts("h1"), out=True)
    await site.worker().run(60)
    assert site.rolling.asked == [Chosen(hosts=("h1",), at_once=1), *[Chosen(hosts=("h1",))] * 2]


async def test_several_hosts_have_their_turn_at_a_time_where_the_cap_lets_them() -> None:
    site = MaintainedSite({"n1": "h1", "n2": "h2"})
    site.ask(hosts("h1", "h2"))
    await site.worker(MaintenanceSettings(max_hosts=2)).run(60)
    assert sorted(site.vcenter.modes) == [("h1", "enter"), ("h2", "enter")]


async def test_the_caps_of_the_mover_are_kept() -> None:
    site = MaintainedSite({f"n{at}": "h1" for at in range(1, 6)})
    site.ask(hosts("h1"))
    worker = site.worker(moves=MoveSettings(automatic=False, per_minute=2, per_host=1))
    await worker.run(30)
    assert (len(site.vcenter.moves), site.vcenter.modes) == (2, [])
    await worker.run(300)
    assert (len(site.vcenter.moves), site.vcenter.modes) == (5, [("h1", "enter")])


async def test_a_dry_run_moves_nothing_and_says_so() -> None:
    site = a_site()
    run = site.ask(hosts("h1", "h2"))
    await site.worker(enabled=False).run(60)
    assert (site.vcenter.moves, site.vcenter.modes) == ([], [])
    assert run.progress.why.startswith("sinks.maintenance is off: this was a dry run; ")
    assert [one.reason for one in site.outcomes if one.result == "dry-run"] == ["would be put into maintenance mode"]


async def test_repairs_rest_while_hosts_have_their_turn() -> None:
    site = MaintainedSite({"n1": "h1", "n2": "h2", "n3": "h2"}, *replicas("db", "n2", "n3"))
    run = site.ask(hosts("h1"))
    worker = site.worker(moves=MoveSettings(wait=0, per_minute=60))
    await worker.run(60)
    assert (site.plans.asked, site.vcenter.modes) == ([], [("h1", "enter")])
    site.vcenter.in_maintenance.clear()
    await worker.run(10)
    assert (run.progress.done, len(site.plans.asked)) == (True, 1)


# ------------------------------------------------------------------------------------------------------- what stops it
def a_new_finding(site: MaintainedSite) -> None:
    site._objects += replicas("web", "n3", "n3")


def a_lost_host(site: MaintainedSite) -> None:
    site.host("h4", state="disconnected")


def a_host_that_goes(site: MaintainedSite) -> None:
    del site._hosts["h5"]


def another_ones_maintenance(site: MaintainedSite) -> None:
    site.host("h4", state="maintenance")


SURPRISES = [
    pytest.param(
        a_new_finding,
        "there is a new finding: violation InterPodAffinity shop/web-0; host esx-1 is in maintenance mode;"
        " esx-2 was not begun",
        id="a new finding",
    ),
    pytest.param(
        a_lost_host,
        "host esx-4 is disconnected, and was not; host esx-1 is in maintenance mode; esx-2 was not begun",
        id="a host that is lost",
    ),
    pytest.param(
        a_host_that_goes,
        "host esx-5 is gone from the inventory; host esx-1 is in maintenance mode; esx-2 was not begun",
        id="a host that is gone",
    ),
    pytest.param(
        another_ones_maintenance,
        "host esx-4 is in maintenance mode, and was not; host esx-1 is in maintenance mode; esx-2 was not begun",
        id="a host that somebody else works on",
    ),
]


@pytest.mark.parametrize(("happens", "why"), SURPRISES)
async def test_what_nobody_has_expected_stops_it(happens: Callable[[MaintainedSite], None], why: str) -> None:
    site = a_site(hosts=5)
    run = site.ask(hosts("h1", "h2"))
    worker = site.worker()
    await worker.run(30)
    happens(site)
    await worker.run(30)
    assert (run.progress.state, run.progress.done, run.progress.why) == ("ended", False, why)
    assert refusals(site) == [why]
    site.vcenter.in_maintenance.clear()
    await worker.run(60)
    assert site.vcenter.modes == [("h1", "enter")]


async def test_a_finding_of_before_stops_nothing() -> None:
    site = MaintainedSite({"n1": "h1", "n2": "h2", "n3": "h2"}, *replicas("db", "n2", "n3"))
    run = site.ask(hosts("h1"), out=True)
    await site.worker().run(60)
    assert run.progress.done


async def test_a_move_that_fails_stops_it() -> None:
    site = a_site()
    site.vcenter.failures = [Refused("no")]
    run = site.ask(hosts("h1", "h2"))
    await site.worker().run(60)
    why = "VM n1: the vMotion failed: no; host esx-1 was to be emptied; esx-2 was not begun"
    assert (run.progress.why, refusals(site)) == (why, [why])
    assert (len(site.vcenter.moves), site.vcenter.modes) == (1, [])


@pytest.mark.parametrize("attribute", ["mode_refusals", "mode_failures"])
async def test_a_mode_that_cannot_be_changed_stops_it(attribute: str) -> None:
    site = a_site()
    setattr(site.vcenter, attribute, [Refused("no")])
    run = site.ask(hosts("h1", "h2"), out=True)
    await site.worker().run(60)
    assert run.progress.why == (
        "host esx-1: it could not be put into maintenance mode: no; host esx-1 was to be emptied; esx-2 was not begun"
    )
    assert len(site.vcenter.modes) == (attribute == "mode_failures")


async def test_a_vm_that_comes_to_the_host_stops_it() -> None:
    site = MaintainedSite({"n1": "h1", "n2": "h1", "n3": "h3"})
    run = site.ask(hosts("h1"))
    worker = site.worker(moves=MoveSettings(automatic=False, per_minute=1))
    await worker.run(10)
    site.vcenter.at["vm-n3"] = "h1"
    await worker.run(120)
    assert run.progress.why == "VM n3 came to host esx-1, which is being emptied; host esx-1 was to be emptied"
    assert site.vcenter.modes == []


async def test_a_picture_that_is_too_old_stops_it_once_what_is_under_way_has_ended() -> None:
    site = a_site()
    run = site.ask(hosts("h1"))
    worker = site.worker()
    await worker.run(1)
    actions = worker.decide()
    worker.decider.stand_still("nothing has been heard of vSphere", site.now)
    assert run.progress.why.startswith("what is under way, and then stops: writes stop: nothing has been heard")
    await worker.carry_out(actions)
    worker.decider.stand_still("nothing has been heard of vSphere", site.now)
    why = "writes stop: nothing has been heard of vSphere; host esx-1 was to be emptied"
    assert (run.progress.state, run.progress.why) == ("ended", why)
    await worker.run(5)  # it is heard of again
    assert refusals(site) == [why]


def too_full(site: MaintainedSite) -> None:
    for ref in ("h2", "h3", "h4"):
        site.host(ref, memory_mib=1)


def kept_together(site: MaintainedSite) -> None:
    site.rules = [DrsRule(cluster="C0", name="pair", type="affinity", vms=["vm-n1", "vm-n4"], enabled=True)]


def somebody_elses(site: MaintainedSite) -> None:
    site.foreign = {"licences": "h1"}


IN_VAIN = [
    pytest.param(too_full, "host esx-1 cannot be emptied: no other host of its cluster has room (n1, n4)", id="room"),
    pytest.param(
        kept_together,
        "VM n1 is not moved from host esx-1 to host esx-4: DRS rule pair keeps it with others;"
        " host esx-1 was to be emptied",
        id="VMs that stay together",
    ),
    pytest.param(
        somebody_elses,
        "VM licences on host esx-1 runs no node, and DRS does not move it by itself; host esx-1 was to be emptied",
        id="a VM of somebody else, without DRS",
    ),
]


@pytest.mark.parametrize(("happens", "why"), IN_VAIN)
async def test_a_host_that_cannot_be_emptied_is_left_as_it_is(
    happens: Callable[[MaintainedSite], None], why: str
) -> None:
    site = MaintainedSite({**ON, "n4": "h1"}, mib=100, drs=False)
    happens(site)
    run = site.ask(hosts("h1"))
    await site.worker().run(60)
    assert (run.progress.state, run.progress.why) == ("ended", why)
    assert (site.vcenter.moves, site.vcenter.modes) == ([], [])


async def test_vms_of_somebody_else_are_left_to_drs() -> None:
    site = a_site(drs=True, automation="fullyAutomated")
    site.foreign = {"licences": "h1"}
    site.ask(hosts("h1"))
    await site.worker().run(60)
    [enter] = [one for one in site.orders if one.kind == "maintenance"]
    assert enter.desired["others"] == ["vm-licences"]
    assert ("vm-licences", "h2") not in site.vcenter.moves


async def test_vspheres_own_vms_are_left_to_vsphere() -> None:
    site = a_site(drs=False)
    site.foreign = {"vCLS-1": "h1"}
    run = site.ask(hosts("h1"), out=True)
    await site.worker().run(60)
    assert run.progress.done


# ------------------------------------------------------------------------------------- a worker that dies in the middle
async def test_a_worker_that_dies_moves_nothing_twice_and_the_next_one_says_what_is_left() -> None:
    site = a_site()
    site.ask(hosts("h1", "h2"), out=True)
    worker = site.worker()
    while not (actions := [one for one in worker.decide() if one.kind == "maintenance"]):
        await worker.run(1)
    moves = list(site.vcenter.moves)
    await site.vcenter.enter_maintenance("h1", 60)  # the task goes on in vCenter
    site.vcenter.changing.clear()
    site.vcenter.in_maintenance.add("h1")
    site.campaigns = type(site.campaigns)()
    await site.worker(earlier=site.orders, outcomes=site.outcomes).run(60)
    assert (site.vcenter.moves, site.vcenter.modes) == (moves, [("h1", "enter")])
    assert refusals(site) == [
        "the worker that carried the maintenance out has ended; host esx-1 is in maintenance mode; esx-2 was not begun"
    ]
    assert len(actions) == 1


async def test_a_run_that_has_ended_well_leaves_nothing_to_say() -> None:
    site = a_site()
    site.ask(hosts("h1"), out=True)
    await site.worker().run(60)
    await site.worker(earlier=site.orders, outcomes=site.outcomes).run(60)
    assert refusals(site) == []


async def test_a_run_whose_decider_is_gone_ends_and_says_how_things_stand() -> None:
    site = a_site()
    run = site.ask(hosts("h1", "h2"))
    await site.worker().run(60)
    run.abandon()
    assert run.progress.why == (
        "the worker that carried it out has ended, or has lost the site, and nobody goes on with it;"
        " esx-1 may be in maintenance mode; esx-2 had no turn"
    )
    await site.worker(earlier=site.orders, outcomes=site.outcomes).run(60)
    assert site.vcenter.modes == [("h1", "enter")]
    assert refusals(site) == [
        "the worker that carried the maintenance out has ended; host esx-1 is in maintenance mode; esx-2 was not begun"
    ]


async def test_without_the_right_to_move_vms_it_is_a_dry_run_too() -> None:
    site = a_site()
    run = site.ask(hosts("h1", "h2"))
    await site.worker(moves_enabled=False).run(60)
    assert (site.vcenter.moves, site.vcenter.modes) == ([], [])
    assert run.progress.why.startswith("sinks.moves is off: this was a dry run; host esx-1 was to be emptied")
