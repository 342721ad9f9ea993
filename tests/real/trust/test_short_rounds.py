"""A short round of each regime that needs real parts: what half an hour of it tries, `make test` tries once."""

import asyncio
from pathlib import Path

import pytest
from trust.jepsen import brokers, kills, networks
from trust.jepsen.rounds import Rounds
from trust.soak.regime import soaked
from trust.tenant.regime import VICTIM, attacked
from trust.tenant.verdict import faults

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
EVENTS = 400


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(kills.ROUNDS, id="a worker is killed"),
        pytest.param(brokers.SHORT, id="one of three brokers is frozen"),
        pytest.param(networks.ROUNDS, id="the owner loses Kafka and lives on"),
    ],
)
def test_nothing_is_lost_and_no_former_owner_writes_when(rounds: Rounds, parts: Path, tmp_path: Path) -> None:
    assert rounds.play(tmp_path / "round", parts, 1, EVENTS) == []


def test_a_tenant_harms_nobody_and_is_named(parts: Path, tmp_path: Path) -> None:
    seen = asyncio.run(attacked(tmp_path, parts, 12.0, waiting=60))
    assert faults(seen, VICTIM, soon=float("inf")) == []


def test_a_soak_changes_pods_and_looks_at_what_the_worker_holds(parts: Path, tmp_path: Path) -> None:
    samples, changes = asyncio.run(soaked(tmp_path, parts, 12.0))
    assert changes > 12
    assert samples
    for sample in samples:
        assert {"memory", "descriptors", "tasks", "rows of pods"} <= sample.keys()
        assert all(value > 0 for gauge, value in sample.items() if not gauge.startswith("rows"))
