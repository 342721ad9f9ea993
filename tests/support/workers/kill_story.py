"""Killing a worker in the middle and looking at what its runs have done together. Used with both transports."""

import json
import subprocess
from collections import Counter
from pathlib import Path

from support.processes.programs import TESTS, program
from support.workers import killed as killed_worker

from underhost.schemas.topics import Topic
from underhost.streams.reader import open_reader


def killed(folder: Path, stall: str, bootstrap: str = "-") -> None:
    """Start a worker, wait until it stands still in a write, and kill it: nothing of it can be said or finished."""
    command = program("support.workers.killed", str(folder), bootstrap, stall)
    with (folder / "stderr").open("ab") as errors:
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=TESTS)
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == "stalled\n", (folder / "stderr").read_text()
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def finished(folder: Path, bootstrap: str = "-") -> None:
    """Start a worker and let it come to its end."""
    command = program("support.workers.killed", str(folder), bootstrap, "never")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=TESTS)
    assert done.returncode == 0, done.stderr


def journal(folder: Path) -> list[dict[str, object]]:
    """Every write that the cluster has seen, sorted."""
    lines = [json.loads(line) for line in (folder / "journal").read_text().splitlines()]
    return sorted(lines, key=lambda each: (each["kind"], each["name"]))


async def ordered(folder: Path, topic: Topic, bootstrap: str = "-") -> Counter[str]:
    """How often each target was ordered, of all runs."""
    reader = open_reader(killed_worker.settings(folder, bootstrap).kafka)
    keys = [(record.key or b"").decode() async for record in reader.history([topic])]
    await reader.close()
    return Counter(keys)


EVERYTHING = [
    *({"kind": "bind", "name": f"db-{number}", "node": f"n{number}"} for number in range(killed_worker.NODES)),
    *(
        {"kind": "label", "labels": {"node.cluster.x-k8s.io/esxi-host": f"h{number}"}, "name": f"n{number}"}
        for number in range(killed_worker.NODES)
    ),
]
