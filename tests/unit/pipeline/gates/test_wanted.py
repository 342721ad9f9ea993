"""Which commands this run's decisions stand by, and that no others are remembered."""

from underhost.agents.pipeline.gates.wanted import REMEMBERED, WantedCommands
from underhost.schemas.records import Action


def command(number: int, kind: str) -> Action:
    return Action(f"a{number}", kind, f"pod/shop/p{number}", {}, "", {})


def test_commands_that_another_worker_carries_out_are_not_stood_by() -> None:
    wanted = WantedCommands({"label"})
    wanted.decide([command(1, "bind"), command(2, "label")], ())
    assert wanted._ordered == {("label", "pod/shop/p2"): ("a2", 1)}


def test_a_command_that_has_its_outcome_is_not_remembered() -> None:
    wanted = WantedCommands({"bind"})
    wanted.decide([command(number, "bind") for number in range(3)], ())
    for number in range(3):
        wanted.done(command(number, "bind"))
    assert wanted._ordered == {}


def test_a_command_is_known_by_its_kind_or_as_one_that_this_run_has_decided() -> None:
    wanted = WantedCommands({"label"})
    wanted.decide([command(1, "event")], ())
    asked = (command(1, "event"), command(2, "event"), command(3, "label"))
    assert [wanted.knows(one) for one in asked] == [True, False, True]


def test_once_the_site_may_move_what_was_decided_is_not_known_any_more() -> None:
    wanted = WantedCommands(())
    wanted.decide([command(1, "event")], ())
    wanted.end()
    assert not wanted.knows(command(1, "event"))


def test_of_the_commands_that_are_only_known_the_newest_are_remembered() -> None:
    wanted = WantedCommands(())
    wanted.decide([command(number, "event") for number in range(REMEMBERED + 1)], ())
    known = [wanted.knows(command(number, "event")) for number in (0, 1, REMEMBERED)]
    assert known == [False, True, True]
