"""A worker that is frozen for longer than its session while another one takes its site, on a real Kafka broker."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster
from support.processes.kafka import KafkaProcess
from support.processes.programs import TESTS, program
from support.workers import frozen as frozen_worker
from support.workers.pipeline import running

from underhost.schemas.topics import OUTCOMES
from underhost.streams.settings.labels import CAPV_HOST_KEY

pytestmark = pytest.mark.real


@contextmanager
def frozen(journal: Path, address: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that has read a node's labels and stands still before it writes them."""
    command = program("support.workers.frozen", str(journal), address)
    out = subprocess.PIPE
    with subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True, cwd=TESTS) as worker:
        try:
            os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert worker.poll() is None, worker.stdout and worker.stdout.read()
            yield worker
        finally:
            worker.kill()


def holdings(worker: "subprocess.Popen[str]", count: int) -> list[str]:
    """The first lines in which the worker says what it holds. It ends early if the worker does."""
    assert worker.stdout is not None
    said = (line.strip() for line in worker.stdout if line.startswith("holding"))
    return list(islice(said, count))


async def test_what_a_frozen_worker_was_about_to_write_is_not_written_when_it_goes_on(
    broker: KafkaProcess, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    cluster = FakeCluster()
    cluster.node("n1", "h2")
    with frozen(journal, broker.address) as stale:
        async with running(frozen_worker.settings(broker.address), cluster) as owner:
            await owner.until(lambda: len(owner.records(OUTCOMES)) == 1)
            stale.send_signal(signal.SIGCONT)
            # It says that it holds its partitions anew; what it was doing before is over by then.
            assert len(await asyncio.to_thread(holdings, stale, 2)) == 2
    assert cluster.labelled == [("n1", {CAPV_HOST_KEY: "h2"})]
    assert not journal.exists() or "h1" not in journal.read_text().split()
