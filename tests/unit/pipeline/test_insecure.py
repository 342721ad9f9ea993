"""A connection that others may read or answer is said as loudly as can be, and used all the same."""

import json
import logging
from pathlib import Path

import aiohttp
import pytest
from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in

from underhost.agents.pipeline.connections import connect
from underhost.streams.settings.model import Settings, WebSettings

WHY = "the certificate of https://10.0.0.1:6443 is not checked (insecure-skip-tls-verify)"


async def test_it_is_in_the_log_at_readyz_and_in_a_metric(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    made = cluster.connections()
    made.insecure["kubernetes"] = WHY
    addresses: list[str] = []
    with caplog.at_level(logging.ERROR):
        settings = settings_in(tmp_path).model_copy(update={"web": WebSettings(listen="127.0.0.1:0")})
        async with running(settings, made, on_listening=addresses.append) as worker:
            await worker.until(lambda: len(cluster.labelled) == 1)
            async with aiohttp.ClientSession() as client:
                async with client.get(f"{addresses[0]}readyz") as answer:
                    code, said = answer.status, json.loads(await answer.text())
                async with client.get(f"{addresses[0]}metrics") as answer:
                    metrics = await answer.text()
    assert f"kubernetes: INSECURE: {WHY}" in caplog.messages
    assert (code, said["reasons"]["insecure kubernetes"]) == (200, WHY)
    assert 'underhost_insecure_connection{to="kubernetes"} 1.0' in metrics


async def test_a_vcenter_whose_certificate_is_not_checked_is_said_so() -> None:
    given = {"kubernetes": {"simulated": "kubevirt"}, "vsphere": {"url": "https://vc/sdk", "insecure": True}}
    made = await connect(Settings.model_validate(given), {"evaluator"})
    await made.close()
    assert made.insecure == {"vsphere": "the certificate of https://vc/sdk is not checked (vsphere.insecure)"}
