"""Helpers of the tests that run as processes of their own, so that they can be killed or frozen."""

import sys
from pathlib import Path

_RUN = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__')"


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of `tests`, as `support.workers.killed`, with arguments."""
    return [sys.executable, "-c", _RUN, str(Path(__file__).parents[2]), module, *arguments]
