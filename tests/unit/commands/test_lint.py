"""What `lint` prints of manifests and of the seeds' cluster, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from support.answers.lint import documents
from support.build import HOST, ZONE, a_budget, a_manifest, a_node, a_pod, app, term
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.schemas.errors import InputError

DATA = Path(__file__).parents[2] / "data" / "kubevirt"
BLACKBOX = """\
apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachineInstanceReplicaSet
metadata:
  name: blackbox
spec:
  replicas: 3
  selector:
    matchLabels:
      kubevirt.io/domain: blackbox
  template:
    metadata:
      name: blackbox
      labels:
        kubevirt.io/domain: blackbox
    spec:
      affinity:
        podAffinity: #This rule ensures that the application must be placed on nodes where Varnish Cache is running
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector:
                matchExpressions:
                  - key: app
                    operator: In
                    values:
                      - cache
              topologyKey: topology.kubernetes.io/hostname
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector:
                matchExpressions:
                  - key: "kubevirt.io/domain"
                    operator: In
                    values:
                      - blackbox
              topologyKey: topology.kubernetes.io/zone
      domain: {}
"""
FIELD = "spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"


def lint(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(build(), ["lint", *arguments], input=stdin)


@pytest.fixture
def blackbox(tmp_path: Path) -> str:
    """The manifest of seed 000, as it is printed there, in a file."""
    file = tmp_path / "blackbox.yaml"
    file.write_text(BLACKBOX)
    return str(file)


def test_the_blackbox_of_seed_000_cannot_be_placed_anywhere_in_its_cluster(blackbox: str) -> None:
    result = lint("-f", str(DATA / "dump.json"), "-f", blackbox, "-o", "json")
    assert result.exit_code == 1
    (finding,) = (one for one in json.loads(result.stdout)["findings"] if one["severity"] == "unsatisfiable")
    assert (finding["object"], finding["field"], finding["rule"], finding["source"]) == (
        "VirtualMachineInstanceReplicaSet/default/blackbox",
        FIELD,
        "InterPodAffinity",
        "topology-key-absent",
    )
    assert finding["message"] == (
        "No node carries the label topology.kubernetes.io/hostname, so the required affinity of "
        "VirtualMachineInstanceReplicaSet default/blackbox can never be met and none of its pods can be placed: "
        "kubernetes.io/hostname is meant."
    )
    assert "pod" not in finding and "node" not in finding


def test_the_corrected_blackbox_is_fine_beside_the_cache(blackbox: str) -> None:
    Path(blackbox).write_text(BLACKBOX.replace("topology.kubernetes.io/hostname", "kubernetes.io/hostname"))
    result = lint(
        "-f", str(DATA / "dump.json"), "-f", blackbox, "--inventory", str(DATA / "inventory.json"), "-o", "json"
    )
    assert [one["object"] for one in json.loads(result.stdout)["findings"] if "blackbox" in one["object"]] == []


def test_a_table_names_object_and_field_and_ends_with_a_summary() -> None:
    result = lint("-f", str(DATA / "dump.json"), "--inventory", str(DATA / "inventory.json"))
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["SEVERITY", "RULE", "OBJECT", "FIELD", "MESSAGE"]
    assert [line.split()[:3] for line in lines[1:-1]] == [
        ["physical", "PhysicalHost", "Deployment/default/varnish"],
        ["budget", "PodDisruptionBudget", "PodDisruptionBudget/default/mssql"],
        ["drift", "Quorum", "Node/kni-control-plane"],
    ]
    assert lines[-1] == "11 pods, 7 nodes, 4 hosts: 1 physical, 1 budget, 1 drift"
    assert result.exit_code == 1


def test_wide_adds_the_check_and_the_id() -> None:
    result = lint("-f", "-", "-o", "wide", stdin=documents(a_manifest().apart(term("", app("db")))))
    header, row = (line.split() for line in result.stdout.splitlines()[:2])
    assert header == ["SEVERITY", "RULE", "CHECK", "OBJECT", "FIELD", "ID", "MESSAGE"]
    assert row[:4] == ["unsatisfiable", "InterPodAffinity", "topology-key-empty", "Deployment/shop/db"]
    assert len(row[5]) == 16
    assert " Correct the field that it names, as the message says.   docs/runbooks/" in result.stdout


def test_names_are_those_of_objects() -> None:
    result = lint("-f", "-", "-o", "name", stdin=documents(a_manifest().apart(term("", app("db")))))
    assert result.stdout == "-n shop Deployment/db\n"


def test_yaml_is_the_same_document(blackbox: str) -> None:
    assert yaml.safe_load(lint("-f", blackbox, "-o", "yaml").stdout) == json.loads(
        lint("-f", blackbox, "-o", "json").stdout
    )


def test_sarif_points_at_the_file_of_the_object(blackbox: str) -> None:
    log = json.loads(lint("-f", str(DATA / "dump.json"), "-f", blackbox, "-o", "sarif").stdout)
    results = {one["ruleId"]: one for one in log["runs"][0]["results"]}
    (location,) = results["unsatisfiable/InterPodAffinity"]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == blackbox
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "VirtualMachineInstanceReplicaSet/default/blackbox"


def test_sarif_names_the_line_on_which_the_object_begins_and_where_its_runbook_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = documents(a_manifest().apart(term("", app("db"))), a_budget("db", app("db"), min_available=0))
    file = tmp_path / "all.yaml"
    file.write_text(text)
    monkeypatch.setenv("UNDERHOST_ALERTING__RUNBOOKS", "https://docs.example/runbooks/")
    (run,) = json.loads(lint("-f", str(file), "-o", "sarif").stdout)["runs"]
    where = {
        one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: one["locations"][0] for one in run["results"]
    }
    begins = {
        label: text.splitlines()[one["physicalLocation"]["region"]["startLine"] - 1] for label, one in where.items()
    }
    assert {label: "kind" in line or "apiVersion" in line for label, line in begins.items()} == dict.fromkeys(
        where, True
    )
    assert len({one["physicalLocation"]["region"]["startLine"] for one in where.values()}) == len(where) == 2
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["helpUri"].startswith("https://docs.example/runbooks/Underhost")
        assert rule["help"]["text"]


CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: n}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      parallelism: 2
      template: {spec: {affinities: {}, nodeSelectors: {a: b}, containers: [{name: c}]}}
"""
POOL = """
apiVersion: pool.kubevirt.io/v1alpha1
kind: VirtualMachinePool
metadata: {name: pool, namespace: n}
spec:
  replicas: 2
  virtualMachineTemplate:
    spec: {runStrategy: Always, template: {spec: {domain: {resources: {requests: {memory: 1Gi}}}}}}
"""


@pytest.mark.parametrize(
    ("text", "note", "pods"),
    [
        pytest.param(CRON_JOB, "CronJob/n/nightly as a Job", ["n/nightly-0", "n/nightly-1"], id="a CronJob"),
        pytest.param(
            CRON_JOB.replace("  schedule", "  suspend: true\n  schedule"), "as a Job", [], id="a suspended one"
        ),
        pytest.param(
            POOL,
            "VirtualMachinePool/n/pool as a VirtualMachineInstanceReplicaSet",
            ["n/virt-launcher-pool-0", "n/virt-launcher-pool-1"],
            id="a pool",
        ),
        pytest.param(POOL.replace("Always", "Halted"), "as a VirtualMachine", [], id="a pool that is halted"),
    ],
)
def test_what_makes_pods_by_way_of_others_is_read_as_what_it_makes(text: str, note: str, pods: list[str]) -> None:
    done = CliRunner().invoke(build(), ["schedule", "-f", "-", "-o", "json"], input=text)
    assert json.loads(done.stdout)["order"] == pods
    assert note in done.stderr


def test_a_field_of_a_cron_job_that_is_misspelled_is_found() -> None:
    found = json.loads(lint("-f", "-", "-o", "json", stdin=CRON_JOB).stdout)["findings"]
    assert [one["field"] for one in found] == ["spec.template.spec.nodeSelectors"]


def test_junit_fails_only_what_counts() -> None:
    text = documents(a_manifest().apart(term("", app("db"))), a_budget("db", app("db"), min_available=0))
    suite = ElementTree.fromstring(lint("-f", "-", "-o", "junit", stdin=text).stdout)[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("underhost lint", "2", "1")


WEAK, BUDGET = a_manifest(name="weak").near(term(HOST, app("gone"))), a_budget("db", app("db"), min_available=0)


@pytest.mark.parametrize(
    ("objects", "arguments", "code"),
    [
        ([a_manifest()], [], 0),
        ([WEAK], [], 0),
        ([WEAK], ["--fail-on", "drift"], 1),
        ([a_manifest(), BUDGET], [], 0),
        ([a_manifest(), BUDGET], ["--fail-on", "budget"], 1),
        ([a_manifest(), BUDGET], ["--fail-on", "co-located"], 1),
        ([a_manifest().apart(term("", app("db")))], [], 1),
        ([a_manifest().apart(term("", app("db")))], ["--fail-on", "physical"], 0),
        ([a_manifest().apart(term("", app("db")))], ["--fail-on", "never"], 0),
    ],
)
def test_the_exit_code_is_1_from_the_severity_upwards(objects: list[object], arguments: list[str], code: int) -> None:
    assert lint("-f", "-", *arguments, stdin=documents(*objects)).exit_code == code


def test_a_host_key_of_ones_own_is_meant_where_it_is_named() -> None:
    text = documents(a_node("n0").labels({"rack/host": "a"}), a_node("n1"))
    assert lint("-f", "-", "-o", "name", "--host-key", "rack/host", stdin=text).stdout == "Node/n1\n"


def test_the_output_is_byte_identical_for_every_order_of_the_input() -> None:
    objects = [
        a_node("n0").labels({ZONE: "a"}),
        a_node("n1"),
        a_pod("p").on("n0"),
        a_manifest(replicas=4).apart(term(HOST, app("db"))),
        WEAK,
        BUDGET,
    ]
    one = lint("-f", "-", "-o", "json", stdin=documents(*objects))
    other = lint("-f", "-", "-o", "json", stdin=documents(*objects[4:], *objects[:4][::-1]))
    assert len(json.loads(one.stdout)["findings"]) == 3
    assert other.stdout == one.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            documents(
                a_manifest().spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "x"}})
            ),
            "stdin: Deployment/shop/db: spec.template.spec.affinity.podAntiAffinity"
            ".requiredDuringSchedulingIgnoredDuringExecution: expected a list, got a string",
        ),
        ('{"kind": "Deployment", "metadata": {"name": "x"', "stdin: "),
        ("just: text", "stdin: has no kind"),
    ],
)
def test_bad_input_names_file_object_and_field_and_ends_with_code_2(text: str, says: str) -> None:
    command = [str(Path(sys.executable).parent / "underhost"), "lint", "-f", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.startswith(f"error: {says}") for line in done.stderr.splitlines() if line[:5] != "note:"] == [True]


def test_an_unknown_severity_is_refused() -> None:
    assert isinstance(lint("-f", "-", "--fail-on", "bad", stdin=documents(a_manifest())).exception, InputError)
