"""The command `underhost` in a process of its own: asked for an answer, or run as a worker until a test ends it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from support.processes.kube import Kube
from support.processes.ports import free_ports
from support.processes.vcsim import PASSWORD, USERNAME, Vcsim

UNDERHOST = str(Path(sys.executable).parent / "underhost")


def config_of(folder: Path, kube: Kube, vcsim: Vcsim) -> dict[str, Any]:
    """A configuration that works, over these parts and the embedded default; its secrets are files of the folder."""
    password, ca = folder / "password", folder / "ca.pem"
    password.write_text(PASSWORD)
    ca.write_text(vcsim.certificate)
    return {
        "kafka": {"embedded": str(folder / "underhost.db")},
        "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
        "vsphere": {"url": vcsim.url, "username": USERNAME, "passwordFile": str(password), "caFile": str(ca)},
        "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
    }


def answer_of(*arguments: str, code: int) -> Any:
    """The JSON that the command prints; it must end with this exit code."""
    done = subprocess.run([UNDERHOST, *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


class Worker:
    """`underhost run --config` of these agents, "" for all; what it says is added to the file `log`."""

    def __init__(self, config: Path, log: Path, agents: str = "") -> None:
        self._config, self._log, self._agents = config, log, agents
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again."""
        with self._log.open("ab") as out:
            self._process = self._spawn(out)

    def _spawn(self, out: IO[bytes]) -> "subprocess.Popen[bytes]":
        command = [UNDERHOST, "run", "--config", str(self._config)]
        command += ["--agents", self._agents] if self._agents else []
        return subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "NO_COLOR": "1"})

    @property
    def pid(self) -> int:
        """Its process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def end(self, number: signal.Signals) -> int:
        """Send it the signal if it still runs; its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(30)

    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text() if self._log.exists() else ""


@contextmanager
def running(config: Path, log: Path, agents: str = "") -> Iterator[Worker]:
    """A worker that is killed at the end of the block; its log is printed if the block fails."""
    worker = Worker(config, log, agents)
    worker.start()
    try:
        yield worker
    except BaseException:
        print(worker.log()[-6000:])
        raise
    finally:
        worker.end(signal.SIGKILL)
