"""What is shown while a command works, and what `--watch` shows when something has changed: at a real terminal."""

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.terminal import Terminal

from underhost.agents.commands.output import progress
from underhost.agents.commands.output.progress import CLEAR, Line
from underhost.agents.schedule.progress import listen, told

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.timeout(90)
PROGRAM = Path(sys.executable).parent / "underhost"
SITE = ROOT / "docs/examples/cluster.yaml"


@pytest.fixture
def slow_file(tmp_path: Path) -> Path:
    """A file that has its content only once the test writes it."""
    path = tmp_path / "cluster.yaml"
    os.mkfifo(path)
    return path


def test_a_line_says_what_is_being_read_and_is_gone_before_the_answer(slow_file: Path) -> None:
    with Terminal([PROGRAM, "check", "-f", slow_file.name], slow_file.parent) as screen:
        screen.until("reading cluster.yaml … 1 s")
        slow_file.write_text(SITE.read_text())
        shown = screen.rest()
    assert shown.rpartition(CLEAR)[2] == (
        "3 pods, 3 nodes, 0 hosts: no findings\nNot judged: PhysicalHost (no inventory), 1 pod (pending)\n"
    )


def test_a_fault_is_a_line_of_its_own(slow_file: Path) -> None:
    with Terminal([PROGRAM, "check", "-f", slow_file.name], slow_file.parent) as screen:
        screen.until("reading cluster.yaml … 1 s")
        slow_file.write_text("kind: Pod\nmetadata: [")
        shown = screen.rest()
    assert [line.partition(": ")[0] for line in left(shown)] == ["error"]
    assert screen.process.returncode == 2


def left(drawn: str) -> list[str]:
    """The lines that are on the screen at the end."""
    return [line for each in drawn.split("\n") if (line := each.rpartition(CLEAR)[2])]


class Screen(io.StringIO):
    """What was drawn, and a way to wait for more of it."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = threading.Semaphore(0)

    def flush(self) -> None:
        self.flushed.release()


def test_what_is_written_in_parts_is_not_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(progress, "AFTER", 0.001)
    screen = Screen()
    line = Line(screen)
    line.show("reading")
    assert screen.flushed.acquire(timeout=60)
    line.write_above("error: ")
    for _ in range(3):  # it clears its line, and would draw it again
        screen.flushed.acquire(timeout=0.05)
    line.write_above("broken\n")
    line.end()
    assert left(screen.getvalue()) == ["error: broken"]


def test_what_is_waited_for_cannot_speak_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.001)
    screen = Screen()
    line = Line(screen)
    line.show("waiting: vsphere: VM a\x1b[8m\u202eb is gone")
    while "waiting" not in screen.getvalue():  # its thread may have drawn the line before
        assert screen.flushed.acquire(timeout=60)
    line.end()
    assert f"{CLEAR}waiting: vsphere: VM a?[8m?b is gone" in screen.getvalue()


REPORT = [PROGRAM, "check", "-f", SITE, "--inventory", ROOT / "docs/examples/inventory.yaml"]
COLOUR = re.compile(r"\x1b\[[0-9;]+m")


def test_a_dumb_terminal_gets_plain_text() -> None:
    with Terminal(REPORT, ROOT, {"TERM": "dumb"}) as screen:
        shown = screen.rest()
    assert shown.startswith("SEVERITY   RULE ")
    assert "\x1b" not in shown


def test_no_colour_means_no_colour() -> None:
    with Terminal(REPORT, ROOT, {"NO_COLOR": "1"}) as screen:
        shown = screen.rest()
    assert "physical" in shown
    assert COLOUR.findall(shown) == []


def test_colour_is_for_a_terminal() -> None:
    with Terminal(REPORT, ROOT) as screen:
        assert "\x1b[31mphysical" in screen.rest()
    assert b"\x1b" not in subprocess.run(REPORT, capture_output=True).stdout


def test_off_a_terminal_nothing_is_said_however_long_it_takes(slow_file: Path) -> None:
    with subprocess.Popen([PROGRAM, "check", "-f", slow_file], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
        slow_file.write_text(SITE.read_text())
        assert asked.communicate()[1] == b""


def test_a_start_says_what_it_waits_for_until_it_is_ready(tmp_path: Path) -> None:
    """Lines of the log go above that line, which is gone once all is ready."""
    command = [PROGRAM, "run", "-f", SITE, "--listen", "127.0.0.1:0", "--embedded", tmp_path / "underhost.db"]
    with Terminal(command, tmp_path, {"NO_COLOR": "1"}) as screen:
        screen.until("waiting: worker: it waits for its partitions and their tables")
        assert re.search(rf"{re.escape(CLEAR)}\S+ \[info +\] ready", screen.until("ready  "))
        screen.process.terminate()
        assert screen.rest().count(CLEAR) == 0
        assert screen.process.returncode == 0


@pytest.fixture
def heard() -> Iterator[list[tuple[str, int, int]]]:
    found: list[tuple[str, int, int]] = []
    listen(lambda what, done, total: found.append((what, done, total)))
    yield found
    listen(None)


def test_the_engine_counts_for_whoever_listens(heard: list[tuple[str, int, int]]) -> None:
    assert list(told("placing pods", ["a", "b"])) == ["a", "b"]
    assert heard == [("placing pods", 0, 2), ("placing pods", 1, 2)]


def test_the_engine_counts_nothing_for_nobody() -> None:
    items = ["a", "b"]
    assert told("placing pods", items) is items


def test_explain_watches_a_pod_until_it_has_a_node(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(SITE.read_text())
    with Terminal([PROGRAM, "explain", "-f", file, "-w"], ROOT, {"TERM": "dumb"}) as screen:
        screen.until("no         -       InterPodAffinity")
        file.write_text("kind: Pod\nmetadata: [")
        screen.until("again\n")
        file.write_text(json.dumps({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}))
        assert "Changed at " in screen.until("No pending pods.\n")


def test_check_watches_too_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    file, inventory = tmp_path / "cluster.yaml", tmp_path / "inventory.yaml"
    file.write_text(SITE.read_text())
    inventory.write_text((ROOT / "docs/examples/inventory.yaml").read_text())
    with Terminal([PROGRAM, "check", "-f", file, "--inventory", inventory, "-w"], ROOT, {"TERM": "dumb"}) as screen:
        screen.until("1 physical\n")
        inventory.write_text(
            inventory.read_text().replace("uuid: 4212aaaa-0000-4000-8000-000000000002, host: host-1", "host: host-2")
        )
        assert "Changed at " in screen.until("no findings\n")
        screen.process.send_signal(2)
        assert screen.process.wait(60) == 130


def test_standard_input_cannot_be_watched() -> None:
    asked = subprocess.run([PROGRAM, "check", "-f", "-", "-w"], input=b"", capture_output=True)
    assert (asked.returncode, asked.stderr) == (2, b"error: --watch: standard input can be read only once\n")
