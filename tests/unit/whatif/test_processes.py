"""Several processes answer one question: nothing is lost, whatever becomes of one of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.processes.underhost import UNDERHOST

from underhost.agents.schedule.progress import listen, told
from underhost.agents.whatif.processes import shared_out

DATA = Path(__file__).parents[2] / "data" / "kubevirt"
ALONE = "import os, sys; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); os.execv(sys.argv[1], sys.argv[1:])"
"""Python that runs a command on one processor."""

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")


def numbers(share: int, shares: int) -> Iterator[int]:
    """The share of the numbers to 10."""
    yield from range(share, 10, shares)


@linux_only
@pytest.mark.parametrize("shares", [1, 2, 3])
def test_each_share_is_answered_once(shares: int) -> None:
    assert sorted(shared_out(numbers, shares)) == list(range(10))


@linux_only
def test_the_share_of_a_process_that_is_killed_is_answered_by_its_parent() -> None:
    parent = os.getpid()

    def killed(share: int, shares: int) -> Iterator[int]:
        for number in numbers(share, shares):
            yield number
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    assert sorted(shared_out(killed, 2)) == list(range(10))


@linux_only
def test_what_a_share_raises_is_raised() -> None:
    def odd(share: int, shares: int) -> Iterator[int]:
        if share == 1:
            raise ValueError("an odd number")
        yield from numbers(share, shares)

    with pytest.raises(ValueError, match="an odd number"):
        list(shared_out(odd, 2))


@linux_only
def test_no_process_is_left_of_a_question_that_ends_early() -> None:
    def children() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    before = children()
    with closing(shared_out(numbers, 3)) as answers:
        next(answers)
        assert len(children() - before) == 2
    assert children() == before


def test_progress_counts_the_shares_of_all() -> None:
    heard: list[tuple[int, int]] = []
    listen(lambda what, done, total: heard.append((done, total)))
    try:
        assert list(told("each host fails", ["a", "b"], 2)) == ["a", "b"]
    finally:
        listen(None)
    assert heard == [(0, 4), (2, 4)]


@linux_only
@pytest.mark.parametrize("kind", ["host", "node"])
def test_several_processes_say_what_one_says(kind: str) -> None:
    files = ["-f", str(DATA / "dump.json"), "--inventory", str(DATA / "inventory.json")]
    command = [UNDERHOST, "fail", "--each", kind, *files, "-o", "json"]
    alone = subprocess.run([sys.executable, "-c", ALONE, *command], capture_output=True, text=True)
    several = subprocess.run(command, capture_output=True, text=True)
    assert (alone.returncode, alone.stdout, alone.stderr) == (several.returncode, several.stdout, several.stderr)
    assert len(json.loads(several.stdout)["items"]) > 2
