"""The real parts as fixtures: processes on free loopback ports, ended by pid."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.processes.brokers import Brokers
from support.processes.kafka import KafkaProcess
from support.processes.kube import Kube, start_kube
from support.processes.parts import built_parts
from support.processes.vcsim import Vcsim, start_vcsim


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


@pytest.fixture
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """The `kafka` section of a configuration: the embedded default, or, where the test asks for `kafka`, a broker."""
    if getattr(request, "param", "embedded") == "embedded":
        return {"embedded": str(tmp_path / "underhost.db")}
    return {"bootstrapServers": request.getfixturevalue("broker").address}


@pytest.fixture(scope="module")
def lasting_broker(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    """A Kafka broker of the module's own."""
    process = KafkaProcess(tmp_path_factory.mktemp("kafka"), parts)
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="module")
def lasting_brokers(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Three Kafka brokers of the module's own that make one cluster."""
    brokers = Brokers(tmp_path_factory.mktemp("brokers"), parts)
    try:
        brokers.start()
        yield brokers
    finally:
        brokers.kill()


@pytest.fixture
def brokers(lasting_brokers: Brokers) -> Brokers:
    """The same three, all of them there at the beginning of the test; it may freeze and kill them."""
    lasting_brokers.resume()
    return lasting_brokers


@pytest.fixture(scope="module")
def kube(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """An API server of the module's own."""
    with start_kube(tmp_path_factory.mktemp("kube") / "state", parts) as kube:
        yield kube


@pytest.fixture(scope="module")
def vcsim(parts: Path) -> Iterator[Vcsim]:
    """A vCenter of the module's own, with two hosts and two VMs."""
    vcsim = start_vcsim(parts, 2, 2)
    yield vcsim
    vcsim.stop()
