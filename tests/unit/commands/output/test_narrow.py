"""Every command's answer on a terminal of 80 columns: lines that fit, and no word is broken or lost."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.answers.narrow import NARROW, PROGRAM, Misfits, drawn, misfits
from support.processes.terminal import Terminal

from underhost.agents.commands.output.progress import CLEAR

ROOT = Path(__file__).parents[4]
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
    ["repair"],
    ["repair", "-o", "wide"],
]
OPERATORS = [
    ["topics"],
    ["violations"],
    ["dead-letters"],
    ["replay", "--at", "1s", "--site", "demo"],
    ["replay", "--at", "1s", "--site", "demo", "-o", "wide"],
    ["replay", "--at", "1s", "--site", "demo", "--pod", "customapp/varnish-cache-54489f9fc9-5pbr2"],
    ["resume", "demo"],
]
pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_at_80_columns_every_line_fits_and_no_word_is_broken(command: list[str]) -> None:
    assert misfits([*command, *SITE], ROOT) == Misfits()


def test_without_colour_every_line_fits_too() -> None:
    with Terminal([PROGRAM, "check", *SITE], ROOT, {"NO_COLOR": "1", "COLUMNS": str(NARROW)}) as screen:
        shown = screen.rest().rpartition(CLEAR)[2]
    assert shown.startswith("SEVERITY")
    assert "\x1b" not in shown
    assert [line for line in shown.splitlines() if len(line) > NARROW] == []


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The log of a demo that is running and has found something."""
    folder = tmp_path_factory.mktemp("demo")
    log = ["--embedded", str(folder / "underhost.db")]
    with Terminal([PROGRAM, "demo", *log, "--listen", "127.0.0.1:0"], folder) as story:
        story.until("A finding opens")
        yield log


@pytest.mark.timeout(180)
@pytest.mark.parametrize("command", OPERATORS, ids=" ".join)
def test_what_operators_are_told_fits_80_columns(command: list[str], log: list[str]) -> None:
    assert misfits([*command, *log], ROOT) == Misfits()


@pytest.mark.parametrize("config", ["", "a-long-name-of-a-file-" * 5], ids=["none", "a long path"])
def test_a_configuration_as_it_is_printed_fits_80_columns(config: str, tmp_path: Path) -> None:
    given = []
    if config:
        file = tmp_path / f"{config}.yaml"
        file.write_text("apiVersion: underhost/v1\nkind: Config\nsite: prod-a\n")
        given = ["--config", str(file)]
    assert misfits(["config", "print", *given], ROOT) == Misfits()


HELPED = [
    [], ["run"], ["demo"], ["check"], ["explain"], ["schedule"], ["lint"], ["drain"], ["fail"], ["maintain"],
    ["whatif"], ["inventory"], ["violations"], ["replay"], ["topics"], ["dead-letters"], ["resume"], ["completion"],
    ["repair"], ["config"], ["config", "print"], ["config", "schema"],
]  # fmt: skip


@pytest.mark.parametrize("command", HELPED, ids=lambda command: " ".join(command) or "underhost")
def test_every_help_has_examples_and_fits_80_columns(command: list[str]) -> None:
    shown = drawn([*command, "--help"], ROOT, NARROW)
    assert "\nExamples:\n  # " in shown
    assert "<" not in shown.replace("source <(underhost", "")  # no types of Python
    assert [line for line in shown.splitlines() if len(line) > NARROW or re.search(r"\w-$", line)] == []
