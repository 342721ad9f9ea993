"""What Prometheus sees of a worker: the demo's story as metrics, and as alerts that fire and resolve."""

import asyncio
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support.fakes.receiver import Receiver
from support.processes.alerting import AlertmanagerProcess, PrometheusProcess
from support.processes.ports import free_ports

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[3]
RULES = ROOT / "compose/prometheus/rules/underhost.yml"
CONFIGURATION = """
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: [{rules}]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: underhost
    static_configs: [{{targets: ["127.0.0.1:{worker}"]}}]
"""


class Demo(NamedTuple):
    """The demo, running: the port of its page, and its process."""

    port: int
    process: "subprocess.Popen[bytes]"

    def press_enter(self) -> None:
        """Its finding need not wait for a visitor any more."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """The demo."""
    (port,) = free_ports(1)
    program = Path(sys.executable).parent / "underhost"
    arguments = ["demo", "--embedded", str(tmp_path / "demo.db"), "--listen", f"127.0.0.1:{port}"]
    with (tmp_path / "demo.log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=log, stderr=log)
    yield Demo(port, process)
    process.terminate()
    assert process.wait(30) == 0


async def test_a_finding_of_the_demo_fires_and_resolves_at_alertmanager(
    demo: Demo, people: Receiver, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(re.sub(r"for: \w+", "for: 0s", RULES.read_text()))  # the story is over before a minute is
    alertmanager = AlertmanagerProcess(tmp_path / "alertmanager", people.url)
    configuration = CONFIGURATION.format(rules=rules, alertmanager=alertmanager.port, worker=demo.port)
    prometheus = PrometheusProcess(tmp_path / "prometheus", configuration)
    await asyncio.to_thread(alertmanager.start)
    await asyncio.to_thread(prometheus.start)
    try:
        async with asyncio.timeout(90):
            await notifications(people, "UnderhostFindings", 1)
            demo.press_enter()
            told = await notifications(people, "UnderhostFindings", 2)
        assert [(status, alert["labels"]["finding"]) for status, alert in told] == [
            ("firing", "physical"),
            ("resolved", "physical"),
        ]
        groups = prometheus.get("/api/v1/rules")["data"]["groups"]
        assert {rule["name"]: rule["health"] for group in groups for rule in group["rules"]} == dict.fromkeys(
            (rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]), "ok"
        )
        (target,) = prometheus.get("/api/v1/targets")["data"]["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
        metrics = await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{demo.port}/metrics")
        promtool = ["promtool", "check", "metrics"]
        checked = await asyncio.to_thread(subprocess.run, promtool, input=metrics.read(), capture_output=True)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b""), (
            "names and help as Prometheus asks"
        )
        ready = prometheus.get("/api/v1/query?query=underhost_site_ready")["data"]["result"]
        assert [(one["metric"]["site"], one["value"][1]) for one in ready] == [("demo", "1")]
    finally:
        prometheus.stop()
        alertmanager.stop()


async def notifications(people: Receiver, name: str, count: int) -> list[tuple[str, Any]]:
    """(status, alert) of the first notifications of an alert."""
    wanted = 1
    while True:
        told = [(body["status"], alert) for body in await people.requested(wanted) for alert in body["alerts"]]
        found = [(status, alert) for status, alert in told if alert["labels"]["alertname"] == name]
        if len(found) >= count:
            return found[:count]
        wanted = len(people.requests) + 1
