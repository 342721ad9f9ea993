"""What `check`, `explain` and `schedule` print of the seeds' cluster, and their exit codes.

The dump: seven nodes on four ESXi hosts; a cordoned worker with a pod left on it; varnish with two of three replicas on
nodes of one host after a vMotion; a third mssql machine that waits; two coredns on one node; a pod on an absent node.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.commands.input.offline import parse_selector
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import available
from underhost.agents.commands.output.terminal import show_on_terminal
from underhost.schemas.errors import BadObjectError, InputError

DATA = Path(__file__).parents[2] / "data" / "kubevirt"
PROGRAM = "from underhost.agents.cli import program; program()"
DUMP, INVENTORY = str(DATA / "dump.json"), str(DATA / "inventory.json")
CORDON = "node.kubernetes.io/unschedulable:NoSchedule"
MSSQL_WAITS = (
    "0/7 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
    "2 node(s) didn't match pod anti-affinity rules, 3 node(s) didn't match Pod's node affinity/selector."
)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(build(), arguments, input=stdin)


def check(*arguments: str) -> Result:
    return run("check", "-f", DUMP, "--inventory", INVENTORY, *arguments)


def test_check_prints_findings_worst_first_and_a_summary():
    result = check()
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["SEVERITY", "RULE", "POD", "NODE", "MESSAGE"]
    assert [line.split()[:4] for line in lines[1:-2]] == [
        ["physical", "PhysicalHost", "default/varnish-6d4cf-9s9tm", "kni-worker3"],
        ["budget", "PodDisruptionBudget", "default/virt-launcher-mssql-p948r", "kni-worker4"],
        ["unknown-node", "NodeName", "default/leftover", "kni-worker9"],
        ["co-located", "PhysicalHost", "kube-system/coredns-7c65d-2xk8f", "kni-control-plane"],
        ["drift", "NodeUnschedulable", "-", "kni-worker2"],
    ]
    assert lines[-2:] == [
        "11 pods, 7 nodes, 4 hosts: 1 physical, 1 budget, 1 unknown-node, 1 co-located, 1 drift",
        "Not judged: 1 pod (pending)",
    ]
    assert "\x1b" not in result.stdout


def test_check_prints_a_versioned_report():
    result = check("-o", "json")
    report = json.loads(result.stdout)
    assert (report["apiVersion"], report["kind"]) == ("underhost/v1", "Report")
    (physical,) = (one for one in report["findings"] if one["severity"] == "physical")
    assert physical["pod"] == "default/varnish-6d4cf-9s9tm"
    assert physical["peers"] == ["default/varnish-6d4cf-dflzs"]
    assert physical["domain"] == {"key": "host", "value": "esx-2"}
    assert physical["source"] == "InterPodAffinity"
    drift = report["findings"][-1]
    assert {key: drift[key] for key in ("severity", "node", "pods", "pod", "peers", "source")} == {
        "severity": "drift",
        "node": "kni-worker2",
        "pods": 1,
        "pod": None,
        "peers": [],
        "source": None,
    }
    assert report["budgets"] == {
        "default/mssql": {"allowed": 0, "current": 2, "desired": 3, "expected": 3},
        "default/varnish": {"allowed": 1, "current": 3, "desired": 2, "expected": 3},
    }
    assert report["summary"]["hosts"] == 4
    assert result.stdout == json.dumps(report, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def test_yaml_is_the_same_document():
    assert yaml.safe_load(check("-o", "yaml").stdout) == json.loads(check("-o", "json").stdout)


def test_names_are_kubectls():
    assert check("-o", "name").stdout.splitlines() == [
        "-n default pod/varnish-6d4cf-9s9tm",
        "-n default pod/virt-launcher-mssql-p948r",
        "-n default pod/leftover",
        "-n kube-system pod/coredns-7c65d-2xk8f",
        "node/kni-worker2",
    ]


def test_findings_carry_a_remedy_and_their_runbook():
    findings = json.loads(check("-o", "json").stdout)["findings"]
    assert {(one["severity"], one["rule"]): (one["remedy"], one["runbook"]) for one in findings}[
        "drift", "NodeUnschedulable"
    ] == ("Finish the drain, or uncordon the node.", "docs/runbooks/UnderhostDrift.md")
    assert all(one["remedy"] and Path(one["runbook"]).exists() for one in findings)
    wide = check("-o", "wide").stdout.splitlines()
    at = next(n for n, line in enumerate(wide) if line.split() == ["SEVERITY", "RULE", "REMEDY", "RUNBOOK"])
    assert wide[at + 5].split()[:5] == ["drift", "NodeUnschedulable", "Finish", "the", "drain,"]


def test_wide_adds_domains_peers_and_budgets():
    lines = check("-o", "wide").stdout.splitlines()
    assert lines[0].split() == ["SEVERITY", "RULE", "SOURCE", "POD", "NODE", "DOMAIN", "PEERS", "ID", "MESSAGE"]
    assert "host=esx-2" in lines[1]
    at = next(n for n, line in enumerate(lines) if line.startswith("BUDGET"))
    assert [line.split() for line in lines[at:-2]] == [
        ["BUDGET", "EXPECTED", "CURRENT", "DESIRED", "ALLOWED"],
        ["default/mssql", "3", "2", "3", "0"],
        ["default/varnish", "3", "3", "2", "1"],
    ]


def test_without_an_inventory_nothing_is_said_about_hosts():
    report = json.loads(run("check", "-f", DUMP, "-o", "json").stdout)
    assert [one["severity"] for one in report["findings"]] == ["budget", "unknown-node", "co-located", "drift"]
    assert report["summary"]["hosts"] == 0
    assert report["notJudged"] == [
        {"what": "PhysicalHost", "why": "no inventory"},
        {"what": "1 pod", "why": "pending"},
    ]


@pytest.mark.parametrize(
    ("fail_on", "exit_code"),
    [("violation", 0), ("physical", 1), ("drift", 1), ("never", 0)],
)
def test_the_exit_code_asks_for_findings_at_or_above_a_severity(fail_on, exit_code):
    assert check("--fail-on", fail_on).exit_code == exit_code


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["-n", "kube-system"], ["kube-system/coredns-7c65d-2xk8f"], id="a namespace"),
        pytest.param(["-l", "app=cache"], ["default/varnish-6d4cf-9s9tm"], id="a label"),
        pytest.param(["-l", "app in (cache),app!=x", "-n", "kube-system"], [], id="both"),
    ],
)
def test_findings_are_limited_to_pods_in_scope(arguments, expected):
    report = json.loads(check("-o", "json", *arguments).stdout)
    assert [one["pod"] for one in report["findings"]] == expected
    assert sum(report["summary"][severity] for severity in ("physical", "co-located", "drift")) == len(expected)


def test_sarif_names_rules_levels_and_fingerprints():
    log = json.loads(check("-o", "sarif").stdout)
    assert log["version"] == "2.1.0"
    (tool_run,) = log["runs"]
    assert [(one["ruleId"], one["level"]) for one in tool_run["results"]] == [
        ("physical/PhysicalHost", "error"),
        ("budget/PodDisruptionBudget", "warning"),
        ("unknown-node/NodeName", "warning"),
        ("co-located/PhysicalHost", "warning"),
        ("drift/NodeUnschedulable", "note"),
    ]
    rules = tool_run["tool"]["driver"]["rules"]
    for one in tool_run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        (location,) = one["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("kubevirt/dump.json")
    ids = [one["id"] for one in json.loads(check("-o", "json").stdout)["findings"]]
    assert [one["partialFingerprints"]["underhostFinding/v1"] for one in tool_run["results"]] == ids


def test_junit_fails_a_case_for_each_finding_that_counts(tmp_path: Path):
    from junitparser import Failure, JUnitXml

    file = tmp_path / "report.xml"
    file.write_text(check("-o", "junit").stdout, encoding="utf-8")
    (suite,) = JUnitXml.fromfile(str(file))
    assert (suite.tests, suite.failures) == (5, 1)
    failed = [case for case in suite if any(isinstance(one, Failure) for one in case.result)]
    assert [case.classname for case in failed] == ["physical.PhysicalHost"]


def test_explain_with_o_wide_has_every_node_and_upstreams_words():
    lines = run("explain", "-f", DUMP, "-o", "wide").stdout.splitlines()
    assert len(lines) == 10
    assert lines[2].startswith(
        "kni-control-plane   no         -       TaintToleration: node(s) had untolerated taint(s) "
        "(taint node-role.kubernetes.io/control-plane:NoSchedule); NodeAffinity: "
    )


def test_explain_says_why_a_pod_waits_in_upstreams_words():
    result = run("explain", "-f", DUMP)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"default/virt-launcher-mssql-x7k2d: {MSSQL_WAITS}"
    assert lines[1].split() == ["NODE", "FEASIBLE", "TOTAL", "REASONS"]
    assert lines[2:-1] == [
        f"{names:27}no         -       {why}"
        for names, why in (
            ("3 nodes", "NodeAffinity: asks for performance in (high), which is missing"),
            (
                "kni-worker4, kni-worker6",
                "InterPodAffinity: virt-launcher-mssql-p948r is on kni-worker4 "
                "and virt-launcher-mssql-z2qnw on kni-worker6",
            ),
            (
                "kni-control-plane",
                "TaintToleration: taint node-role.kubernetes.io/control-plane:NoSchedule; "
                "NodeAffinity: asks for performance in (high), which is missing",
            ),
            ("kni-worker2", f"NodeUnschedulable: taint {CORDON}; TaintToleration: taint {CORDON}"),
        )
    ]
    assert lines[-1] == "Not judged: PhysicalHost (no inventory)"


@pytest.mark.parametrize("name", [["default/debug"], ["debug", "-n", "default"], ["pod/default/debug"]])
def test_explain_takes_a_pod_by_either_name(name):
    result = run("explain", "-f", DUMP, "-o", "json", *name)
    document = json.loads(result.stdout)
    assert (result.exit_code, document["kind"], list(document["pods"])) == (0, "Explanation", ["default/debug"])
    nodes = document["pods"]["default/debug"]["nodes"]
    assert nodes["kni-worker2"] == {
        "because": {"NodeUnschedulable": [{"taint": CORDON}], "TaintToleration": [{"taint": CORDON}]},
        "code": {
            "NodeUnschedulable": "UnschedulableAndUnresolvable",
            "TaintToleration": "UnschedulableAndUnresolvable",
        },
        "failing": {
            "NodeUnschedulable": ["node(s) were unschedulable"],
            "TaintToleration": ["node(s) had untolerated taint(s)"],
        },
        "feasible": False,
    }
    assert nodes["kni-worker3"]["feasible"] is True


def test_explain_wide_shows_the_score_of_every_rule():
    lines = run("explain", "-f", DUMP, "-o", "wide", "default/debug").stdout.splitlines()
    assert lines[0].startswith("default/debug: 5/7 nodes would take it, best kni-worker")
    assert "TAINTTOLERATION" in lines[1].split()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["explain", "-f", DUMP, "debug"], "pod debug: give its namespace", id="a bare name"),
        pytest.param(
            ["explain", "-f", DUMP, "default/nobody"], "pod default/nobody: not in the input", id="no such pod"
        ),
        pytest.param(["check"], "name a dump with -f, or a worker with --server URL", id="no file and no cluster"),
        pytest.param(["check", "-f", "/nowhere.json"], "/nowhere.json", id="no such file"),
        pytest.param(["check", "-f", DUMP, "-o", "toml"], "--output toml", id="no such output"),
        pytest.param(["check", "-f", DUMP, "--fail-on", "bad"], "--fail-on bad", id="no such severity"),
        pytest.param(["check", "-f", DUMP, "-l", "a=(b"], "--selector a=(b", id="no selector"),
        pytest.param(["check", "-f", DUMP, "-n", "a", "-A"], "--all-namespaces", id="one namespace and all"),
        pytest.param(["schedule", "-f", DUMP, "--physical-host", "x"], "--physical-host x", id="no such mode"),
    ],
)
def test_bad_usage_is_one_fault_that_names_it(arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_fault_in_an_object_names_file_object_and_field(tmp_path: Path):
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"nodeName": "kni-worker", "tolerations": [{"key": "k", "effect": "Never"}]},
    }
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod), encoding="utf-8")
    result = run("check", "-f", DUMP, "-f", str(file))
    assert isinstance(result.exception, BadObjectError)
    assert str(result.exception).startswith(f"{file}: Pod/shop/a: spec.tolerations[0].effect: 'Never' is none of ")


def test_schedule_places_what_it_can_and_exits_1_for_what_waits():
    result = run("schedule", "-f", DUMP)
    assert result.exit_code == 1
    assert [line.split(None, 2) for line in result.stdout.splitlines()] == [
        ["POD", "NODE", "REASON"],
        ["default/virt-launcher-mssql-x7k2d", "Pending", MSSQL_WAITS],
        ["Not", "judged:", "PhysicalHost (no inventory)"],
    ]


def test_schedule_prefers_a_host_without_a_conflict(tmp_path: Path):
    """A fourth varnish: kni-worker6 is the only worker on a host that runs none."""
    manifest = json.loads(DUMP_TEXT)
    pod = next(one for one in manifest["items"] if one["metadata"]["name"] == "varnish-6d4cf-5pbr2")
    del pod["spec"]["nodeName"]
    pod["metadata"].update(name="varnish-6d4cf-new", uid="new")
    pod["status"] = {"phase": "Pending"}
    result = run(
        "schedule",
        "-f",
        DUMP,
        "-f",
        "-",
        "--inventory",
        INVENTORY,
        "-o",
        "json",
        "-l",
        "app=cache",
        stdin=json.dumps(pod),
    )
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["kind"] == "Placements"
    assert document["placements"] == {"default/varnish-6d4cf-new": "kni-worker6"}


DUMP_TEXT = (DATA / "dump.json").read_text(encoding="utf-8")


def test_control_characters_of_a_name_never_reach_the_terminal(tmp_path: Path):
    pod = {"kind": "Pod", "metadata": {"name": "a\x1b[31m", "namespace": "n"}, "spec": {"nodeName": "gone"}}
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod), encoding="utf-8")
    for output in ("table", "wide", "name", "junit"):
        assert "\x1b" not in run("check", "-f", DUMP, "-f", str(file), "-o", output).output


def test_the_line_of_an_unplaceable_pod_is_upstreams():
    assert available(7, {"node(s) b": 3, "node(s) a": 10}) == "0/7 nodes are available: 10 node(s) a, 3 node(s) b."
    assert available(0, {}) == "0/0 nodes are available:"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=db", (("app", "In", ("db",)),)),
        ("app==db,tier!=x", (("app", "In", ("db",)), ("tier", "NotIn", ("x",)))),
        ("app in (a, b),!old,new", (("app", "In", ("a", "b")), ("old", "DoesNotExist", ()), ("new", "Exists", ()))),
        ("x.io/k notin (a)", (("x.io/k", "NotIn", ("a",)),)),
    ],
)
def test_a_selector_is_read_as_kubectl_reads_it(text, expected):
    assert parse_selector(text) == expected


def test_on_a_terminal_a_long_message_is_below_its_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "60")
    rows = [("drift", "n1", "Node n1 is cordoned, and 1 pod that it would not take now runs there: shop/a\x1b[31m.")]
    show_on_terminal([Table(("SEVERITY", "NODE", "MESSAGE"), rows)])
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "SEVERITY   NODE",
        "drift      n1",
        "    Node n1 is cordoned, and 1 pod that it would not take",
        "    now runs there: shop/a?[31m.",
    ]


def test_a_check_of_a_small_dump_imports_nothing_that_it_does_not_need():
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from underhost.agents.commands.application import build\n"
        f"assert CliRunner().invoke(build(), ['check', '-f', {DUMP!r}, '--inventory', {INVENTORY!r}]).exit_code == 1\n"
        "heavy = ('faust', 'aiohttp', 'aiokafka', 'kubernetes_asyncio', 'pyVmomi', 'pydantic', 'rich.table')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_command_that_ends_its_process_has_said_everything_and_gives_its_exit_code():
    for output, fail_on, code in (("json", "physical", 1), ("table", "never", 0)):
        arguments = ["check", "-f", DUMP, "--inventory", INVENTORY, "-o", output, "--fail-on", fail_on]
        done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (code, run(*arguments).stdout, "")


@pytest.mark.parametrize("output", ["table", "json"])
def test_output_that_a_full_disk_does_not_take_is_an_error_and_no_answer(output: str):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "check", "-f", DUMP, "-o", output],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2,
        "error: standard output: No space left on device: it is not whole\n",
    )


def test_pods_without_any_node_are_not_judged(tmp_path: Path):
    pods = [one for one in json.loads(Path(DUMP).read_text())["items"] if one["kind"] == "Pod"]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"kind": "List", "items": pods}))
    result = run("check", "-f", str(file), "-o", "json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["summary"]["unknown-node"]) == (0, 0)
    assert [one["severity"] for one in report["findings"] if one["severity"] == "unknown-node"] == []
    assert {"what": "11 pods", "why": "no node"} in report["notJudged"]
    assert result.stderr == ""


def test_a_closed_input_is_an_error_in_one_line():
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -c '{PROGRAM}' check -f - <&-"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: stdin: is closed\n")


def test_a_closed_output_leaves_the_exit_code():
    arguments = f'"{sys.executable}" -c "{PROGRAM}" check -f "{DUMP}" --inventory "{INVENTORY}"'
    done = subprocess.run(["sh", "-c", f"{arguments} >&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
