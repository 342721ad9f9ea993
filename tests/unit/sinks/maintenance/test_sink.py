"""A host's mode: what the sink does with a command, and what it says became of it."""

from collections.abc import Collection

import msgspec
import pytest
from support.fakes.vcenter import FakeMaintainer

from underhost.agents.sinks.maintenance.sink import DesiredMaintenance, MaintenanceSink, outdated
from underhost.agents.sinks.orders import order
from underhost.schemas.commands import MAINTENANCE
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.records import Action


def a_command(host: str = "h1", mode: str = "enter", **more: object) -> Action:
    desired = DesiredMaintenance(**{"name": f"esx-{host.removeprefix('h')}", "mode": mode, **more})  # type: ignore[arg-type]
    return order(MAINTENANCE, f"host/{host}", msgspec.to_builtins(desired), "a turn", {})


def a_sink(
    hosts: FakeMaintainer, *, enabled: bool = True, vms: Collection[str] | None = ("vm-n1", "vm-n2")
) -> MaintenanceSink:
    return MaintenanceSink(hosts, enabled=enabled, within=60, vms=lambda: vms, look=0)


def a_vcenter(**at: str) -> FakeMaintainer:
    return FakeMaintainer({f"vm-{vm}": host for vm, host in at.items()}, looks=3)


async def test_an_empty_host_enters_and_leaves_and_each_task_is_followed_to_its_end() -> None:
    vcenter = a_vcenter(n1="h2")
    entered = await a_sink(vcenter).apply(a_command())
    assert (entered.result, entered.reason) == ("applied", "put into maintenance mode")
    assert (vcenter.in_maintenance, vcenter.changing) == ({"h1"}, {})
    left = await a_sink(vcenter).apply(a_command(mode="exit"))
    assert (left.result, left.reason) == ("applied", "taken out of maintenance mode")
    assert (vcenter.in_maintenance, vcenter.modes) == (set(), [("h1", "enter"), ("h1", "exit")])


async def test_the_watcher_looks_once_the_mode_is_another_one() -> None:
    looks: list[bool] = []
    vcenter = a_vcenter()
    sink = MaintenanceSink(
        vcenter, enabled=True, within=60, vms=set, refresh=lambda: looks.append("h1" in vcenter.in_maintenance), look=0
    )
    await sink.apply(a_command())
    assert looks == [True]


async def test_the_same_command_once_more_does_nothing() -> None:
    vcenter = a_vcenter()
    await a_sink(vcenter).apply(a_command())
    outcome = await a_sink(vcenter).again(a_command())
    assert (outcome.result, outcome.reason) == ("noop", "it is in maintenance mode already")
    assert vcenter.modes == [("h1", "enter")]


async def test_a_task_that_was_begun_before_a_restart_is_followed_and_not_begun_twice() -> None:
    vcenter = a_vcenter()
    await vcenter.enter_maintenance("h1", 60)
    outcome = await a_sink(vcenter).again(a_command())
    assert (outcome.result, outcome.reason) == ("applied", "a change of its mode was under way (mode-1)")
    assert vcenter.modes == [("h1", "enter")]


@pytest.mark.parametrize(
    ("at", "more", "reason"),
    [
        pytest.param({"n1": "h1"}, {}, "VM n1 runs on it", id="a node's VM is on it"),
        pytest.param({"x": "h1"}, {}, "VM x runs on it", id="a VM of somebody else, that nobody knew of"),
        pytest.param({"n1": "h1"}, {"others": ["vm-n1"]}, "VM n1 runs on it", id="a node's VM is nobody else's"),
        pytest.param({}, {"name": "esx-9"}, "the host is another one now (esx-1)", id="another host"),
        pytest.param({}, {"refuse": "it stopped"}, "it stopped", id="what is only to be said"),
        pytest.param({}, {"mode": "off"}, "not a maintenance command: mode 'off'", id="no such mode"),
    ],
)
async def test_what_must_not_be_done_is_refused(at: dict[str, str], more: dict[str, object], reason: str) -> None:
    vcenter = a_vcenter(**at)
    outcome = await a_sink(vcenter).apply(a_command(**more))  # type: ignore[arg-type]
    assert (outcome.result, outcome.reason, vcenter.modes) == ("refused", reason, [])


async def test_vms_that_are_left_to_drs_do_not_keep_the_host_from_it() -> None:
    vcenter = a_vcenter(x="h1")
    assert (await a_sink(vcenter).apply(a_command(others=["vm-x"]))).result == "applied"


async def test_vspheres_own_vms_do_not_keep_the_host_from_it() -> None:
    vcenter = FakeMaintainer({"vm-vCLS-1": "h1"})
    assert (await a_sink(vcenter).apply(a_command())).result == "applied"


async def test_a_host_that_is_not_connected_stays_as_it_is() -> None:
    vcenter = a_vcenter()
    vcenter.away = {"h1"}
    outcome = await a_sink(vcenter).apply(a_command())
    assert (outcome.result, outcome.reason) == ("refused", "it is not connected")


async def test_what_is_powered_off_may_stay() -> None:
    vcenter = a_vcenter(n1="h1")
    vcenter.off = {"vm-n1"}
    assert (await a_sink(vcenter).apply(a_command())).result == "applied"


async def test_as_long_as_nobody_knows_the_nodes_vms_nothing_is_done() -> None:
    vcenter = a_vcenter()
    outcome = await a_sink(vcenter, vms=None).apply(a_command())
    assert (outcome.result, outcome.reason) == ("failed", "which VMs the nodes run on is not known yet")


async def test_a_dry_run_says_what_it_would_do() -> None:
    vcenter = a_vcenter(n1="h1")
    outcome = await a_sink(vcenter, enabled=False).apply(a_command())
    assert (outcome.result, outcome.reason) == ("dry-run", "would be put into maintenance mode")
    assert vcenter.modes == []


@pytest.mark.parametrize(
    ("refusal", "failure", "result", "reason"),
    [
        pytest.param(
            Refused("no right"), None, "refused", "it could not be put into maintenance mode: no right", id="0"
        ),
        pytest.param(
            None, Refused("timed out"), "failed", "it could not be put into maintenance mode: timed out", id="1"
        ),
        pytest.param(Unreachable("away"), None, "failed", "away", id="2"),
        pytest.param(InputError("no password"), None, "refused", "no password", id="3"),
        pytest.param(None, InputError("no password"), "failed", "no password", id="4"),
    ],
)
async def test_what_vcenter_says_is_told(
    refusal: Exception | None, failure: Exception | None, result: str, reason: str
) -> None:
    vcenter = a_vcenter()
    vcenter.mode_refusals, vcenter.mode_failures = [refusal], [failure]
    outcome = await a_sink(vcenter).apply(a_command())
    assert (outcome.result, outcome.reason, vcenter.in_maintenance) == (result, reason, set())


@pytest.mark.parametrize(
    ("at", "expected"), [("2026-01-01T00:00:00Z", False), ("2025-12-30T00:00:00Z", True), ("", True)]
)
def test_a_command_is_remembered_for_a_day(at: str, expected: bool) -> None:
    assert outdated(a_command(at=at), 1_767_225_600.0) == expected
