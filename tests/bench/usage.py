"""What a command uses: seconds, CPU seconds, memory. Called by the benches, and by itself as a small process.

`usage.py FILE COMMAND...` runs the command and writes the figures to FILE as JSON. Linux counts what a process was
before its exec as its memory: only a child of a small process shows its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple


class Usage(NamedTuple):
    """Seconds on the clock, CPU seconds, MiB at most."""

    wall: float
    cpu: float
    memory: float


def usage_of(command: list[str], stdout: "IO[bytes] | int" = subprocess.DEVNULL) -> Usage:
    """What the command used; its exit code may be 1."""
    with tempfile.NamedTemporaryFile() as figures:
        launcher = [sys.executable, __file__, figures.name, *command]
        if subprocess.run(launcher, stdout=stdout, stderr=subprocess.DEVNULL).returncode != 0:
            sys.exit(f"{command} failed")
        return Usage(*json.load(figures))


def main() -> None:
    """Run, and write down."""
    begin = time.perf_counter()
    child = subprocess.Popen(sys.argv[2:])
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    with Path(sys.argv[1]).open("w", encoding="utf-8") as figures:
        json.dump((wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), figures)
    sys.exit(os.waitstatus_to_exitcode(status) not in (0, 1))


if __name__ == "__main__":
    main()
