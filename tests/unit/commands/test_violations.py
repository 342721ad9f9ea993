"""What `violations` says of what it does not know: what a worker has left out, and sites that are not there."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from support.workers.embedded import a_publisher
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.keys import finding_key, object_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import NODES, VIOLATIONS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.settings.kafka import KafkaSettings

LEFT_OUT = [{"what": "PhysicalHost", "why": "no inventory"}, {"what": "1 pod", "why": "pending"}]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(build(), [str(argument) for argument in arguments])


@pytest.fixture
async def worker() -> AsyncIterator[str]:
    """A worker without an inventory: nothing is open, and it has not judged everything."""

    async def open_now(request: web.Request) -> web.Response:
        return web.json_response({"site": "prod", "version": "1", "findings": [], "notJudged": LEFT_OUT})

    application = web.Application()
    application.add_routes([web.get("/api/v1/findings", open_now)])
    runner = web.AppRunner(application)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_worker_says_what_it_has_not_judged(worker: str) -> None:
    result = await asyncio.to_thread(run, "violations", "--server", worker)
    assert (result.exit_code, result.stdout) == (
        0, "No open findings.\nNot judged: PhysicalHost (no inventory), 1 pod (pending)\n",
    )  # fmt: skip


async def test_programs_are_told_what_a_worker_has_not_judged(worker: str) -> None:
    result = await asyncio.to_thread(run, "violations", "--server", worker, "-o", "json")
    assert json.loads(result.stdout) == {
        "apiVersion": "underhost/v1", "kind": "Violations", "notJudged": LEFT_OUT, "violations": [],
    }  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A site `default` with one open finding, and a site `calm` that has listed a node and has none."""
    return a_log(tmp_path, "aa")


def a_log(folder: Path, id: str) -> Path:
    """The same, with this id of the finding."""
    path = folder / "topics.db"
    event = FindingEvent(
        id=id, state="opened", site="default", severity="physical", rule="PhysicalHost", reason="one host",
        message="they share esx-1", first_seen="2026-01-01T00:00:00Z", updated_at="2026-01-01T00:00:01Z",
        snapshot={}, pod="shop/db-0", node="n1", peers=[],
    )  # fmt: skip
    key, node = finding_key("default", id), object_key("calm", "node", "n1")

    async def fill() -> None:
        await ensure_topics(KafkaSettings(embedded=path, partitions=4))
        async with a_publisher(path) as publisher:
            await publisher.publish(Outgoing(VIOLATIONS, key, encode(event), key), Outgoing(NODES, node, b"{}", node))

    asyncio.run(fill())
    return path


def test_an_id_from_a_topic_cannot_harm_a_terminal(tmp_path: Path) -> None:
    result = run("violations", "--embedded", a_log(tmp_path, "a\x1b[2Ja"), "-o", "name")
    assert result.stdout == "default/a?[2Ja\n"


def test_the_topics_say_how_new_they_are_and_who_knows_what_was_not_judged(log: Path) -> None:
    said = run("violations", "--embedded", log).stdout.splitlines()[-1]
    assert said.startswith("As the topics have it, whose newest finding is of 20")
    assert said.endswith("Z; what is not judged a worker says (--server URL)")


def test_programs_get_no_word_from_the_topics_about_what_was_not_judged(log: Path) -> None:
    result = run("violations", "--embedded", log, "-o", "json")
    assert (sorted(json.loads(result.stdout)), result.stderr) == (["apiVersion", "kind", "violations"], "")


def test_topics_without_any_finding_say_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    asyncio.run(ensure_topics(KafkaSettings(embedded=path, partitions=4)))
    result = run("violations", "--embedded", path)
    assert result.stdout.splitlines() == [
        "No open findings.",
        "As the topics have it, which hold none yet; what is not judged a worker says (--server URL)",
    ]


def test_a_site_that_the_topics_hold_nothing_of_is_a_fault(log: Path) -> None:
    error = run("violations", "--embedded", log, "--site", "defualt").exception
    assert isinstance(error, InputError)
    assert str(error) == "site defualt: the topics hold nothing of it; they have calm, default (--site)"


def test_a_site_that_has_listed_and_has_nothing_open_is_no_fault(log: Path) -> None:
    result = run("violations", "--embedded", log, "--site", "calm")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "No open findings.")


def test_without_a_log_it_says_what_else_can_be_named(tmp_path: Path) -> None:
    error = run("violations", "--embedded", tmp_path / "none.db").exception
    assert isinstance(error, Unreachable)
    assert str(error) == (
        f"{tmp_path}/none.db: no such file; `underhost run` makes it: name the log with --embedded or --config; "
        "a worker is asked with --server URL"
    )
