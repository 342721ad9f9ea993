"""`--host-label`, and hosts.label of a configuration or a worker: a node label in the place of vSphere."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.schemas.errors import InputError

DATA = Path(__file__).parents[3] / "data" / "kubevirt"
INVENTORY = str(DATA / "inventory.json")
KEY, CAPV = "example.com/hypervisor", "node.cluster.x-k8s.io/esxi-host"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build(), list(arguments))


@pytest.fixture
def labelled(tmp_path: Path) -> str:
    """The seeds' dump, each node with a label of somebody else's that names the host that the inventory knows."""
    return dump_with(tmp_path, KEY)


def dump_with(folder: Path, key: str) -> str:
    dump, inventory = (json.loads((DATA / name).read_text()) for name in ("dump.json", "inventory.json"))
    names = {host["id"]: host["name"] for host in inventory["hosts"]}
    hosts = {vm["name"]: names[vm["host"]] for vm in inventory["vms"]}
    for item in dump["items"]:
        if item["kind"] == "Node":
            item["metadata"]["labels"][key] = hosts[item["metadata"]["name"]]
    (folder / "dump.json").write_text(json.dumps(dump))
    return str(folder / "dump.json")


def without_ids(result: Result) -> Any:
    """The document; a host's id, which is part of a finding's, is vCenter's, and so is the make of a host."""
    tree = json.loads(result.stdout)
    for part in ("findings", "newFindings", "resolvedFindings"):
        for finding in tree.get(part, ()):
            del finding["id"]
            finding["message"] = finding["message"].replace("ESXi host", "host")
    return tree


@pytest.mark.parametrize("command", ["check", "explain", "schedule"])
def test_a_label_says_what_an_inventory_does(labelled: str, command: str) -> None:
    told = run(command, "-f", labelled, "--host-label", KEY, "-o", "json")
    known = run(command, "-f", labelled, "--inventory", INVENTORY, "-o", "json")
    assert without_ids(told) == without_ids(known)
    assert told.exit_code == known.exit_code


@pytest.mark.parametrize("command", ["check", "lint", "explain", "schedule", "fail --each host", "drain kni-worker"])
@pytest.mark.parametrize("form", ["table", "wide", "json"])
def test_where_a_label_names_the_hosts_nothing_is_said_of_esxi_or_drs(labelled: str, command: str, form: str) -> None:
    said = run(*command.split(), "-f", labelled, "--host-label", KEY, "-o", form).stdout
    assert said
    assert re.findall(r"ESXi|vCenter|DRS|esxi-host", said) == []


@pytest.mark.parametrize("command", ["explain", "schedule"])
def test_without_being_told_a_known_label_changes_no_placement(tmp_path: Path, command: str) -> None:
    known = run(command, "-f", dump_with(tmp_path, CAPV), "-o", "json")
    assert known.stdout == run(command, "-f", str(DATA / "dump.json"), "-o", "json").stdout


def test_a_check_proposes_a_known_label_and_leaves_hosts_out_until_it_is_told(tmp_path: Path) -> None:
    file = dump_with(tmp_path, CAPV)
    proposed = run("check", "-f", file)
    assert f"note: the label {CAPV} of nodes names their hosts; --host-label {CAPV} judges by it\n" in proposed.stderr
    assert "Not judged: PhysicalHost (no inventory)" in proposed.stdout
    told = run("check", "-f", file, "--host-label", CAPV)
    assert ("note:" in told.stderr, "PhysicalHost (" in told.stdout) == (False, False)


def test_a_host_that_a_label_names_can_fail_and_no_vm_of_it_can_move(labelled: str) -> None:
    files = ("-f", labelled, "--host-label", KEY)
    worst = json.loads(run("fail", "--each", "host", *files, "-o", "json").stdout)
    assert [one["target"] for one in worst["items"]] == ["host/esx-2", "host/esx-1", "host/esx-3", "host/esx-4"]
    assert {one["target"]: one["nodes"] for one in worst["items"]}["host/esx-1"] == ["kni-worker", "kni-worker2"]
    refused = run("maintain", "host/esx-1", *files).exception
    assert isinstance(refused, InputError)
    assert str(refused) == (
        f"maintain host/esx-1: no VM is known, only the node label {KEY}, so that none can move away; "
        "try fail, or drain its nodes"
    )


@pytest.mark.parametrize(
    ("arguments", "config", "fault"),
    [
        pytest.param(
            ["--host-label", KEY, "--inventory", INVENTORY],
            None,
            f"--host-label {KEY}, and a vSphere inventory: only one of them can say which host a node is on",
            id="beside an inventory",
        ),
        pytest.param(
            ["--inventory", INVENTORY],
            {"hosts": {"label": KEY}},
            f"hosts.label {KEY}, and a vSphere inventory: only one of them can say which host a node is on",
            id="an inventory beside the configuration's label",
        ),
        pytest.param(
            ["--host-label", "a key"],
            None,
            "--host-label a key: not the key of a label: [PREFIX/]NAME is expected",
            id="no key",
        ),
        pytest.param(
            ["--host-label", CAPV],
            {"sinks": {"labels": True}},
            f"hosts.label: sinks.labels writes {CAPV} (hostLabel), and would read back its own word",
            id="a label that is ours",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    labelled: str, tmp_path: Path, arguments: list[str], config: dict[str, Any] | None, fault: str
) -> None:
    given = []
    if config is not None:
        (tmp_path / "underhost.yaml").write_text(json.dumps(config))
        given = ["--config", str(tmp_path / "underhost.yaml")]
    refused = run("check", "-f", labelled, *arguments, *given).exception
    assert isinstance(refused, InputError)
    assert str(refused).removeprefix(f"{tmp_path}/underhost.yaml: ") == fault


def test_a_configuration_tells_the_label(labelled: str, tmp_path: Path) -> None:
    (tmp_path / "underhost.yaml").write_text(json.dumps({"hosts": {"label": KEY}}))
    told = run("check", "-f", labelled, "--config", str(tmp_path / "underhost.yaml"), "-o", "json")
    assert json.loads(told.stdout)["summary"]["hosts"] == 4
