"""The kill -9 story of the embedded log, over a real Kafka broker."""

from pathlib import Path

import pytest
from support.processes.kafka import KafkaProcess
from support.workers import killed as killed_worker
from support.workers.kill_story import EVERYTHING, finished, journal, killed, ordered

from underhost.schemas.topics import ACTIONS, PLACEMENTS

pytestmark = pytest.mark.real


async def test_a_killed_worker_ends_in_the_same_state_without_repeating_a_command(
    broker: KafkaProcess, tmp_path: Path
) -> None:
    for stall in ("after:1", "before:4", "after:3"):
        killed(tmp_path, stall, broker.address)
    finished(tmp_path, broker.address)
    assert journal(tmp_path) == EVERYTHING
    nodes = {f"default/node//n{number}": 1 for number in range(killed_worker.NODES)}
    pods = {f"default/pod/shop/db-{number}": 1 for number in range(killed_worker.NODES)}
    assert await ordered(tmp_path, ACTIONS, broker.address) == nodes
    assert await ordered(tmp_path, PLACEMENTS, broker.address) == pods
