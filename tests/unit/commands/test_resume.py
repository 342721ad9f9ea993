"""`underhost resume` beside a running worker on the embedded log, and where none runs."""

import asyncio
from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.commands.handlers import resume
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.topics import ACTIONS, OUTCOMES
from underhost.streams.embedded import inbox

LOST = "vms: 39 of 40 are missing"


async def run(*arguments: object) -> Result:
    """The command in a thread of its own, as another process sees the log; an error of ours stays an exception."""
    return await asyncio.to_thread(CliRunner().invoke, build(), [str(argument) for argument in arguments])


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    cluster.pod("web-0", app="web")
    return cluster


async def test_a_stopped_site_goes_on_once_a_person_says_so(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.shrunk["vsphere"].append(LOST + "\x1b[8m")
    async with running(settings_in(tmp_path), cluster) as worker:
        await cluster.listed["vsphere"].wait()
        result = await run("resume", "default", "--embedded", tmp_path / "log.db")
        assert (result.exit_code, result.output) == (0, f"Site default goes on. Accepted:\n  {LOST}?[8m\n")
        await worker.until(lambda: cluster.bound == [("web-0", "n1")] and len(cluster.labelled) == 1)
        again = await run("resume", "default", "--embedded", tmp_path / "log.db")
        assert (again.exit_code, again.output) == (0, "Site default was not stopped.\n")
    ordered = [(key, value["kind"], value["target"]) for key, value in worker.records(ACTIONS)]
    assert ordered.count(("default/site//default", "resume", "site/default")) == 2
    answers = [(value["result"], value["reason"]) for _, value in worker.records(OUTCOMES) if value["kind"] == "resume"]
    assert answers == [("applied", LOST + "\x1b[8m"), ("noop", "it was not stopped")]


async def test_another_sites_word_is_not_ours_and_nobody_hears_it_later(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "ANSWER_WITHIN", 1.5)
    cluster.shrunk["vsphere"].append(LOST)
    log = tmp_path / "log.db"
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: bool(worker.published))
        result = await run("resume", "elsewhere", "--embedded", log)
        assert isinstance(result.exception, Unreachable)
        assert str(result.exception) == "no worker of site elsewhere answered within 2 s: it has to be running"
    assert cluster.shrunk["vsphere"] == [LOST]
    result = await run("resume", "default", "--embedded", log)
    assert isinstance(result.exception, Unreachable)
    assert inbox.collect(log) == []  # the word is taken back: who starts the worker later may see something else
    assert (cluster.bound, cluster.labelled) == ([], [])


async def test_a_name_that_no_site_can_have_is_bad_usage() -> None:
    result = await run("resume", "Prod/A")
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == "'Prod/A' is no name of a site"


async def test_without_a_log_there_is_nobody_to_tell(tmp_path: Path) -> None:
    result = await run("resume", "default", "--embedded", tmp_path / "missing.db")
    assert isinstance(result.exception, Unreachable)
    assert "no such file" in str(result.exception)
