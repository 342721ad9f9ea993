"""Every command that a page names is one of ours, with options that it has; what a page shows is what it prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from underhost.agents.commands.application import build

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHOWN = re.compile(r"^```console\n\$ (underhost [^\n]+)\n(.*?)```$", re.M | re.S)
BLOCK = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```$", re.M | re.S)
INLINE = re.compile(r"`(underhost [^`]+)`")
TOLD_ELSEWHERE = {"README.md", "what-if.md"}
"""Pages whose commands are run by tests of their own."""


def named(page: Path) -> list[str]:
    """The command lines of a page."""
    text = page.read_text()
    lines = [line.strip().removeprefix("$ ") for block in BLOCK.findall(text) for line in block.splitlines()]
    return [line for line in lines if line.startswith("underhost ")] + [
        line for line in INLINE.findall(text) if " --" in line and "…" not in line and "|" not in line
    ]


RUN = [
    pytest.param(command, output, id=f"{page.stem}: {command[:60]}")
    for page in PAGES
    if page.name not in TOLD_ELSEWHERE
    for command, output in SHOWN.findall(page.read_text())
    if output
]
NAMED = [pytest.param(line, id=f"{page.stem}: {line[:70]}") for page in PAGES for line in named(page)]


@pytest.mark.parametrize(("command", "output"), RUN)
def test_a_command_prints_what_a_page_shows(command: str, output: str) -> None:
    program = Path(sys.executable).parent / "underhost"
    done = subprocess.run([program, *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout or done.stderr) == output  # what is wrong is told on standard error, and nothing else then


@pytest.mark.parametrize("line", NAMED)
def test_a_command_that_a_page_names_can_be_typed(line: str) -> None:
    words = shlex.split(re.sub(r"\s*(\||>|<|&&)\s.*", "", line.rstrip("\\")))[1:]
    words = ["x" if word.isupper() and word.isalpha() else word for word in words]
    command = typer.main.get_command(build())
    while hasattr(command, "commands"):
        name = words.pop(0)
        if name.startswith("-"):
            return  # an option of `underhost` itself
        assert name in command.commands, f"no command {name}"
        command = command.commands[name]
    command.make_context(command.name, words, resilient_parsing=False)


def test_there_is_something_to_run_and_something_to_type() -> None:
    assert len(RUN) >= 7
    assert len(NAMED) >= 30
