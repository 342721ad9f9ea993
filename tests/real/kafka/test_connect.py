"""Kafka Connect's own standalone worker reads every topic, with the properties that docs show."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.processes.kafka import HEAP, KafkaProcess
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import eventually

from underhost.schemas.topics import DEAD_LETTERS, TOPICS
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.kafka import KafkaSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "connect"
RECIPE = Path(__file__).parents[1] / "parts" / "connect" / "pom.xml"
CONNECTORS = ("topics", "dead-letters")


@pytest.fixture
def jars(parts: Path) -> Path:
    """Connect's jars, a part that is added to the others; without them the test is skipped, with CI=true it fails."""
    folder = parts / f"connect-{hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        message = "needs Kafka Connect, which is not built: make parts"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


@contextmanager
def connect(folder: Path, jars: Path, broker: str) -> Iterator[str]:
    """A standalone worker with the examples' connectors; the address of its API. Its files are in the folder."""
    [port] = free_ports(1)
    given = {"127.0.0.1:19092": broker}
    for file in EXAMPLES.glob("*.properties"):
        text = file.read_text()
        for before, after in given.items():
            text = text.replace(before, after)
        (folder / file.name).write_text(text)
    with (folder / "worker.properties").open("a") as worker:
        worker.write(f"listeners=http://127.0.0.1:{port}\n")
    names = ["worker.properties", *(f"{name}.properties" for name in CONNECTORS)]
    command = ["java", *HEAP, "-cp", f"{jars}/*", "org.apache.kafka.connect.cli.ConnectStandalone", *names]
    with (folder / "connect.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def states(address: str, connector: str) -> set[str]:
    """Of a connector and its tasks; nothing while the worker does not answer."""
    try:
        with urllib.request.urlopen(f"{address}/connectors/underhost-{connector}/status", timeout=10) as answer:
            status: Any = json.load(answer)
    except OSError:
        return set()
    return {status["connector"]["state"], *(task["state"] for task in status["tasks"])}


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def send_dead_letter(broker: str) -> None:
    async with KafkaPublisher(KafkaSettings(bootstrap_servers=broker), 8) as publisher:
        await publisher.publish(Outgoing(DEAD_LETTERS, "demo/pod/default/rubbish", b"\xff{not json", ""))


def test_connect_reads_every_record_and_tombstone_of_the_demo(broker: KafkaProcess, jars: Path, tmp_path: Path) -> None:
    told = subprocess.run([UNDERHOST, "demo", "--once", "--bootstrap-servers", broker.address], capture_output=True)
    assert told.returncode == 0, told.stderr
    asyncio.run(send_dead_letter(broker.address))
    listener = Listener({"bootstrapServers": broker.address})
    values = [value for topic in TOPICS if topic is not DEAD_LETTERS for _, value, _ in listener.raw(topic.name)]
    tombstones = values.count(None)
    assert tombstones > 0
    with connect(tmp_path, jars, broker.address) as address:
        read = tmp_path / "underhost-topics.txt"
        eventually("every record is read", lambda: len(lines(read)) >= len(values), within=240)
        letters = tmp_path / "underhost-dead-letters.txt"
        eventually("the dead letter is read", lambda: len(lines(letters)) == 1)
        assert [states(address, connector) for connector in CONNECTORS] == [{"RUNNING"}] * 2
    found = lines(read)
    assert (len(found), found.count("null")) == (len(values), tombstones)
    assert sum("state=resolved" in line and "severity=physical" in line for line in found) == 1
    assert any("joinedBy=providerID" in line for line in found)
