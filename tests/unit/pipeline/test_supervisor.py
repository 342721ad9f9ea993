"""The watchers of a site: started and ended with its partition, their first failure said, later ones repaired."""

import asyncio
from collections.abc import Sequence

import pytest

from underhost.agents.pipeline import supervisor as supervise
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.sites import Sites
from underhost.schemas.errors import Refused, Unreachable
from underhost.schemas.keys import listed_key
from underhost.schemas.topics import NODES
from underhost.streams.ports import Outgoing, Publisher, Source, TopicReader


class NoReader:
    """A reader that nobody asks."""

    async def state(self, topic: object, site: str) -> dict[str, bytes]:
        """See `ports.TopicReader`."""
        return {}


class NullPublisher:
    """Acknowledges everything."""

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""


class ScriptedSource(Source):
    """Lists if it may, then fails as it is told, or waits until it is cancelled."""

    name = "kubernetes"
    shrunk: list[str] = []  # noqa: RUF012

    def __init__(self, script: "Script", publisher: Publisher) -> None:
        script.count += 1
        self.epoch = script.count
        self._script, self._publisher = script, publisher

    async def run(self) -> None:
        """See `ports.Source`."""
        lists, error = self._script.acts.pop(0) if self._script.acts else (True, None)
        if lists:
            await self._publisher.publish(Outgoing(NODES, listed_key("prod", "kubernetes"), b"{}", "1"))
        if error is not None:
            raise error
        self._script.up.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._script.ended += 1


class Script:
    """What each start of the source does: (whether it lists, what it then raises)."""

    def __init__(self, *acts: tuple[bool, Exception | None], names: Sequence[str] = ("kubernetes",)) -> None:
        self.acts = list(acts)
        self.count = self.ended = 0
        self.up = asyncio.Event()
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self.sites = Sites((NODES,), (), partition_of=lambda site: 0, sources=lambda state: frozenset({"kubernetes"}))
        self.sites.resume({0}, {}, {})
        self.watchers = Watchers(
            "prod",
            self._make,
            lambda name: NullPublisher(),
            _reader(),
            self.sites,
            failed=self.failed.set_result,
            metrics=Metrics(),
            names=names,
        )

    def _make(self, site: str, publisher: Publisher, reader: TopicReader) -> Sequence[Source]:
        return [ScriptedSource(self, publisher)]


def _reader() -> TopicReader:
    class Reader(NoReader):
        def follow(self, topics: object, *, from_beginning: bool = False) -> "object":
            raise NotImplementedError

        def history(self, topics: object) -> "object":
            raise NotImplementedError

        async def close(self) -> None:
            """Nothing to close."""

    return Reader()  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "FIRST_PAUSE", 0.0)


@pytest.mark.parametrize(
    "error", [Unreachable("no answer"), Refused("wrong password"), ZeroDivisionError("a bug")], ids=repr
)
async def test_what_a_source_fails_of_before_its_first_list_ends_the_worker(error: Exception) -> None:
    script = Script((False, error))
    script.watchers.start()
    assert await script.failed is error
    assert script.count == 1


async def test_after_its_first_list_a_source_is_started_again() -> None:
    script = Script((True, Unreachable("gone")), (False, Refused("still no")), (True, None))
    script.watchers.start()
    await script.up.wait()
    assert script.count == 3
    assert not script.failed.done()
    assert script.watchers.unlisted() == {}
    await script.watchers.stop()


async def test_a_bug_of_a_source_ends_the_worker_even_later() -> None:
    error = ZeroDivisionError("a bug")
    script = Script((True, error))
    script.watchers.start()
    assert await script.failed is error


async def test_only_the_markers_of_the_present_run_count() -> None:
    script = Script()
    assert script.sites.unready("prod") == "nothing has been listed"
    script.watchers.start()
    await script.up.wait()
    assert script.sites._epochs == {("prod", "kubernetes"): 1}
    await script.watchers.stop()
    assert script.sites._epochs == {}
    script.watchers.start()
    assert script.sites._epochs == {("prod", "kubernetes"): 2}
    await script.watchers.stop()


async def test_a_stopped_source_has_ended_when_stop_returns() -> None:
    script = Script()
    script.watchers.start()
    await script.up.wait()
    await script.watchers.stop()
    assert script.ended == 1
    assert script.watchers.sources == []
    assert not script.failed.done()


async def test_what_has_not_listed_yet_is_named_with_its_reason() -> None:
    script = Script()
    script.watchers.start()
    assert script.watchers.unlisted() == {"kubernetes": "has not listed yet"}
    script.watchers.sources[0].shrunk = ["pods: 3 of 40 are left"]  # type: ignore[attr-defined]
    assert script.watchers.unlisted() == {"kubernetes": "pods: 3 of 40 are left"}
    await script.watchers.stop()


async def test_once_every_source_has_listed_it_stays_known() -> None:
    script = Script()
    assert not script.watchers.has_listed("kubernetes")
    script.watchers.start()
    await script.up.wait()
    assert script.watchers.has_listed("kubernetes")
    await script.watchers.stop()
    assert script.watchers.has_listed("kubernetes")


async def test_a_source_that_has_not_begun_has_not_listed_though_others_have() -> None:
    script = Script(names=("kubernetes", "vsphere"))
    script.watchers.start(["kubernetes"])
    await script.up.wait()
    assert not script.watchers.has_listed("vsphere")
    script.watchers.start(["vsphere"])
    assert script.watchers.has_listed("vsphere"), "there is no such source in this site"
    await script.watchers.stop()
