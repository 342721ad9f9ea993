"""The last line of `underhost repair`: what its vMotions copy, where that is known."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from underhost.agents.commands.application import build

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        pytest.param("", "1 vMotion, 1 finding resolved, nothing left; no plan is cheaper", id="not known"),
        pytest.param(
            ", memoryMiB: 6144", "1 vMotion (6.0 GiB), 1 finding resolved, nothing left; no plan is cheaper", id="known"
        ),
    ],
)
def test_the_memory_that_moves_is_told_where_it_is_known(tmp_path: Path, memory: str, said: str) -> None:
    (tmp_path / "inventory.yaml").write_text(
        (EXAMPLES / "inventory.yaml").read_text().replace(", host: host-1}", f", host: host-1{memory}}}")
    )
    command = ["repair", "-f", str(EXAMPLES / "cluster.yaml"), "--inventory", str(tmp_path / "inventory.yaml")]
    assert said in CliRunner().invoke(build(), command).stdout.splitlines()
