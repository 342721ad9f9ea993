"""What docs/what-if.md shows is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```console\n\$ (underhost [^\n]+)\n(.*?)```$", re.M | re.S)
SHOWN = BLOCK.findall((ROOT / "docs" / "what-if.md").read_text(encoding="utf-8"))


def test_every_kind_of_plan_is_shown() -> None:
    assert {command.split()[1] for command, _ in SHOWN} == {"drain", "fail", "maintain", "whatif"}


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[" ".join(command.split()[1:4]) for command, _ in SHOWN])
def test_a_command_prints_what_the_page_shows(command: str, output: str) -> None:
    program = Path(sys.executable).parent / "underhost"
    done = subprocess.run([program, *command.split()[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == output
