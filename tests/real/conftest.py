"""Fixtures of the real parts: one of each for the whole run, on free loopback ports, ended by pid."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.kafka import KafkaProcess
from support.processes.parts import built_parts


@pytest.fixture(scope="session")
def parts() -> Path:
    """The folder of the built real parts; without them the test is skipped, with CI=true it fails."""
    folder, why = built_parts()
    if folder is None:
        message = f"needs the real parts: {why}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture
def broker(parts: Path, tmp_path: Path) -> Iterator[KafkaProcess]:
    """A Kafka broker of the test's own."""
    process = KafkaProcess(tmp_path / "kafka", parts)
    process.start()
    yield process
    process.kill()
