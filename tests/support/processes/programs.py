"""Helpers of the tests that run as processes of their own, so that they can be killed or frozen; and programs that end
what they have started where they are told to end.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parents[2]
"""The folder that such a process starts in: it finds the modules of the tests there."""


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of `tests`, as `support.workers.killed`, with arguments."""
    return [sys.executable, "-m", module, *arguments]


def end_on_term() -> None:
    """SIGTERM unwinds this process as Ctrl-C does: blocks that have started others end them. Its exit code is 143."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def ran(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """What a program has said, once it has ended. Where we are told to end before, it is interrupted and waited for.

    `subprocess.run` would kill it, and what it has started would go on.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, errors = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
