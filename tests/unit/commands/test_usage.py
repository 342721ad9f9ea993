"""What a person reads who has mistyped something: one line that says what was probably meant, and exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import run

from underhost.agents import cli
from underhost.schemas.near import near

SITE = str(Path(__file__).parents[3] / "docs/examples/cluster.yaml")
MANY = [f"worker{'x' * number}" for number in range(3000)]
NOTHING = "the input holds neither nodes, pods nor workloads: there is nothing to judge"
HOSTS = str(Path(__file__).parents[3] / "docs/examples/inventory.yaml")

MISTYPED = [
    pytest.param(
        ["chekc"], "underhost: no such command 'chekc'; did you mean check? (see underhost --help)", id="a command"
    ),
    pytest.param(
        ["config", "prnt"],
        "underhost config: no such command 'prnt'; did you mean print? (see underhost config --help)",
        id="a command of a group",
    ),
    pytest.param(
        ["explain", "--seletcor", "x"],
        "underhost explain: no such option: --seletcor; did you mean --selector? (see underhost explain --help)",
        id="an option",
    ),
    pytest.param(
        ["check", "--zzz"], "underhost check: no such option: --zzz (see underhost check --help)", id="nothing like it"
    ),
    pytest.param(
        ["drain"], "underhost drain: missing argument 'NODE...' (see underhost drain --help)", id="no argument"
    ),
    pytest.param(["replay", "--at"], "option '--at' requires an argument", id="an option without its value"),
    pytest.param(
        ["explain", "-o", "jsn"],
        "--output jsn: one of table, wide, json, yaml, name is expected; did you mean json?",
        id="a format",
    ),
    pytest.param(
        ["fail", "--each", "hots"], "--each hots: one of host, node is expected; did you mean host?", id="a kind"
    ),
    pytest.param(
        ["run", "--agents", "evaluater"],
        "--agents: no agent 'evaluater'; there is: kubernetes, vsphere, evaluator, labeller, pod-labeller, binder, drs,"
        " mover, evictor, events, reporter, alerts, web; did you mean evaluator?",
        id="an agent",
    ),
    pytest.param(
        ["run", "--enable", "DRSRules"],
        "--enable: no sink 'DRSRules'; there is: labels, pod-labels, bindings, drs-rules, events, reports;"
        " did you mean drs-rules?",
        id="a sink",
    ),
    pytest.param(["drain", "wroker-1", "-f", SITE], "node wroker-1: not there; did you mean worker-1?", id="a node"),
    pytest.param(["drain", "worker-7", "-f", SITE], "node worker-7: not there", id="another number is no slip"),
    pytest.param(
        ["maintain", "host/exs-1", "-f", SITE, "--inventory", HOSTS],
        "host exs-1: not there; did you mean esx-1?",
        id="a host",
    ),
    pytest.param(
        ["explain", "shop/bd-0", "-f", SITE],
        "pod shop/bd-0: not in the input, or finished; did you mean shop/db-0?",
        id="a pod",
    ),
    pytest.param(
        ["fail", "esx-1", "-f", SITE, "--inventory", HOSTS],
        "esx-1: what fails is named node/NODE or host/HOST; did you mean host/esx-1?",
        id="a host without its kind",
    ),
    pytest.param(
        ["explain", "db-2", "-f", SITE],
        "pod db-2: give its namespace; did you mean shop/db-2?",
        id="a pod without its namespace",
    ),
    pytest.param(
        ["violations", "--server", "http://127.0.0.1:1", "--follow"],
        "violations: --server shows what is open at a worker; --follow and the rest read the topics",
        id="a worker that is followed",
    ),
    pytest.param(
        ["demo", "--once", "--step-timeout", "nan"],
        "--step-timeout nan: more than 0 seconds are expected",
        id="a time that is no number",
    ),
    pytest.param(
        ["demo", "--once", "--step-timeout", "-1"],
        "--step-timeout -1: more than 0 seconds are expected",
        id="a time before now",
    ),
    pytest.param(
        ["check", "--server", "http://127.0.0.1:99999"],
        "--server http://127.0.0.1:99999: the address of a worker is expected, as http://HOST:PORT",
        id="a port that there is not",
    ),
    pytest.param(
        ["check", "--server", "http://[::1"],
        "--server http://[::1: the address of a worker is expected, as http://HOST:PORT",
        id="half an address",
    ),
    pytest.param(
        ["replay", "--at", "2999-01-01T00:00:00Z"],
        "--at 2999-01-01T00:00:00Z: this is still to come; a time of the last day is expected",
        id="a time that is still to come",
    ),
    pytest.param(
        ["check", "-f", SITE, "--inventory", HOSTS, "--inventory", HOSTS],
        "--inventory: given twice; one file holds the vSphere side",
        id="two inventories",
    ),
    pytest.param(
        ["check", "-f", SITE, "--inventory", ""], "--inventory: a file is expected, and the name is empty", id="no name"
    ),
    pytest.param(
        ["explain", "-o="], "--output: a value is expected, and it is empty", id="an option given nothing"
    ),
    pytest.param(
        ["completion", "bsh"], "completion: bsh: one of bash, zsh, fish is expected; did you mean bash?", id="a shell"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("words", "line"), MISTYPED)
def test_one_line_says_what_was_meant(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"error: {line}\n")


def test_topics_and_scenarios_are_suggested_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "topics", "violation") == 2
    assert capsys.readouterr().err.endswith("dead-letters; did you mean violations?\n")
    assert run(monkeypatch, "demo", "kubvirt") == 2
    assert capsys.readouterr().err.endswith("; did you mean kubevirt?\n")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["explain", f"-f={SITE}", "-n=shop", "-l=app=db", "-o=name"], id="each with its sign"),
        pytest.param(["explain", f"-Af={SITE}", "-Al=app=db", "-Ao=name"], id="with its sign, behind flags"),
        pytest.param(["explain", f"-f{SITE}", "-nshop", "-lapp=db", "-oname"], id="without one"),
        pytest.param(["explain", "-f", SITE, "-n", "shop", "-l", "app=db", "-o", "name"], id="as a word of its own"),
    ],
)
def test_a_short_option_takes_its_value_as_those_of_kubectl_do(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 0
    assert capsys.readouterr().out == "-n shop pod/db-2\n"


def test_who_interrupts_the_imports_reads_no_traceback() -> None:
    interrupted = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from underhost.agents.cli import program\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "words", [["config", "schema"], ["check", "-f", SITE], ["--help"]], ids=["much", "a clean site", "help"]
)
def test_an_answer_whose_reader_is_gone_is_no_answer(words: list[str]) -> None:
    """141, as of any program in a pipe: with 0 or 1 a script would take it for clean, or for findings."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from underhost.agents.cli import program; program()", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_who_interrupts_the_building_of_a_command_reads_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(only: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "build", interrupted)
    assert run(monkeypatch, "check") == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["check", "explain", "schedule"])
def test_a_namespace_that_is_not_there_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(monkeypatch, command, "-n", "shpo", "-f", SITE) == 2
    assert capsys.readouterr() == ("", "error: namespace shpo is not there; did you mean shop?\n")


def test_a_namespace_without_pods_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"kind": "Namespace", "metadata": {"name": "empty"}}')
    assert run(monkeypatch, "check", "-n", "empty", "-f", SITE, "-f", str(empty)) == 0
    assert capsys.readouterr() == (
        "0 pods, 3 nodes, 0 hosts: no findings\nNot judged: PhysicalHost (no inventory), pods (there are none)\n",
        "note: no pod in namespace empty\n",
    )


@pytest.mark.parametrize("command", ["check", "lint", "explain", "schedule"])
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param('{"kind": "List", "items": []}', NOTHING, id="an empty List"),
        pytest.param('{"kind": "Namespace", "metadata": {"name": "n"}}', NOTHING, id="only a namespace"),
        pytest.param('{"kind": "ConfigMap", "metadata": {"name": "n"}}', NOTHING, id="only what no rule reads"),
        pytest.param('{"kind": "Inventory", "hosts": [], "vms": []}', NOTHING, id="only an inventory"),
        pytest.param(
            '{"kind": "Status", "apiVersion": "v1", "code": 403, "message": "pods is forbidden"}',
            "{file}: is a Status, what the API server answers instead of objects: 'pods is forbidden'",
            id="a refusal",
        ),
    ],
)
def test_an_input_with_nothing_to_judge_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: str,
    content: str,
    fault: str,
) -> None:
    file = tmp_path / "input.json"
    file.write_text(content)
    assert run(monkeypatch, command, "-f", str(file)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()[-1]) == ("", f"error: {fault.format(file=file)}")


def test_what_a_note_repeats_of_a_file_cannot_harm_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"kind": "\\u001b[31mThing", "apiVersion": "x/v1", "metadata": {"name": "n"}}')
    assert run(monkeypatch, "check", "-f", SITE, "-f", str(file)) == 0
    assert capsys.readouterr().err == "note: ignored, no rule reads them: 1 ?[31mThing\n"


def test_a_mistyped_setting_is_told_with_its_file_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "underhost.yaml"
    file.write_text(
        "apiVersion: underhost/v1\nkind: Konfig\nsiet: x\nphysicalHost: prefered\nkafka: {bootstrapServer: a}\n"
        "alerting: {webhooks: [{urll: 'http://x'}]}\n"
    )
    assert run(monkeypatch, "config", "print", "--config", str(file)) == 2
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"error: {file}: alerting.webhooks.0.url: is missing",
        f"error: {file}: alerting.webhooks.0.urll: unknown key; did you mean url?",
        f"error: {file}: kafka.bootstrapServer: unknown key; did you mean bootstrapServers?",
        f"error: {file}: kind: Config is expected",
        f"error: {file}: physicalHost: one of preferred, required is expected; did you mean preferred?",
        f"error: {file}: siet: unknown key; did you mean site?",
    ]


def test_as_plugin_of_kubectl_it_calls_itself_as_it_is_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = "/usr/local/bin/kubectl-underhost"
    assert run(monkeypatch, "drain", "--help", program=plugin) == 0
    said = capsys.readouterr().out
    assert said.startswith("Usage: kubectl underhost drain ")
    assert "kubectl underhost inventory" in " ".join(said.split())
    assert run(monkeypatch, "drian", program=plugin) == 2
    assert capsys.readouterr().err == (
        "error: kubectl underhost: no such command 'drian'; did you mean drain? (see kubectl underhost --help)\n"
    )


def test_a_group_named_alone_shows_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "config") == 2
    assert capsys.readouterr().err.startswith("Usage: underhost config ")


@pytest.mark.parametrize(
    ("name", "names", "meant"),
    [
        pytest.param("NODES", ["nodes", "pods"], "nodes", id="capitals count for nothing"),
        pytest.param("wroker", MANY, None, id="of thousands, those that begin alike"),
        pytest.param("workr", MANY, "worker", id="of thousands, one is found"),
        pytest.param("x", [], None, id="nothing to choose from"),
    ],
)  # fmt: skip
def test_the_nearest_name(name: str, names: list[str], meant: str | None) -> None:
    assert near(name, names) == meant
