"""What `underhost schedule` takes for a file: the whole command, and the loop alone in a fresh process.

In: a dump of objects. Out: the least of three runs of each, and the placements. Run as a program, it prints the seconds
of the loop over one file.
"""

import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.usage import usage_of
from support.processes.underhost import UNDERHOST

ROUNDS = 3


class Placed(NamedTuple):
    """Seconds of the whole command and of its loop, MiB at most, and the node of each pod."""

    seconds: float
    loop: float
    memory: float
    placements: dict[str, str | None]


def placed(document: bytes) -> Placed:
    """Place the pending pods of a dump, several times."""
    with tempfile.NamedTemporaryFile(suffix=".json") as dump:
        dump.write(document)
        dump.flush()
        seconds, memory, placements = min((_whole(dump.name) for _ in range(ROUNDS)), key=lambda one: one[0])
        return Placed(seconds, min(_loop(dump.name) for _ in range(ROUNDS)), memory, placements)


def _whole(path: str) -> tuple[float, float, dict[str, str | None]]:
    with tempfile.TemporaryFile() as answer:
        used = usage_of([UNDERHOST, "schedule", "-f", path, "-o", "json"], answer)
        answer.seek(0)
        return used.wall, used.memory, json.load(answer)["placements"]


def _loop(path: str) -> float:
    command = [sys.executable, "-m", "bench.placement.timed", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return float(done.stdout)


def _loop_of(path: str) -> float:
    """Seconds from the compiled model to the last placement."""
    from underhost.agents.compiled.model import compile
    from underhost.agents.compiled.state import State
    from underhost.agents.schedule.pending import place_all
    from underhost.agents.site.snapshot import Options
    from underhost.agents.snapshots.load import snapshot_of
    from underhost.streams.files.reader import load_files

    snapshot, _ = snapshot_of(load_files([path]))
    model = compile(snapshot, Options())
    gc.freeze()  # as the command does with what it has read
    begin = time.perf_counter()
    place_all(State(model))
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(_loop_of(sys.argv[1]))
