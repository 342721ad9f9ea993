"""Helpers of the tests that run as processes of their own, so that they can be killed or frozen."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
"""The folder that such a process starts in: it finds the modules of the tests there."""


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of `tests`, as `support.workers.killed`, with arguments."""
    return [sys.executable, "-m", module, *arguments]
