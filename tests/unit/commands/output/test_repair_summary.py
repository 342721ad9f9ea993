"""How a repair reads: what its vMotions copy, where that is known, and what each step is for."""

from pathlib import Path

import pytest
from support.build import a_node, a_site
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.agents.commands.output.repair_tables import tables
from underhost.agents.planner.plan import repair
from underhost.agents.site.snapshot import Options
from underhost.schemas.vsphere import Host

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


def test_a_step_for_nodes_names_the_first_of_them() -> None:
    on = {"n1": "h1", "n2": "h1", "n3": "h2"}
    masters = [a_node(name).labels({"node-role.kubernetes.io/control-plane": ""}) for name in on]
    site = a_site(*masters, on=on, hosts=[Host(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in (1, 2, 3)])
    steps, *_ = tables(repair(site, Options()), wide=False)
    assert steps.rows == [("1", "1", "vmotion", "n1", "esx-1", "esx-3", "quorum Quorum n1")]
