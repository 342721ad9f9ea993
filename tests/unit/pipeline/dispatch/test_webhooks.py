"""Webhooks of a whole worker: what they were not told before a restart they are told after it."""

from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster
from support.fakes.receiver import Receiver
from support.workers.pipeline import running, settings_in

from underhost.agents.alerts import delivery
from underhost.schemas.topics import VIOLATIONS
from underhost.streams.settings.alerting import AlertingSettings, WebhookSettings


async def test_a_pager_is_closed_though_the_worker_was_restarted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE", 0.05)
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    for name in ("db-0", "db-1"):
        cluster.pod(name, "n1", app="db")
    async with Receiver() as receiver:
        alerting = AlertingSettings(webhooks=[WebhookSettings(url=receiver.url)])
        settings = settings_in(tmp_path).model_copy(update={"alerting": alerting})
        async with running(settings, cluster) as worker:
            [opened] = await receiver.requested(1)
            await receiver.close()
            cluster.delete_pod("db-1")
            await worker.until(lambda: ("default/db-h1", "resolved") in worker.states(VIOLATIONS, "state"))
        await receiver.open()
        before = len(receiver.requests)
        async with running(settings, cluster):
            told = (await receiver.requested(before + 1))[before:]
    assert [(each["subject"], each["data"]["state"]) for each in (opened, *told)] == [
        ("db-h1", "opened"),
        ("db-h1", "resolved"),
    ]
