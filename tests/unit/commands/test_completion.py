"""What a tab offers: asked as the shells ask, and once in a real bash with a real terminal."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.terminal import Terminal

from underhost.agents.commands.completion import SCRIPTS
from underhost.agents.commands.input.completing import answer

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
SITE, HOSTS = str(ROOT / "docs/examples/cluster.yaml"), str(ROOT / "docs/examples/inventory.yaml")

OFFERED = [
    pytest.param(["dr"], ["drain"], 4, id="commands"),
    pytest.param(["config", ""], ["print", "schema"], 4, id="commands of a group"),
    pytest.param(["check", "--f"], ["--filename", "--fail-on"], 4, id="options"),
    pytest.param(["check", "--fail-on", "never", "--fa"], [], 4, id="an option that may be given once, once"),
    pytest.param(["check", "-f", "a.json", "--file"], ["--filename"], 4, id="a repeatable option again"),
    pytest.param(["check", "-f", ""], [], 0, id="a file: the shell knows them"),
    pytest.param(["explain", "-o", ""], ["json", "name", "table", "wide", "yaml"], 4, id="formats"),
    pytest.param(["explain", "--output=j"], ["--output=json"], 4, id="a value behind an equals sign"),
    pytest.param(["explain", "--output", "=", "j"], ["json"], 4, id="the same, as bash splits it"),
    pytest.param(["explain", "--output", "="], ["json", "name", "table", "wide", "yaml"], 4, id="and nothing yet"),
    pytest.param(["lint", "--fail-on", "u"], ["unknown-host", "unknown-node", "unsatisfiable"], 4, id="severities"),
    pytest.param(["violations", "--severity", "n"], [], 4, id="severities, of which never is none"),
    pytest.param(["drain", "-f", SITE, ""], ["worker-1", "worker-2", "worker-3"], 4, id="nodes of the dump"),
    pytest.param(["drain", "-f", SITE, "worker-1", ""], ["worker-2", "worker-3"], 4, id="each node once"),
    pytest.param(["explain", "-f", SITE, "shop/"], ["shop/db-0", "shop/db-1", "shop/db-2"], 4, id="pods"),
    pytest.param(["explain", "-f", SITE, "-n", "shop", "db-"], ["db-0", "db-1", "db-2"], 4, id="pods of a namespace"),
    pytest.param(["explain", "-f", SITE, "-n", ""], ["shop"], 4, id="namespaces"),
    pytest.param(
        ["fail", "-f", SITE, "--inventory", HOSTS, "host/"], ["host/esx-1", "host/esx-2"], 4, id="hosts"
    ),
    pytest.param(["whatif", "-f", SITE, "--cordon", "w"], ["worker-1", "worker-2", "worker-3"], 4, id="a step's node"),
    pytest.param(["run", "--agents", "web,e"], ["web,evaluator", "web,events", "web,evictor"], 4, id="of a list"),
    pytest.param(["topics", "v"], ["violations", "vms"], 4, id="topics"),
    pytest.param(["drain", "-f", "no-such-file.json", ""], [], 4, id="a line that would fail offers nothing"),
    pytest.param(["no-such-command", ""], [], 4, id="nor does an unknown command"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "values", "directive"), OFFERED)
def test_a_tab_offers(words: list[str], values: list[str], directive: int, capsys: pytest.CaptureFixture[str]) -> None:
    *lines, last = answer(words).splitlines()
    assert [line.partition("\t")[0] for line in lines] == values
    assert last == f":{directive}"
    assert capsys.readouterr().err == ""


def test_contexts_come_from_the_kubeconfig_that_the_line_names(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("contexts: [{name: prod-a}, {name: prod-b}, {name: lab}]")
    assert answer(["check", "--kubeconfig", str(file), "--context", "pro"]) == "prod-a\nprod-b\n:4\n"


def test_kubectl_gets_the_same_answer() -> None:
    asked = subprocess.run([BIN / "kubectl_complete-underhost", "maint"], capture_output=True, text=True, check=True)
    assert asked.stdout == answer(["maint"])
    assert asked.stdout.startswith("maintain\t")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_itself_runs_the_plugin_and_completes_it() -> None:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}

    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["kubectl", *words], cwd=ROOT, env=environment, capture_output=True, text=True)

    checked = kubectl("underhost", "check", "-f", SITE, "--inventory", HOSTS, "-o", "name")
    assert (checked.returncode, checked.stdout) == (1, "-n shop pod/db-0\n")
    assert kubectl("underhost", "drain", "--help").stdout.startswith("Usage: kubectl underhost drain ")
    assert kubectl("__complete", "underhost", "drain", "-f", SITE, "w").stdout == "worker-1\nworker-2\nworker-3\n:4\n"


def test_bash_completes_a_node_of_the_dump() -> None:
    """At a real terminal: the tab turns `wor` into what is common to the nodes, an option and a file are completed."""
    environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "dumb", "INPUTRC": "/dev/null"}
    with Terminal(["bash", "--norc", "--noprofile", "-i"], ROOT, environment) as bash:
        bash.type("source <(underhost completion bash); stty columns 500; PS1=re''ady:\n")
        bash.until("ready:")
        bash.type("underhost drain -f docs/examples/cluster.yaml wor\t")
        bash.until("ker-")
        bash.type("3 --inv\t")
        bash.until("entory ")
        bash.type("docs/examples/inven\t")
        bash.until("tory.yaml ")
        bash.type("-o na\t\n")
        bash.until("-n shop pod/db-2")


@pytest.mark.parametrize("shell", list(SCRIPTS))
def test_there_is_a_script_for(shell: str) -> None:
    asked = subprocess.run([BIN / "underhost", "completion", shell], capture_output=True, text=True, check=True)
    assert "__complete" in asked.stdout
