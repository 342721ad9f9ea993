"""Workers in processes of their own that start at once: forked from one process that has imported everything.

In: a line of JSON for each worker on stdin: `config`, `log`, `mutant`. Out: a line with its pid. What runs is the
worker of `underhost run`, with shorter pauses (`paces.py`); it is killed by its pid like any other. All end with this
process.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from support.processes.programs import TESTS, program

from underhost.streams.kubernetes import library


class Nursery:
    """Where workers come from; use `started`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process, self._busy = process, asyncio.Lock()

    @classmethod
    async def started(cls, log: Path) -> "Nursery":
        """The process, which says when it has imported everything."""
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *program("trust.sieve.nursery"),
                cwd=TESTS,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        made = cls(process)
        assert await made._line() == b"ready\n", f"see {log}"
        return made

    async def worker(self, config: Path, log: Path, mutant: str = "") -> int:
        """The pid of a new worker."""
        asked = {"config": str(config), "log": str(log), "mutant": mutant}
        async with self._busy:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            await self._process.stdin.drain()
            return int(await self._line())

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.readline()

    async def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


def _main() -> None:
    workers = Workers()
    _import()
    print("ready", flush=True)
    for line in sys.stdin:
        pid = workers.fork()
        if not pid:
            _run(json.loads(line))
        print(pid, flush=True)
    workers.kill()


class Workers:
    """Forked processes that run. One that has ended is no zombie: its pid may be another program's, and is forgotten.

    Attributes:
        pids: of those that run, or have ended and were not waited for yet.
    """

    def __init__(self) -> None:
        self.pids: set[int] = set()
        signal.signal(signal.SIGCHLD, lambda number, frame: self._forget())

    def fork(self) -> int:
        """One more: its pid, or 0 in itself."""
        pid = os.fork()
        if pid:
            self.pids.add(pid)
            self._forget()  # it may have ended before its pid was known
        return pid

    def kill(self) -> None:
        """End those that still run."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # nobody is waited for any more: these pids stay ours
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)

    def _forget(self) -> None:
        for pid in list(self.pids):
            with contextlib.suppress(ChildProcessError):  # the signal came in the middle of this
                if not os.waitpid(pid, os.WNOHANG)[0]:
                    continue
            self.pids.discard(pid)


def kill(pid: int) -> None:
    """As a power failure does; nothing where it has ended, or where there is none (0, which is this whole group)."""
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether the process is still there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _import() -> None:
    """What a worker would import at its start: seconds of processor time."""
    for name in (
        "faust",
        "underhost.agents.worker",
        "underhost.agents.evaluate.evaluator",
        "underhost.agents.schedule.pending",
        "underhost.agents.sinks.drs.decider",
        "underhost.agents.sinks.drs.writer",
        "underhost.agents.sinks.events.sink",
        "underhost.agents.sinks.evictions.decider",
        "underhost.agents.sinks.kubernetes_writer",
        "underhost.agents.sinks.labels.decider",
        "underhost.streams.embedded.transport",
        "underhost.streams.kubernetes.watcher",
        "underhost.streams.vsphere.watcher",
        "trust.sieve.mutants",
    ):
        __import__(name)
    library.load()


def _run(asked: dict[str, Any]) -> None:
    """The worker, in the forked process; does not return."""
    from trust.sieve.mutants import MUTANTS
    from trust.sieve.paces import quicken

    from underhost.agents.pipeline import event_loop, logs
    from underhost.agents.worker import run_worker
    from underhost.streams.settings.load import load

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        with Path(asked["log"]).open("a", buffering=1) as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            with Path(os.devnull).open() as nothing:
                os.dup2(nothing.fileno(), 0)  # closed, it would be the number of a socket, which uvloop refuses
            logs.configure(1, log)
            # Who a worker is to a lease lies in this folder: the next worker of the plan is the same, and no other is.
            tempfile.tempdir = str(Path(asked["config"]).parent)
            quicken()
            if asked["mutant"]:
                MUTANTS[asked["mutant"]].plant()
            event_loop.run(run_worker(load(Path(asked["config"])), web=False))
            code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and its log says why
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _main()
