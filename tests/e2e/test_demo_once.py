"""`underhost demo` as a person starts it: a process of its own, on the embedded log, over the simulated site."""

import contextlib
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from underhost.agents.commands.handlers.demo import USUAL

PROGRAM = Path(sys.executable).with_name("underhost")
DATABASE = r"customapp/virt-launcher-mssql2016\w{5}-\w{5}"
TIME = r" *\d+\.\ds  "

STORY = [
    TIME + r"A simulated site: seven Kubernetes nodes on four ESXi hosts, .*",
    TIME + r"Learned where 7 nodes run, by their providerID:",
    r" +esx-1: kni-worker, kni-worker2",
    r" +esx-2: kni-worker3, kni-worker4",
    r" +esx-3: kni-worker5, kni-worker6",
    r" +esx-4: kni-control-plane",
    TIME + r"Wrote the ESXi host on 7 Node objects, .*: node\.cluster\.x-k8s\.io/esxi-host\.",
    TIME + r"Bound 9 pods that waited for a node:",
    r" +customapp/varnish-cache-54489f9fc9-5pbr2 to kni-worker\d? on esx-\d",
    r" +customapp/virt-launcher-mssql2016z2qnw-t924b to kni-worker[246] on esx-\d",
    TIME + r"Wrote \d DRS rules? into vCenter, so that it keeps these VMs on different hosts:",
    r" +kni-worker2, kni-worker4, kni-worker6 \(underhost-demo-.*\)",
    TIME + r"An operator moves kni-worker6 to esx-1, .*",
    TIME + r"A finding opens \((physical|violation)\): pods that must be apart share esx-1:",
    rf" +{DATABASE} on kni-worker[26] on esx-1",
    rf" +{DATABASE} on kni-worker[26] on esx-1",
    rf" +{DATABASE} \(node kni-worker[26]\) and {DATABASE} \(node kni-worker[26]\) both run on ESXi host esx-1, .*",
    TIME + r"DRS keeps the rule: it moves kni-worker6 from esx-1 to esx-[34]\.",
    TIME + r"The finding is resolved: its pods do not share esx-1 any more:",
    rf" +{DATABASE} on kni-worker[26] on esx-[134]",
    rf" +{DATABASE} on kni-worker[26] on esx-[134]",
]
"""Every sentence of the story, in order; between them there may be others."""


def assert_told(lines: list[str], story: list[str]) -> None:
    """Each pattern matches a whole line after the line of the pattern before it."""
    rest: Iterator[str] = iter(lines)
    for pattern in story:
        assert any(re.fullmatch(pattern, line) for line in rest), f"not told, or not in order: {pattern}\n" + "\n".join(
            lines
        )


def test_the_story_is_told_in_order_and_ends_with_success() -> None:
    done = subprocess.run([str(PROGRAM), "demo", "--once"], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert_told(done.stdout.splitlines(), STORY)
    assert "\x1b" not in done.stdout


def test_readme_tells_the_same_story() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (story,) = [block for block in re.findall(r"```text\n(.*?)```", readme, re.S) if "A simulated site" in block]
    assert_told(story.splitlines(), STORY)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_without_once_it_waits_for_enter_and_goes_on_until_it_is_told_to_stop(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = [str(PROGRAM), "demo", "--embedded", str(tmp_path / "demo.db")]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    commands, lines = [], []
    with subprocess.Popen(command, **pipes) as process:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.strip().startswith(str(PROGRAM)):
                commands.append(line.strip())
            if "--server" in line:  # the last of them
                for each in commands:
                    done = subprocess.run(
                        shlex.split(each), capture_output=True, text=True, env={}, timeout=60, check=False
                    )
                    assert (done.stderr, done.returncode) == ("", 0), each
                process.stdin.write("\n")  # Enter: seen enough
                process.stdin.flush()
            if "goes on until Ctrl-C" in line:
                break
        process.send_signal(number)
        lines += process.stdout.read().splitlines()
        errors = process.stderr.read()
    assert re.fullmatch(TIME + "Goodbye: .*", lines[-1])
    assert len(commands) == 3
    assert (process.returncode, errors) == (0, "")
    assert_told(lines, STORY)


def test_a_second_run_on_the_same_log_tells_its_own_story(tmp_path: Path) -> None:
    command = [str(PROGRAM), "demo", "--once", "--embedded", str(tmp_path / "demo.db")]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert_told(done.stdout.splitlines(), STORY)


@pytest.fixture
def taken() -> Iterator[None]:
    """The page's usual address is another program's: ours for the test, or whoever has it."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            other.bind(USUAL)
            other.listen()
        yield


def test_it_can_be_stopped_while_it_starts() -> None:
    assert_stopped_at_its_first_word(r"A simulated site: .*|127\.0\.0\.1:8080 is taken .*")


@pytest.mark.usefixtures("taken")
def test_it_can_be_stopped_when_it_has_said_that_the_usual_address_is_taken() -> None:
    assert_stopped_at_its_first_word(r"127\.0\.0\.1:8080 is taken by another program, so the page gets a free port\.")


def assert_stopped_at_its_first_word(word: str) -> None:
    with subprocess.Popen([str(PROGRAM), "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
    assert re.fullmatch(TIME + f"(?:{word})\n", first)
    assert (process.returncode, errors) == (0, "")


def test_a_step_that_does_not_come_in_time_is_named() -> None:
    command = [str(PROGRAM), "demo", "--once", "--step-timeout", "0.001"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "error: the mapping of nodes to ESXi hosts did not come within 0.001 s\n",
    )


def test_an_unknown_site_is_bad_usage() -> None:
    done = subprocess.run([str(PROGRAM), "demo", "nowhere"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "error: no simulated site 'nowhere'; there is: kubevirt\n")
