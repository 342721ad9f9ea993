"""Every command line of README and docs is run: with the output shown, here as it stands, or by a test that is named.

A new line in a fenced block of `sh` or `console` fails here until one of the three holds.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```", re.M | re.S)
SHOWN = re.compile(r"^```console\n\$ (underhost [^\n]+)\n(.+?)```$", re.M | re.S)
DATA = ROOT / "tests/data/kubevirt"


def lines_of(page: Path) -> list[str]:
    """The command lines of a page, as they are typed; comments behind them left out."""
    found = []
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in text.splitlines():
            typed = re.sub(r"\s{2,}#.*", "", line.strip())
            if kind == "sh" or typed.startswith("$ "):
                found.append(typed.removeprefix("$ "))
    return found


EVERY = {(str(page.relative_to(ROOT)), line) for page in PAGES for line in lines_of(page)}
WITH_OUTPUT = {
    (str(page.relative_to(ROOT)), command) for page in PAGES for command, _ in SHOWN.findall(page.read_text())
}
"""Run by test_readme.py, test_what_if.py and test_commands.py, which compare what they print."""

HERE = {
    "docs/how-to/ci-check.md": None,
    "docs/how-to/command-line.md": re.compile("completion"),
}
"""Pages whose lines are run below, or which of them."""

NEEDS_A_CLUSTER = "needs a Kubernetes API"
ELSEWHERE = {
    "make run": ("runs until Ctrl-C", "tests/e2e/test_demo_once.py"),
    'make run ARGS="--config underhost.yaml"': ("runs until Ctrl-C, with a cluster", "tests/real/world/test_story.py"),
    "make test": ("is what runs this", "Makefile"),
    "kubectl underhost check --context prod": (NEEDS_A_CLUSTER, "tests/unit/commands/input/test_sources.py"),
    "underhost check --context prod": (NEEDS_A_CLUSTER, "tests/unit/commands/input/test_sources.py"),
    "underhost explain shop/db-2 -f docs/examples/cluster.yaml --watch": (
        "runs until Ctrl-C", "tests/unit/commands/output/test_progress.py"
    ),
    "underhost inventory --url": ("needs a vCenter", "tests/real/vsphere/test_vcenter.py"),
    "underhost run --config underhost.yaml": ("runs until Ctrl-C, with a cluster", "tests/real/world/test_story.py"),
    "underhost run --config underhost.yaml --agents": ("needs Kafka", "tests/real/kafka/test_split.py"),
    "underhost violations --follow": ("runs until Ctrl-C", "tests/unit/commands/test_operators.py"),
    "underhost drain worker-1 worker-2 --server": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "underhost repair --apply --server": ("needs a worker", "tests/unit/commands/test_applying.py"),
    "underhost maintain --cluster C0 --apply": ("needs a worker", "tests/unit/commands/test_maintaining.py"),
    "underhost maintain host/esx-3 --server": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "underhost fail --each host --server": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "(umask 077; openssl rand": ("is run where its file is read", "tests/unit/http/doors/test_token.py"),
    "underhost replay --at": ("needs a past", "tests/e2e/test_replay.py"),
    "underhost resume prod-a": ("needs a worker that has stopped", "tests/unit/commands/test_resume.py"),
    "underhost topics --acls": ("is for an administrator of Kafka", "tests/real/kafka/test_rights.py"),
    "underhost violations": ("needs a log, or a worker", "tests/unit/commands/output/test_narrow.py"),
    "underhost explain NAMESPACE/POD --server": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "underhost whatif --delete": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "underhost fail host/HOST --server": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "underhost drain NODE --server": ("needs a worker", "tests/unit/commands/input/test_sources.py"),
    "underhost schedule -f manifest.yaml --context": (NEEDS_A_CLUSTER, "tests/unit/commands/input/test_sources.py"),
    "underhost lint --context": (NEEDS_A_CLUSTER, "tests/unit/commands/input/test_sources.py"),
    "underhost lint -f manifest.yaml --context": (NEEDS_A_CLUSTER, "tests/unit/commands/input/test_sources.py"),
    "underhost inventory --config": ("needs a vCenter", "tests/real/vsphere/test_vcenter.py"),
    "underhost dead-letters": ("needs a log", "tests/unit/commands/output/test_narrow.py"),
    "underhost config print": ("needs a configuration", "tests/unit/commands/test_usage.py"),
    "underhost resume SITE": ("needs a worker that has stopped", "tests/unit/commands/test_resume.py"),
    "underhost check -f self-check/": ("needs a difference", "tests/unit/pipeline/decide/test_self_check.py"),
    "underhost check -f picture.json": ("needs a worker's picture", "tests/unit/commands/input/test_sources.py"),
    "curl ": ("needs a worker", "tests/unit/http/test_openapi.py"),
    "cp underhost.db": ("needs a log", "tests/unit/streams/embedded/test_worker.py"),
    "python3 -m ": ("builds a wheel, with the network", "tests/unit/house/test_packaging.py"),
    "./underhost-venv/bin/": ("needs that wheel", "tests/unit/house/test_packaging.py"),
    "kcat ": ("needs Kafka", "tests/real/kafka/test_consumers.py"),
    "docs/examples/consume.sh": ("needs Kafka", "tests/real/kafka/test_consumers.py"),
    "connect-standalone.sh ": ("needs Kafka Connect", "tests/real/kafka/test_connect.py"),
    "make up": ("needs Docker: `make stack-test`", "tests/compose/stack.sh"),
    "docker ": ("needs Docker and a registry: `make stack-test` builds the image", "tests/compose/stack.sh"),
    "helm ": ("needs a cluster: the chart is rendered and applied", "tests/real/kubernetes/test_access.py"),
    "kubectl ": ("needs a cluster: kubectl is not part of the tests", "tests/real/kubernetes/test_access.py"),
}  # fmt: skip
"""By the beginning of the line: why it is not run here, and who does what it does."""


def is_run_here(page: str, line: str) -> bool:
    which = HERE.get(page, False)
    return which is not False and (which is None or which.search(line) is not None)


def elsewhere(line: str) -> str | None:
    """The entry of ELSEWHERE that says most of the line."""
    return max((one for one in ELSEWHERE if line.startswith(one)), key=len, default=None)


def test_every_command_is_run() -> None:
    left = {
        (page, line) for page, line in EVERY - WITH_OUTPUT if not is_run_here(page, line) and elsewhere(line) is None
    }
    assert left == set()


def test_every_reason_is_needed_and_every_test_that_is_named_is_there() -> None:
    used = {elsewhere(line) for page, line in EVERY - WITH_OUTPUT if not is_run_here(page, line)}
    assert set(ELSEWHERE) - used == set()
    assert [test for _, test in ELSEWHERE.values() if not (ROOT / test).exists()] == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what the pages speak of: a dump, its inventory, manifests about to be applied."""
    shutil.copy(DATA / "dump.json", tmp_path)
    shutil.copy(DATA / "inventory.json", tmp_path)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/web.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\n"
        "spec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n"
        "  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: web:1}]}\n"
    )
    return tmp_path


def typed(line: str, folder: Path, shell: str = "bash") -> subprocess.CompletedProcess[str]:
    """The line, as it stands, in a shell."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run([shell, "-c", line], cwd=folder, env=environment, capture_output=True, text=True)


CHECKS = [line for page, line in sorted(EVERY) if page == "docs/how-to/ci-check.md"]
EXIT = {"lint -f manifests/ -o": 0, "lint -f manifests/ -f": 1, "schedule": 1, "check": 1}
"""The dump has a budget that blocks every drain, a database that waits, and caches that share a host."""


@pytest.mark.parametrize("line", CHECKS, ids=lambda line: line[10:40])
def test_a_check_in_ci_can_be_copied_as_it_stands(line: str, checkout: Path) -> None:
    done = typed(line, checkout)
    expected = [code for begin, code in EXIT.items() if line.startswith(f"underhost {begin}")]
    assert [done.returncode] == expected
    assert [said for said in done.stderr.splitlines() if not said.startswith("note: ")] == []
    written = line.partition(" > ")[2]
    assert (checkout / written).stat().st_size > 100 if written else "default/web" in done.stdout


COMPLETIONS = [line for page, line in sorted(EVERY) if page == "docs/how-to/command-line.md" and "completion" in line]


@pytest.mark.parametrize("line", COMPLETIONS)
def test_a_shell_takes_its_completion(line: str, tmp_path: Path) -> None:
    """In the shell itself where it is installed; else that the script comes."""
    (shell,) = re.findall(r"completion (\w+)", line)
    script = f"underhost completion {shell}"
    if shell == "zsh":
        line = f"autoload -Uz compinit; compinit -D; {line}"
    done = typed(line, tmp_path, shell) if shutil.which(shell) else typed(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_example_that_a_page_shows_is_the_file() -> None:
    page = (ROOT / "docs/how-to/consume.md").read_text()
    assert f"```python\n{(ROOT / 'docs/examples/consume.py').read_text()}```" in page


def test_the_example_of_the_tables_says_what_each_host_carries(tmp_path: Path) -> None:
    files = [str(ROOT / "tests/data/kubevirt" / name) for name in ("dump.json", "inventory.json")]
    example = [sys.executable, str(ROOT / "docs/examples/tables.py"), *files]
    done = subprocess.run(example, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "name,memory_mib,used_mib,pods,findings",
        "esx-2,0,49152,3,1",
        "esx-4,0,16384,3,0",
        "esx-1,0,32768,2,0",
        "esx-3,0,16384,1,0",
    ], done.stderr
