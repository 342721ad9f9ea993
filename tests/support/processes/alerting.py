"""Debian's Alertmanager and Prometheus on loopback, on ports of their own, ended by pid."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from support.processes.ports import free_ports

ROUTES = """
route:
  receiver: people
  group_by: [alertname, site]
  group_wait: 500ms
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: people
    webhook_configs:
      - url: {url}
        send_resolved: true
"""


class _Process:
    name = ""

    def __init__(self, state: Path) -> None:
        self.state = state
        state.mkdir(parents=True, exist_ok=True)
        self.port, self._spare = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def arguments(self) -> list[str]:
        """Of the program."""
        raise AssertionError

    def start(self, timeout: float = 60) -> None:
        """Start, and return when it says that it is ready."""
        with (self.state / "log").open("ab") as log:
            self._process = subprocess.Popen([self.name, *self.arguments()], stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/-/ready", timeout=1).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"{self.name} did not start, see {self.state}/log")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def get(self, path: str) -> Any:
        """The decoded answer of its API."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)


class AlertmanagerProcess(_Process):
    """Notifies one webhook of every group, quickly."""

    name = "prometheus-alertmanager"

    def __init__(self, state: Path, webhook: str) -> None:
        super().__init__(state)
        (state / "alertmanager.yml").write_text(ROUTES.format(url=webhook))

    def arguments(self) -> list[str]:
        """Alone, its state in the folder."""
        return [
            f"--config.file={self.state}/alertmanager.yml",
            f"--storage.path={self.state}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        ]

    def remember(self, timeout: float = 60) -> None:
        """Return once it will know after a restart whom of its only group it has told.

        It writes that down after the receiver has answered, and forgets it if it is ended in between. A group is not
        looked at again before that, and each look asks this log once: the second is what is waited for.
        """
        deadline = time.monotonic() + timeout
        while self._looks() < 2:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} has not looked at its group again, see {self.state}/log")
            time.sleep(0.05)

    def _looks(self) -> float:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            values = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines())
        return float(values["alertmanager_nflog_queries_total"])


class PrometheusProcess(_Process):
    """Runs a configuration."""

    name = "prometheus"

    def __init__(self, state: Path, configuration: str) -> None:
        super().__init__(state)
        (state / "prometheus.yml").write_text(configuration)

    def arguments(self) -> list[str]:
        """Its state in the folder."""
        return [
            f"--config.file={self.state}/prometheus.yml",
            f"--storage.tsdb.path={self.state}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]


def missing() -> str | None:
    """What is not installed of the programs that these tests need."""
    names = ("prometheus", "promtool", "prometheus-alertmanager")
    absent = [name for name in names if shutil.which(name) is None]
    return f"needs {', '.join(absent)} (Debian's prometheus and prometheus-alertmanager)" if absent else None
