"""What README shows is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```console\n\$ (underhost [^\n]+)\n(.*?)```$", re.M | re.S)
SHOWN = [(command, output) for command, output in BLOCK.findall((ROOT / "README.md").read_text()) if output]


def test_readme_shows_three_commands_with_their_output() -> None:
    assert [command.split()[1] for command, _ in SHOWN] == ["check", "explain", "schedule"]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command.split()[1] for command, _ in SHOWN])
def test_a_command_prints_what_readme_shows(command: str, output: str) -> None:
    program = Path(sys.executable).parent / "underhost"
    done = subprocess.run([program, *command.split()[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == output
    assert done.stderr == ""
