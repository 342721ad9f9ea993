"""One question about many targets, answered by several processes, each of which takes its share of the targets.

In: what answers one share of so many. Out: the answers, in no order. The processes are copies of this one (fork), so
the site is read once. polars does not work in a copy of a process that has used it: here it must not have been used
yet, and each process uses its own.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from underhost.agents.schedule.progress import listen

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
Answer = Callable[[int, int], Iterator[T]]
"""The answers to one share: (share, shares)."""

MOST = 4
"""Processes at most: each holds by itself what it changes of the site."""


def processes() -> int:
    """How many processes can answer: one where the system does not copy processes, or polars was used already."""
    if sys.platform != "linux" or "polars" in sys.modules:
        return 1
    return min(MOST, len(os.sched_getaffinity(0)))


def shared_out(answer: Answer[T], shares: int) -> Iterator[T]:
    """The answers to all shares. This process takes the first, and that of a copy which ends before its time.

    Raises whatever `answer` raises here.
    """
    copies = [_Copy(answer, share, shares) for share in range(1, shares)]
    try:
        for one in answer(0, shares):
            yield one
            for copy in copies:
                copy.receive()
        for copy in copies:
            yield from copy.all()
    finally:
        for copy in copies:
            copy.end()


class _Copy(Generic[T]):
    """A copy of this process, with its share."""

    def __init__(self, answer: Answer[T], share: int, shares: int) -> None:
        # A worker imports this module, and never copies itself.
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._answer, self._share, self._shares = answer, share, shares
        self._come, told = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(answer, share, shares, told), daemon=True)
        self._process.start()
        told.close()
        self._answers: list[T] = []

    def receive(self) -> None:
        """Take what has come, so that the copy need not wait with what it has."""
        with suppress(EOFError):
            while self._come.poll():
                self._answers.append(self._come.recv())

    def all(self) -> Iterator[T]:
        """Every answer of its share, once they are there."""
        with suppress(EOFError):
            while True:
                self._answers.append(self._come.recv())
        self._process.join()
        return iter(self._answers) if self._process.exitcode == 0 else self._answer(self._share, self._shares)

    def end(self) -> None:
        """It is not needed any more."""
        self._process.kill()
        self._process.join()
        self._come.close()


def _work(answer: Answer[T], share: int, shares: int, told: "Connection") -> None:
    """In the copy: answer, and end with 0 only where that is whole. What is raised here, its parent raises again."""
    listen(None)  # the line on the terminal is the parent's
    is_whole = False
    try:
        for one in answer(share, shares):
            told.send(one)
        is_whole = True
    finally:
        told.close()
        os._exit(0 if is_whole else 1)
