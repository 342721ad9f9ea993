"""Which commands this run's decisions stand by, and that no others are remembered."""

from underhost.agents.pipeline.gates.wanted import WantedCommands
from underhost.schemas.records import Action


def command(number: int, kind: str) -> Action:
    return Action(f"a{number}", kind, f"pod/shop/p{number}", {}, "", {})


def test_commands_that_another_worker_carries_out_are_not_remembered() -> None:
    wanted = WantedCommands({"label"})
    wanted.decide([command(1, "bind"), command(2, "label")], ())
    assert wanted._ordered == {("label", "pod/shop/p2"): "a2"}


def test_a_command_that_has_its_outcome_is_not_remembered() -> None:
    wanted = WantedCommands({"bind"})
    wanted.decide([command(number, "bind") for number in range(3)], ())
    for number in range(3):
        wanted.done(command(number, "bind"))
    assert wanted._ordered == {}
