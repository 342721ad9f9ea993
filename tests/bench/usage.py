"""What a command, or a process that runs, uses: seconds, CPU, memory.

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


def cpu_of(*pids: int) -> float:
    """CPU seconds so far of these processes together."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int) -> float:
    """MiB that this process has had at most."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def machine() -> tuple[float, float]:
    """CPU seconds so far of all processors together: (busy, all)."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(field) for field in first.split()[1:9]]  # what guests use is counted as user time already
    everything = sum(ticks)
    return tuple(value / os.sysconf("SC_CLK_TCK") for value in (everything - ticks[3] - ticks[4], everything))


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
