"""`underhost maintain` for many hosts: its answer, its exit code, and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.schemas.errors import InputError

DATA = Path(__file__).parents[2] / "data" / "kubevirt"
DUMP, INVENTORY = str(DATA / "dump.json"), str(DATA / "inventory.json")


def run(*arguments: str, inventory: str = INVENTORY) -> Result:
    return CliRunner().invoke(build(), ["maintain", "-f", DUMP, "--inventory", inventory, *arguments])


def test_a_plan_is_waves_with_their_hosts_and_moves() -> None:
    result = run("--all-hosts", "-o", "json")
    plan = json.loads(result.stdout)
    assert (plan["kind"], plan["blocked"], plan["optimal"], plan["lowerBound"], result.exit_code) == (
        "MaintenancePlan",
        [],
        True,
        2,
        0,
    )
    assert [(wave["wave"], wave["hosts"]) for wave in plan["waves"]] == [
        (1, ["esx-3", "esx-4"]),
        (2, ["esx-2"]),
        (3, ["esx-1"]),
    ]
    assert plan["waves"][0]["vmMoves"] == [
        {"step": 1, "vm": "kni-control-plane", "from": "esx-4", "to": "esx-1"},
        {"step": 1, "vm": "kni-worker6", "from": "esx-3", "to": "esx-1"},
    ]
    assert {one["severity"] for one in plan["newFindings"]} == {"unsatisfiable", "co-located"}


def test_a_table_says_that_nothing_is_changed_and_ends_with_a_summary() -> None:
    lines = run("--all-hosts").stdout.splitlines()
    assert lines[0] == "Simulate: maintenance of 4 hosts in turn; nothing is changed."
    assert lines[1].split() == ["WAVE", "VMS", "MOVE", "HOSTS"]
    assert lines[-2] == "4 hosts in 3 waves (no order has fewer), 9 moves of VMs, 2 new findings"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("--rolling", "host/esx-3", "esx-4"), "esx-3\nesx-4\n", id="named hosts"),
        pytest.param(("--cluster", "C0", "--at-once", "1"), "esx-3\nesx-1\nesx-4\nesx-2\n", id="a cluster, one by one"),
    ],
)
def test_which_hosts_are_planned(arguments: tuple[str, ...], expected: str) -> None:
    assert run(*arguments, "-o", "name").stdout == expected


def test_a_host_that_cannot_be_emptied_is_exit_code_1(tmp_path: Path) -> None:
    tree = json.loads(Path(INVENTORY).read_text())
    for host in tree["hosts"]:
        host["state"] = "connected" if host["name"] == "esx-1" else "maintenance"
    (tmp_path / "inventory.json").write_text(json.dumps(tree))
    result = run("--all-hosts", inventory=str(tmp_path / "inventory.json"))
    assert result.exit_code == 1
    assert "esx-1               kni-worker and kni-worker2   no other host of its cluster has room" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "no host is named", id="nothing"),
        pytest.param(("--rolling",), "no host is named", id="a plan of nothing"),
        pytest.param(("--all-hosts", "esx-1"), "add --rolling", id="all, and one of them"),
        pytest.param(("esx-1", "--at-once", "2"), "only a plan", id="waves of no plan"),
        pytest.param(("--cluster", "C9"), "cluster C9: not there", id="no such cluster"),
        pytest.param(("--rolling", "esx-9"), "host esx-9: not there", id="no such host"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert len(error.faults) == 1
    assert said in error.faults[0]
