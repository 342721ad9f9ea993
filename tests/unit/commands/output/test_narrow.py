"""Every command's answer on a terminal of 80 columns: lines that fit, and no word is broken or lost."""

import re
import sys
from pathlib import Path

import pytest
from support.processes.terminal import Terminal

from underhost.agents.commands.output.progress import CLEAR as DRAWN_ANEW

ROOT = Path(__file__).parents[4]
PROGRAM = Path(sys.executable).parent / "underhost"
CLEAR = DRAWN_ANEW.replace("\r", "")
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")
SITE = ["-f", "tests/data/kubevirt/dump.json", "--inventory", "tests/data/kubevirt/inventory.json"]
COMMANDS = [
    ["check"],
    ["check", "-o", "wide"],
    ["explain"],
    ["explain", "-o", "wide", "default/virt-launcher-mssql-x7k2d"],
    ["schedule"],
    ["lint"],
    ["lint", "-o", "wide"],
    ["drain", "kni-worker", "kni-worker2"],
    ["drain", "kni-worker", "-o", "wide"],
    ["fail", "host/esx-1"],
    ["fail", "--each", "host", "-o", "wide"],
    ["maintain", "host/esx-1", "host/esx-2"],
    ["whatif", "--cordon", "kni-worker", "--fail", "host/esx-2"],
]
pytestmark = pytest.mark.timeout(90)


def drawn(command: list[str], columns: int) -> str:
    """What is on the screen at the end."""
    with Terminal([PROGRAM, *command], ROOT, {"COLUMNS": str(columns), "LINES": "50"}) as screen:
        shown = screen.rest().replace("\r", "")
    last = [line.rpartition(CLEAR)[2] for line in shown.split("\n")]  # without the line of progress before it
    return STYLE.sub("", "\n".join(last))


def words(shown: str) -> set[str]:
    """Its words, but for the names of columns: what is below its row needs none."""
    return {word for word in shown.split() if not word.isupper()}


def whole(shown: str) -> set[str]:
    """Its words; those of a path that had to be cut are joined again."""
    return set(re.sub(r"(?<=[.,/])\s*\n\s+", "", shown).split()) | set(shown.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_at_80_columns_every_line_fits_and_no_word_is_broken(command: list[str]) -> None:
    narrow, broad = drawn([*command, *SITE], 80), drawn([*command, *SITE], 2000)
    assert [line for line in narrow.splitlines() if len(line) > 80] == []
    assert words(broad) - whole(narrow) == set()


@pytest.mark.timeout(180)
def test_what_topics_hold_fits_80_columns(tmp_path: Path) -> None:
    log = ["--embedded", str(tmp_path / "underhost.db")]
    with Terminal([PROGRAM, "demo", "--once", *log, "--listen", "127.0.0.1:0"], tmp_path) as story:
        story.rest()
    for command in ("topics", "violations", "dead-letters"):
        narrow, broad = drawn([command, *log], 80), drawn([command, *log], 2000)
        assert [line for line in narrow.splitlines() if len(line) > 80] == []
        assert words(broad) - whole(narrow) == set()


HELPED = [
    [], ["run"], ["demo"], ["check"], ["explain"], ["schedule"], ["lint"], ["drain"], ["fail"], ["maintain"],
    ["whatif"], ["inventory"], ["violations"], ["replay"], ["topics"], ["dead-letters"], ["resume"], ["completion"],
    ["config"], ["config", "print"], ["config", "schema"],
]  # fmt: skip


@pytest.mark.parametrize("command", HELPED, ids=lambda command: " ".join(command) or "underhost")
def test_every_help_has_examples_and_fits_80_columns(command: list[str]) -> None:
    shown = drawn([*command, "--help"], 80)
    assert "\nExamples:\n  # " in shown
    assert "<" not in shown.replace("source <(underhost", "")  # no types of Python
    assert [line for line in shown.splitlines() if len(line) > 80] == []
