"""`underhost demo` on a real Kafka broker, and the operators' commands beside it."""

import json
import subprocess

import pytest
from support.processes.kafka import KafkaProcess
from support.processes.underhost import UNDERHOST

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def broker(lasting_broker: KafkaProcess) -> str:
    """Its address."""
    return lasting_broker.address


def run(broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [UNDERHOST, *arguments, "--bootstrap-servers", broker]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("attempt", ["on new topics", "on the topics of an earlier run"])
def test_the_story_is_told_on_kafka(broker: str, attempt: str) -> None:
    done = run(broker, "demo", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Learned where 7 nodes run, by their providerID:" in done.stdout
    assert "The finding is resolved: " in done.stdout.splitlines()[-3]


def test_the_operators_commands_read_what_the_demo_left(broker: str) -> None:
    assert run(broker, "demo", "--once").returncode == 0
    violations = run(broker, "violations", "-o", "json")
    assert (violations.returncode, json.loads(violations.stdout)["violations"]) == (0, [])
    described = json.loads(run(broker, "topics", "violations", "-o", "json").stdout)
    assert (described["partitions"], described["config"]["cleanup.policy"]) == (8, "compact")
    assert described["records"] >= 3  # opened, resolved, its tombstone
    assert run(broker, "dead-letters").stdout == "No dead letters.\n"
