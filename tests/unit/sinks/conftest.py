"""What every sink of Kubernetes is tested with: a server in memory, and the real writer over its socket."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.fakes.kube import FakeKube

from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.streams.kubernetes.client import connect


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    """The server, with nothing in it."""
    async with FakeKube().serving() as server:
        yield server


@pytest.fixture
async def writer(kube: FakeKube, tmp_path: Path) -> AsyncIterator[KubernetesApiWriter]:
    """A writer to that server."""
    async with await connect(kube.settings(tmp_path)) as client:
        yield KubernetesApiWriter(client)
