"""What `drain`, `fail`, `maintain` and `whatif` print of the seeds' cluster, and their exit codes.

The dump is that of `test_offline.py`: kni-worker2 is cordoned, and a third mssql machine waits for it; varnish and
mssql have budgets; three of the seven nodes are on esx-2.
"""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build

DATA = Path(__file__).parents[2] / "data" / "kubevirt"
DUMP, INVENTORY = str(DATA / "dump.json"), str(DATA / "inventory.json")
VARNISH = "default/varnish-6d4cf-5pbr2"
VARNISH_GONE = f"--delete={VARNISH}"
MSSQL_WAITS = "default/virt-launcher-mssql-x7k2d"
BLOCKED_MSSQL = "default/virt-launcher-mssql-p948r"
STAND_BY = """
kind: Node
metadata: {name: kni-standby, labels: {kubernetes.io/hostname: kni-standby, performance: high, ZONE: scu}}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
""".replace("ZONE", "topology.kubernetes.io/zone")


def run(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(build(), [command, "-f", DUMP, "--inventory", INVENTORY, *arguments])


def document(command: str, *arguments: str) -> dict:
    return json.loads(run(command, *arguments, "-o", "json").stdout)


def rows(result: Result) -> list[list[str]]:
    """The cells of each line, as far as they are no sentences."""
    return [line.split("   ") for line in result.stdout.splitlines()]


def test_drain_says_what_moves_where():
    result = run("drain", "kni-worker")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Simulate: drain kni-worker; nothing is changed.",
        "POD MOVES                     FROM         TO            WHY",
        "default/varnish-6d4cf-5pbr2   kni-worker   kni-worker6   drain kni-worker",
        "1 pod moves, no new finding",
        "Not judged: 1 pod (pending)",
    ]
    assert result.stderr == f"note: 1 pod waited before the plan, and still does: {MSSQL_WAITS}\n"


def test_drain_says_what_blocks_and_by_which_budget():
    result = run("drain", "kni-worker4")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:4] == [
        "BLOCKED                             BY BUDGET",
        f"{BLOCKED_MSSQL}   default/mssql",
        "",
    ]
    assert result.stdout.splitlines()[4].startswith("NEW FINDING   RULE                POD   NODE          MESSAGE")
    assert result.stdout.splitlines()[-2] == "1 is blocked, 1 new finding (1 drift)"


def test_the_document_is_the_contracts():
    found = document("drain", "kni-worker", "kni-worker4")
    assert found == {
        "apiVersion": "underhost/v1",
        "kind": "WhatIf",
        "moves": [{"step": 1, "pod": VARNISH, "from": "kni-worker", "to": "kni-worker6", "reason": "drain"}],
        "vmMoves": [],
        "pending": {},
        "blocked": [{"pod": BLOCKED_MSSQL, "budgets": ["default/mssql"]}],
        "newFindings": found["newFindings"],
        "resolvedFindings": [],
        "notJudged": [{"what": "1 pod", "why": "pending"}],
        "budgets": {
            "default/mssql": {"allowedBefore": 0, "used": 0},
            "default/varnish": {"allowedBefore": 1, "used": 1},
        },
    }
    (drift,) = found["newFindings"]
    assert {key: drift[key] for key in ("severity", "node", "pod", "peers", "domain")} == {
        "severity": "drift",
        "node": "kni-worker4",
        "pod": None,
        "peers": [],
        "domain": {"key": "node", "value": "kni-worker4"},
    }


@pytest.mark.parametrize("command", [["drain", "kni-worker"], ["fail", "host/esx-2"], ["fail", "--each", "node"]])
def test_json_is_sorted_and_yaml_is_the_same_document(command):
    found = run(*command, "-o", "json").stdout
    assert found == json.dumps(json.loads(found), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert yaml.safe_load(run(*command, "-o", "yaml").stdout) == json.loads(found)


def test_fail_restarts_vms_and_says_what_is_newly_wrong():
    result = run("fail", "host/esx-2")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "Simulate: host/esx-2 fails; nothing is changed."
    assert lines[1:5] == [
        "VM MOVES      FROM    TO      WHY",
        "kni-worker3   esx-2   esx-3   host/esx-2 fails",
        "kni-worker4   esx-2   esx-4   host/esx-2 fails",
        "kni-worker5   esx-2   esx-1   host/esx-2 fails",
    ]
    assert lines[7].startswith("physical      PhysicalHost   default/varnish-6d4cf-5pbr2   kni-worker   ")
    assert lines[-2] == "3 VMs move, 1 new finding (1 physical), 1 finding resolved"


def test_fail_without_ha_says_why_pods_wait_in_upstreams_words():
    result = run("fail", "host/esx-2", "--no-ha")
    assert result.exit_code == 1
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("default/virt-launcher-mssql"))
    assert line == (
        "default/virt-launcher-mssql-p948r   0/7 nodes are available: 1 node(s) didn't match Pod's node "
        "affinity/selector, 1 node(s) didn't match pod anti-affinity rules, 1 node(s) were unschedulable, "
        "4 node(s) had untolerated taint(s)."
    )


def test_each_host_is_a_line_and_the_worst_is_first():
    result = run("fail", "--each", "host")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "Simulate: each host fails, alone; nothing is changed."
    assert [line.split() for line in result.stdout.splitlines()[2:6]] == [
        ["esx-2", "3", "3", "3", "0", "0", "1", "physical"],
        ["esx-4", "1", "2", "1", "0", "0", "1", "co-located"],
        ["esx-1", "2", "2", "2", "0", "0", "-"],
        ["esx-3", "1", "1", "1", "0", "0", "-"],
    ]
    assert result.stdout.splitlines()[6] == (
        "3 of 4 hosts can fail alone with no pod left pending, no new finding of quorum or above"
    )
    assert run("fail", "--each", "host", "--fail-on", "violation").exit_code == 0
    found = document("fail", "--each", "host")
    assert (found["kind"], [one["target"] for one in found["items"]]) == (
        "WhatIfList",
        ["host/esx-2", "host/esx-4", "host/esx-1", "host/esx-3"],
    )
    assert run("fail", "--each", "host", "-o", "name").stdout.split() == [one["target"] for one in found["items"]]


def test_maintain_moves_vms_and_no_pod():
    found = document("maintain", "host/esx-1")
    assert found["vmMoves"] == [
        {"step": 1, "vm": "kni-worker", "from": "esx-1", "to": "esx-3"},
        {"step": 1, "vm": "kni-worker2", "from": "esx-1", "to": "esx-4"},
    ]
    assert found["moves"] == []
    assert run("maintain", "esx-1").exit_code == 0


def test_a_vm_that_cannot_move_is_exit_code_1(tmp_path):
    inventory = json.loads(Path(INVENTORY).read_text(encoding="utf-8"))
    inventory["clusters"][0]["drs"] = False
    file = tmp_path / "inventory.json"
    file.write_text(json.dumps(inventory), encoding="utf-8")
    result = CliRunner().invoke(build(), ["maintain", "host/esx-3", "-f", DUMP, "--inventory", str(file)])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        "kni-worker6   esx-3   -    no other host can take it: room, a DRS rule, or DRS is off",
        "1 VM cannot move, no new finding",
        "Not judged: 1 pod (pending)",
    ]


# -------------------------------------------------------------------------------------------------- whatif, in order
@pytest.mark.parametrize(
    ("arguments", "moved"),
    [
        pytest.param(
            ["--uncordon", "kni-worker2", "--drain", "kni-worker"],
            [(1, MSSQL_WAITS, "kni-worker2"), (2, VARNISH, "kni-worker2")],
            id="first uncordoned, then drained",
        ),
        pytest.param(
            ["--drain", "kni-worker", "--uncordon", "kni-worker2"],
            [(1, VARNISH, "kni-worker6"), (2, MSSQL_WAITS, "kni-worker2")],
            id="first drained, then uncordoned",
        ),
        pytest.param(
            [
                "--cordon=kni-worker6",
                "--drain=kni-worker",
                "--uncordon=kni-worker6",
                "--cordon=kni-worker4",
                VARNISH_GONE,
            ],
            [(2, VARNISH, "kni-worker4"), (5, VARNISH, "kni-worker6")],
            id="one option twice with another between",
        ),
    ],
)
def test_steps_are_taken_in_the_order_of_the_command_line(arguments, moved):
    found = document("whatif", *arguments)
    assert [(one["step"], one["pod"], one["to"]) for one in found["moves"]] == moved


def test_every_step_of_the_contract_can_be_tried_at_once(tmp_path):
    file = tmp_path / "standby.yaml"
    file.write_text(STAND_BY, encoding="utf-8")
    result = run(
        "whatif", "--add", str(file), "--delete", "varnish-6d4cf-5pbr2", "-n", "default", "--drain", "kni-worker",
        "--fail", "node/kni-worker3", "--cordon", "kni-worker5", "--uncordon", "kni-worker2", "--taint",
        "kni-worker6=dedicated=db:NoExecute", "--label", "kni-worker=performance=high", "--fail", "host/esx-4",
        "--maintain", "host/esx-1", "-o", "json",
    )  # fmt: skip
    assert result.exit_code in (0, 1), result.stderr
    found = json.loads(result.stdout)
    assert (found["moves"][0]["step"], found["moves"][0]["pod"], found["moves"][0]["to"]) == (
        1,
        MSSQL_WAITS,
        "kni-standby",
    )
    assert {one["step"] for one in found["vmMoves"]} == {9, 10}


def test_without_steps_nothing_happens():
    result = run("whatif")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Simulate: no step; nothing is changed.",
        "nothing moves, no new finding",
        "Not judged: 1 pod (pending)",
    ]


def test_names_are_those_that_something_becomes_of():
    assert run("drain", "kni-worker", "kni-worker4", "-o", "name").stdout.splitlines() == [
        "-n default pod/varnish-6d4cf-5pbr2",
        "-n default pod/virt-launcher-mssql-p948r",
    ]


def test_what_is_added_can_come_from_stdin():
    words = ["whatif", "-f", DUMP, "--inventory", INVENTORY, "--add", "-", "--drain", "kni-standby"]
    result = CliRunner().invoke(build(), words, input=STAND_BY)
    assert result.stdout.splitlines()[0] == "Simulate: add objects, then drain kni-standby; nothing is changed."


@pytest.mark.parametrize("words", [["--add", "-"], ["-f", "-"], ["--inventory", "-"]], ids=["add", "read", "inventory"])
def test_stdin_is_read_once(words):
    error = CliRunner().invoke(build(), ["whatif", "-f", DUMP, *words, "--add", "-"], input=STAND_BY).exception
    assert str(error) == "stdin: is given twice"


def test_wide_adds_budgets_and_what_is_resolved():
    lines = run("drain", "kni-worker3", "-o", "wide").stdout.splitlines()
    assert any(line.startswith("RESOLVED") for line in lines)
    at = lines.index("BUDGET            ALLOWED   USED")
    assert lines[at + 1] == "default/varnish   1         1"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["drain", "kni-wroker"], "node kni-wroker: not there; did you mean kni-worker?"),
        (["drain", "host/esx-1"], "host/esx-1: a node is expected, as NODE or node/NODE"),
        (["fail", "host/esx-22"], "host esx-22: not there; did you mean esx-2?"),
        (["fail"], "fail: name what fails as node/NODE or host/HOST, or try all with --each host|node"),
        (["fail", "node/kni-worker", "--each", "host"], "fail: name what fails as node/NODE or host/HOST, or try"),
        (["fail", "--each", "rack"], "--each rack: one of host, node is expected"),
        (["maintain", "node/kni-worker"], "node/kni-worker: a host is expected, as HOST or host/HOST"),
        (["whatif", "--delete", "varnish"], "pod varnish: give its namespace, as NAMESPACE/varnish or with -n"),
        (["whatif", "--delete", "default/varnish-6d4cf-5pbr"], "did you mean default/varnish-6d4cf-5pbr2?"),
        (["whatif", "--taint", "kni-worker=a:Nope"], "effect 'Nope' is none of NoSchedule, PreferNoSchedule"),
        (["whatif", "--add", "no-such-file.yaml"], "no-such-file.yaml: No such file or directory"),
        (["drain", "kni-worker", "-o", "sarif"], "--output sarif: one of table, wide, json, yaml, name is expected"),
        (["drain", "kni-worker", "--fail-on", "bad"], "--fail-on bad: one of violation"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments, line):
    from underhost.schemas.errors import InputError

    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert len(result.exception.faults) == 1
    assert line in str(result.exception)


def test_a_fault_in_an_added_object_names_its_file(tmp_path):
    from underhost.schemas.errors import InputError

    file = tmp_path / "bad.yaml"
    file.write_text(STAND_BY.replace("64Gi", "64 gigs"), encoding="utf-8")
    result = run("whatif", "--add", str(file))
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"{file}: Node/kni-standby: status.allocatable[memory]")
