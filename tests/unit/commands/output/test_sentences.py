"""Sentences for people: names in them are others' to choose, and are nothing but text to a terminal."""

import pytest

from underhost.agents.commands.handlers.applying import line
from underhost.agents.commands.output.documents import say
from underhost.schemas.documents import RepairDone


def test_a_name_in_a_sentence_cannot_speak_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("host esx-1\x1b[2J: a\x07b\x9b31m\u202ec\nd×…")
    assert capsys.readouterr().out == "host esx-1?[2J: a?b?31m?c?d×…\n"


def test_a_step_that_is_carried_out_is_told_without_what_its_names_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    say(line(RepairDone("1", "move", "esx-1", "esx-2\x1b[8m", "ordered", vm="node-1\x1b]0;mine\x07")))
    assert capsys.readouterr().out == "VM node-1?]0;mine?: esx-1 to esx-2?[8m\n"
