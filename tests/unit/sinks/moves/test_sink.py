"""Moving one VM: what the sink does with a command, and what it says became of it."""

from collections.abc import Collection
from pathlib import Path

import msgspec
import pytest
from support.fakes.vcenter import FakeMover

from underhost.agents.sinks.moves.once_more import is_unknown
from underhost.agents.sinks.moves.sink import DesiredMove, MoveSink
from underhost.agents.sinks.moves.writer import VSphereVmMover
from underhost.agents.sinks.orders import order
from underhost.schemas.commands import MOVE
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.records import Action
from underhost.streams.settings.clusters import VSphereSettings

OWN = ("vm-n1", "vm-n2")


def a_move(vm: str = "vm-n1", from_: str = "h1", to: str = "h2", **more: object) -> Action:
    desired = DesiredMove(vm.removeprefix("vm-"), "C0", from_, to, f"esx-{from_}", f"esx-{to}", **more)  # type: ignore[arg-type]
    return order(MOVE, f"vm/{vm}", msgspec.to_builtins(desired), "a plan", {})


def a_sink(mover: FakeMover, *, enabled: bool = True, vms: Collection[str] | None = OWN) -> MoveSink:
    return MoveSink(mover, "s", enabled=enabled, vms=lambda: vms, look=0)


def a_vcenter(**more: int) -> FakeMover:
    return FakeMover({"vm-n1": "h1", "vm-n2": "h1", "vm-other": "h1"}, **more)


async def test_a_vm_is_moved_and_the_task_is_followed_to_its_end() -> None:
    vcenter = a_vcenter(looks=3)
    outcome = await a_sink(vcenter).apply(a_move())
    assert (outcome.result, outcome.reason) == ("applied", "moved from host esx-h1 to host esx-h2")
    assert (vcenter.moves, vcenter.at["vm-n1"], vcenter.under_way) == ([("vm-n1", "h2")], "h2", {})


async def test_the_same_command_once_more_moves_nothing() -> None:
    vcenter = a_vcenter()
    await a_sink(vcenter).apply(a_move())
    outcome = await a_sink(vcenter).again(a_move())
    assert (outcome.result, outcome.reason) == ("noop", "it is on host esx-h2 already")
    assert vcenter.moves == [("vm-n1", "h2")]


async def test_a_task_that_was_begun_before_a_restart_is_followed_and_not_begun_twice() -> None:
    vcenter = a_vcenter(looks=2)
    await vcenter.relocate("vm-n1", "h2")
    outcome = await a_sink(vcenter).again(a_move())
    assert (outcome.result, outcome.reason) == ("applied", "a migration of it was under way (task-1)")
    assert vcenter.moves == [("vm-n1", "h2")]


async def test_a_move_that_is_only_followed_is_waited_for() -> None:
    vcenter = a_vcenter(looks=2)
    await vcenter.relocate("vm-n1", "h2")
    outcome = await a_sink(vcenter).again(a_move(follow="2026-01-01T00:00:00Z"))
    assert (outcome.result, vcenter.at["vm-n1"], vcenter.moves) == ("applied", "h2", [("vm-n1", "h2")])


async def test_a_move_that_is_only_followed_is_not_begun() -> None:
    vcenter = a_vcenter()
    outcome = await a_sink(vcenter).apply(a_move(follow="2026-01-01T00:00:00Z"))
    assert outcome.result == "refused"
    assert outcome.reason == "it is not on its way to host esx-h2, and is not wanted there any more"
    assert vcenter.moves == []


async def test_a_migration_of_somebody_else_is_waited_for_and_told() -> None:
    vcenter = a_vcenter()
    await vcenter.relocate("vm-n1", "h3")
    outcome = await a_sink(vcenter).apply(a_move())
    assert outcome.result == "failed"
    assert outcome.reason == "a migration of it was under way (task-1), but it is not on host esx-h2"
    assert vcenter.at["vm-n1"] == "h3"


async def test_in_a_dry_run_it_says_what_it_would_do() -> None:
    vcenter = a_vcenter()
    outcome = await a_sink(vcenter, enabled=False).apply(a_move())
    assert (outcome.result, outcome.reason) == ("dry-run", "would move it from host esx-h1 to host esx-h2")
    assert vcenter.moves == []


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(a_move("vm-other"), "no node of site s runs on VM vm-other", id="not of the site"),
        pytest.param(a_move(from_="h9"), "it is not on host esx-h9 any more", id="elsewhere by now"),
        pytest.param(a_move(refuse="it is left to a person"), "it is left to a person", id="left to a person"),
        pytest.param(
            order(MOVE, "pod/shop/db-0", {}, "", {}),
            "pod/shop/db-0 is not the target of a command of kind move",
            id="no VM",
        ),
        pytest.param(
            order(MOVE, "vm/vm-n1", {"to": 1}, "", {}),
            "not a move command: Expected `str`, got `int` - at `$.to`",
            id="no move",
        ),
        pytest.param(a_move("vm-n2"), "it is powered off", id="powered off"),
    ],
)
async def test_what_is_not_as_it_was_decided_is_refused(action: Action, reason: str) -> None:
    vcenter = a_vcenter()
    vcenter.off.add("vm-n2")
    outcome = await a_sink(vcenter).apply(action)
    assert (outcome.result, outcome.reason, vcenter.moves) == ("refused", reason, [])


async def test_a_vm_that_is_another_one_now_is_left_alone() -> None:
    vcenter = a_vcenter()
    action = a_move()
    renamed = order(MOVE, action.target, {**action.desired, "name": "n9"}, "", {})
    outcome = await a_sink(vcenter).apply(renamed)
    assert (outcome.result, outcome.reason) == ("refused", "the VM is another one now (n1)")


async def test_a_vm_that_is_gone_is_told() -> None:
    vcenter = FakeMover({})
    outcome = await a_sink(vcenter).apply(a_move())
    assert (outcome.result, outcome.reason) == ("refused", "no VM vm-n1")


async def test_while_nobody_knows_the_own_vms_nothing_is_moved() -> None:
    outcome = await a_sink(a_vcenter(), vms=None).apply(a_move())
    assert (outcome.result, outcome.reason) == ("failed", "which VMs the nodes run on is not known yet")


async def test_a_right_that_is_missing_is_told_in_one_line() -> None:
    vcenter = a_vcenter()
    vcenter.refusals = [Refused("vCenter v: permission Resource.HotMigrate is missing")]
    outcome = await a_sink(vcenter).apply(a_move())
    assert outcome.result == "refused"
    assert outcome.reason == "the vMotion failed: vCenter v: permission Resource.HotMigrate is missing"


async def test_a_task_that_fails_is_told_with_its_reason() -> None:
    vcenter = a_vcenter()
    vcenter.failures = [Refused("vCenter v: InsufficientResourcesFault: no memory")]
    outcome = await a_sink(vcenter).apply(a_move())
    assert outcome.result == "failed"
    assert outcome.reason == "the vMotion failed: vCenter v: InsufficientResourcesFault: no memory"


async def test_a_vcenter_that_does_not_answer_is_no_failure_of_the_move() -> None:
    vcenter = a_vcenter()
    vcenter.refusals = [Unreachable("vCenter v: no answer in time")]
    outcome = await a_sink(vcenter).apply(a_move())
    assert (outcome.result, outcome.reason) == ("failed", "vCenter v: no answer in time")


async def test_a_password_file_that_is_missing_is_told_in_one_line(tmp_path: Path) -> None:
    settings = VSphereSettings(url="https://vcenter.invalid/sdk", username="u", password_file=tmp_path / "password")
    outcome = await MoveSink(VSphereVmMover(settings), "s", enabled=True, vms=lambda: OWN).apply(a_move())
    expected = f"vsphere.passwordFile: {tmp_path / 'password'}: No such file or directory"
    assert (outcome.result, outcome.reason) == ("refused", expected)


async def test_where_a_task_cannot_be_followed_any_more_nobody_knows_what_became_of_it() -> None:
    vcenter = a_vcenter()
    vcenter.failures = [InputError("vsphere.passwordFile: empty")]
    outcome = await a_sink(vcenter).apply(a_move())
    assert (outcome.result, outcome.reason) == ("failed", "vsphere.passwordFile: empty")
    assert is_unknown(outcome)  # so it still counts as under way
