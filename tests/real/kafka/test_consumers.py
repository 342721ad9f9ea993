"""The consumers that docs show: other programs read the topics with nothing of ours."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from support.processes.kafka import KafkaProcess
from support.published import SHARED

from underhost.schemas.keys import finding_key
from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import VIOLATIONS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.kafka import KafkaSettings

pytestmark = pytest.mark.real

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
OPENED = msgspec.structs.replace(SHARED, site="prod-a")


@pytest.fixture(scope="module")
def broker(lasting_broker: KafkaProcess) -> str:
    """The address of a broker whose violations topic holds one finding that opened and resolved."""
    asyncio.run(publish_findings(lasting_broker.address))
    return lasting_broker.address


async def publish_findings(address: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=address)
    await ensure_topics(kafka)
    resolved = msgspec.structs.replace(OPENED, state="resolved")
    key = finding_key("prod-a", "9f2c")
    async with KafkaPublisher(kafka, 8) as publisher:
        for number, value in enumerate((msgspec.json.encode(OPENED), msgspec.json.encode(resolved), None)):
            await publisher.publish(Outgoing(VIOLATIONS, key, value, f"9f2c/{number}"))


async def test_the_example_in_python_prints_each_change_of_a_finding(broker: str) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-u", str(EXAMPLES / "consume.py"), broker, stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    async with asyncio.timeout(60):
        lines = [(await program.stdout.readline()).decode() for _ in range(2)]
    program.terminate()
    await program.wait()
    assert lines == [
        "opened physical shop/db-0 db-0 and db-1 share esx-3.\n",
        "resolved physical shop/db-0 db-0 and db-1 share esx-3.\n",
    ]


def test_the_example_in_python_is_twenty_lines() -> None:
    assert sum(1 for line in (EXAMPLES / "consume.py").read_text().splitlines() if line.strip()) <= 20


async def test_the_example_with_kcat_prints_key_and_headers_and_record(broker: str) -> None:
    if shutil.which("kcat") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs kcat")
        pytest.skip("needs kcat")
    program = await asyncio.create_subprocess_exec(
        str(EXAMPLES / "consume.sh"), broker, stdout=asyncio.subprocess.PIPE, env={**os.environ, "ONCE": "-e"}
    )
    async with asyncio.timeout(60):
        printed, _ = await program.communicate()
    heads, bodies = printed.decode().splitlines()[::2], printed.decode().splitlines()[1::2]
    assert [head.partition(" ")[0] for head in heads] == ["key=prod-a/9f2c"] * 3
    assert all("ce_type=underhost.violations.v1" in head for head in heads)
    assert [msgspec.json.decode(body, type=FindingEvent).state for body in bodies if body] == ["opened", "resolved"]
