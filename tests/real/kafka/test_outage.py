"""A real Kafka broker that goes away under a running worker: nothing is lost, and a signal still ends it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from mode.threads import WorkerThread
from support.fakes.leases import FakeLeases
from support.fakes.pipeline import FakeCluster
from support.processes.kafka import KafkaProcess
from support.workers.fleet import SITES, Fleet, Worker, topics_of_the_fleet, until
from support.workers.pipeline import running

from underhost.agents.pipeline.leases.roles import LeaseOrigin
from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import OUTCOMES, VIOLATIONS
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.labels import CAPV_HOST_KEY
from underhost.streams.settings.model import LeaseSettings, Settings
from underhost.streams.settings.sinks import SinkSettings

pytestmark = pytest.mark.real

CONFIG = """
site: sim
kafka: {{bootstrapServers: "{address}", partitions: 4}}
kubernetes: {{simulated: kubevirt}}
vsphere: {{simulated: kubevirt}}
web: {{listen: "127.0.0.1:0"}}
"""


async def test_who_has_lost_kafka_lets_another_worker_act_at_once(broker: KafkaProcess, tmp_path: Path) -> None:
    """The other one has topics of its own, so that only the lease can tell it."""
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=4, session_timeout=6),
        vsphere=VSphereSettings(simulated="of the test"),
        sinks=SinkSettings(labels=True),
        lease=LeaseSettings(seconds=3600),  # nobody waits for its end
    )
    embedded = settings.model_copy(update={"kafka": KafkaSettings(embedded=tmp_path / "log.db", partitions=4)})
    cluster, leases = FakeCluster(), FakeLeases()
    cluster.node("n1", "h1")
    connections = cluster.connections()
    async with running(settings, replace(connections, leases=LeaseOrigin(leases, "on kafka"))) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 1)
        broker.pause()
        # It knows by its own clock that its group has gone on without it.
        await until(lambda: {lease.holder for lease in leases.held.values()} == {""})
        async with running(embedded, replace(connections, leases=LeaseOrigin(leases, "embedded"))) as other:
            cluster.move("n1", "h2")
            await other.until(lambda: len(other.records(OUTCOMES)) == 1)
            broker.resume()
            assert {lease.holder for lease in leases.held.values()} == {"embedded"}
    assert [labels for _, labels in cluster.labelled] == [{CAPV_HOST_KEY: "h1"}, {CAPV_HOST_KEY: "h2"}]


async def test_what_happens_while_the_broker_is_gone_is_found_when_it_is_back(broker: KafkaProcess) -> None:
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=broker.address, partitions=4, session_timeout=6),
        vsphere=VSphereSettings(simulated="of the test"),
        sinks=SinkSettings(labels=True, bindings=True),
    )
    cluster = FakeCluster()
    for number in (1, 2):
        cluster.node(f"n{number}", f"h{number}")
        cluster.pod(f"db-{number}", app="db")
    async with running(settings, cluster) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 4)
        broker.kill()
        cluster.move("n2", "h1")
        await asyncio.to_thread(broker.start)
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        broker.kill()
        cluster.move("n2", "h2")
        broker.start()  # in the worker's own thread: it stands still meanwhile
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 3)
    assert worker.states(VIOLATIONS, "state") == [
        ("default/db-h1", "opened"),
        ("default/db-h1", "resolved"),
        ("default/db-h1", None),
    ]
    assert sorted(cluster.bound) == [("db-1", "n1"), ("db-2", "n2")]


async def test_a_worker_out_of_its_group_says_so_and_leaves_nothing_of_its_pipeline(
    broker: KafkaProcess,
) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker.address, partitions=8, session_timeout=2)
    settings = Settings(kafka=kafka)
    await topics_of_the_fleet(settings)
    async with KafkaPublisher(kafka, kafka.partitions) as publisher:
        await Fleet(publisher).publish()
    worker = Worker(settings)
    try:
        await until(lambda: worker.held == set(SITES))
        broker.kill()
        await until(
            lambda: worker.pipeline.readiness.unready().get("worker", "").startswith("its consumer group has not answ")
        )
        with pytest.raises(Unreachable, match="this worker is out of its group: its consumer group has not answered"):
            await asyncio.wait_for(worker.running, 60)
    finally:
        await worker.stop()
    # A thread that lived on would be a member of the group again as soon as there is a broker, beside the new one.
    assert [thread for thread in threading.enumerate() if isinstance(thread, WorkerThread)] == []


def test_a_worker_whose_broker_is_gone_still_ends_at_a_signal(broker: KafkaProcess, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(address=broker.address))
    code = "from underhost.agents.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "--config", str(config)]
    environment = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        assert any('"ready"' in line for line in worker.stderr)
        broker.kill()
        told = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        _, errors = worker.communicate(timeout=30)
        # Not a matter of speed: the contract's bound, which a supervisor that would kill the process relies on.
        assert (worker.returncode, time.monotonic() - told < 10) == (0, True)
    # Off a terminal every line is an event, whatever a library's thread ends with.
    assert [line for line in errors.splitlines() if not line.startswith("{")] == []
    assert "site sim: ended" in [json.loads(line)["event"] for line in errors.splitlines()]
