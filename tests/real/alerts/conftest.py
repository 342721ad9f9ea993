"""What the tests of alerts need: Prometheus' own programs, and whoever is notified in the end."""

import os
from collections.abc import AsyncIterator

import pytest
from support.fakes.receiver import Receiver
from support.processes.alerting import missing


@pytest.fixture(autouse=True)
def programs() -> None:
    """Skipped without the programs; with CI=true they are required."""
    if (why := missing()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)


@pytest.fixture
async def people() -> AsyncIterator[Receiver]:
    """Whoever Alertmanager notifies."""
    async with Receiver() as receiver:
        yield receiver
