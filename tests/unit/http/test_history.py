"""The page's past: what may be asked, and what is kept of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.build import a_node, a_pod, a_site
from support.published import a_finding
from support.sites.remembered import RememberedTopics, hours_ago
from support.workers.embedded import a_publisher

from underhost.agents.http import history as history_module
from underhost.agents.http.guard import RequestRefused, guard
from underhost.agents.http.history import PastSites, _marks
from underhost.agents.site.snapshot import Options
from underhost.agents.snapshots.history import SiteHistory
from underhost.schemas.errors import InputError
from underhost.schemas.keys import listed_key, object_key
from underhost.schemas.kubernetes import Metadata, Pod, PodSpec, encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES_TOPICS, PODS, Topic
from underhost.streams.derived import rfc3339
from underhost.streams.ports import Outgoing, Publisher, Record
from underhost.streams.reader import EmbeddedReader

SITES = ("prod-a", "prod-b", "prod-c")


class Clock:
    """A clock that stands until a test moves it, in seconds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class CountedReader(EmbeddedReader):
    """Counts who reads at one time, and how often the topics were read, which `takes` so many seconds."""

    takes = 0.0

    def __init__(self, path: Path, clock: Clock) -> None:
        super().__init__(path)
        self._clock = clock
        self.reading = self.most = self.times = 0

    async def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncIterator[Record]:  # type: ignore[override]
        """See `TopicReader.history`."""
        self.reading += 1
        self.times += 1
        self.most = max(self.most, self.reading)
        try:
            async for record in super().history(topics, site):
                await asyncio.sleep(0)
                yield record
        finally:
            self.reading -= 1
            self._clock.now += self.takes


def known(site: str) -> str:
    """One of the sites. Raises RequestRefused."""
    if site not in SITES:
        raise RequestRefused(404, "no such site")
    return site


class Past:
    """The routes of the past over real topics of three sites."""

    def __init__(
        self,
        reader: CountedReader,
        clock: Clock,
        past: PastSites,
        publisher: Publisher,
        client: aiohttp.ClientSession,
        address: str,
    ) -> None:
        self.reader, self.clock, self.past, self._publisher = reader, clock, past, publisher
        self._client, self._address = client, address

    async def publish(self, name: str) -> None:
        """A pod of the first site."""
        pod = Pod(Metadata(name=name, namespace="shop", uid=name), PodSpec())
        await self._publisher.publish(Outgoing(PODS, object_key(SITES[0], "pod", name, "shop"), encode(pod), name))

    async def ask(self, path: str) -> tuple[int, str]:
        """The status of the answer, and why it is refused."""
        async with self._client.get(f"{self._address}/{path}") as answer:
            return answer.status, (await answer.json()).get("error", "")

    async def map(self, moment: str) -> dict[str, Any]:
        """The map of the first site at a moment."""
        async with self._client.get(f"{self._address}/api/v1/map", params={"at": moment}) as answer:
            found: dict[str, Any] = await answer.json()
            return found

    async def pods(self, moment: str) -> list[str]:
        """The names of its pods then."""
        return [row["name"] for row in (await self.map(moment))["pods"]]

    async def get(self, path: str) -> int:
        """The status of the answer."""
        async with self._client.get(f"{self._address}/{path}") as answer:
            await answer.read()
            return answer.status


@pytest.fixture
async def past(tmp_path: Path) -> AsyncIterator[Past]:
    async with a_publisher(tmp_path / "log.db") as publisher:
        marker = encode(Listed(1, 0))
        markers = [
            Outgoing(topic, listed_key(site, "kubernetes"), marker, "") for site in SITES for topic in KUBERNETES_TOPICS
        ]
        await publisher.publish(*markers)
        clock = Clock()
        reader = CountedReader(tmp_path / "log.db", clock)
        sites = PastSites(SITES[0], Options(), reader, known, clock=clock)
        app = web.Application(middlewares=[guard()])
        app.add_routes(
            [*sites.routes(), web.get("/api/v1/map", sites.map), web.get("/api/v1/findings", sites.findings)]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession() as client:
            yield Past(reader, clock, sites, publisher, client, f"http://127.0.0.1:{runner.addresses[0][1]}")
        await runner.cleanup()


async def test_many_who_ask_at_once_read_the_topics_one_after_another(past: Past) -> None:
    asked = [past.get(f"api/v1/history?site={site}") for site in (*SITES, *SITES)]
    assert set(await asyncio.gather(*asked)) == {200}
    assert past.reader.most == 1


async def test_more_than_may_wait_are_told_to_come_again(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    held = asyncio.Event()
    real = past.past._reading

    async def slow(site: str, moment: int, rest: float) -> object:
        await held.wait()
        return await real(site, moment, rest)

    monkeypatch.setattr(past.past, "_reading", slow)
    asked = [asyncio.ensure_future(past.get("api/v1/history")) for _ in range(history_module.EACH + 3)]
    first = asyncio.as_completed(asked)
    assert [await next(first) for _ in range(3)] == [429] * 3
    held.set()
    assert sorted(await asyncio.gather(*asked)) == [200] * history_module.EACH + [429] * 3


async def test_only_the_sites_asked_for_last_are_kept(past: Past) -> None:
    for site in SITES:
        assert await past.get(f"api/v1/history?site={site}") == 200
    assert list(past.past._read) == list(SITES[-history_module.SITES :])


async def test_nothing_is_kept_of_a_site_that_is_not_there(past: Past) -> None:
    for path in ("history?site=no-1", "history?site=no-2", "map?at=1m&site=no-3"):
        assert await past.get(f"api/v1/{path}") == 404
    assert (past.reader.times, past.past._read, past.past._known) == (0, {}, {})


async def test_two_sites_are_kept_only_where_both_fit(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "BUDGET", 9 * 500)  # of one site there are nine markers of some 450 bytes
    for site in SITES[:2]:
        assert await past.get(f"api/v1/history?site={site}") == 200
    assert list(past.past._read) == [SITES[1]]


async def test_the_topics_are_not_read_for_a_client_that_has_left(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "has_left", lambda request: True)
    assert await past.get("api/v1/history") == 499
    assert past.reader.times == 0


@pytest.mark.parametrize(
    "at",
    [
        *("9" * digits + unit for digits in (9, 12, 25, 5000) for unit in "smhd"),
        "٣m",
        "-5m",
        "1e999",
        "NaN",
        "0001-01-01T00:00:00%2B23:59",
        "9999-12-31T23:59:59-23:59",
        "1969-12-31T23:59:59Z",
        "2026-11-21T03:00:00",
        "2026-11-21T03:00:00Z%00",
        "",
    ],
)
async def test_a_moment_that_is_none_is_refused(past: Past, at: str) -> None:
    assert await past.get(f"api/v1/map?at={at}") == 422


@pytest.mark.parametrize("path", ["map", "findings"])
async def test_a_moment_that_is_still_to_come_is_refused(past: Past, path: str) -> None:
    assert await past.ask(f"api/v1/{path}?at=2999-01-01T00:00:00Z") == (
        422,
        "at 2999-01-01T00:00:00Z: this is still to come",
    )


async def test_a_browser_whose_clock_is_a_little_ahead_is_told_of_now(past: Past) -> None:
    ahead = rfc3339(time.time() + 30)
    assert (await past.map(ahead))["version"] < ahead


async def test_what_the_topics_may_not_have_told_yet_is_worked_out_anew(past: Past) -> None:
    assert await past.get("api/v1/history") == 200
    await past.publish("db-0")
    moment = rfc3339(time.time() + 0.001)
    assert await past.pods(moment) == []  # of the topics as they were a moment ago
    past.clock.now += history_module.FRESH + 1
    assert await past.pods(moment) == ["shop/db-0"]


async def test_the_reach_of_the_past_is_read_again_after_a_while(past: Past) -> None:
    assert [await past.get("api/v1/history") for _ in range(2)] == [200, 200]
    assert past.reader.times == 1
    past.clock.now += history_module.FRESH + 1
    assert await past.get("api/v1/history") == 200
    assert past.reader.times == 2


async def test_topics_that_take_long_to_read_are_read_less_often(past: Past) -> None:
    past.reader.takes = 10.0
    assert await past.get("api/v1/history") == 200
    for seconds, times in ((150, 1), (60, 2)):
        past.clock.now += seconds
        assert await past.get("api/v1/history") == 200
        assert past.reader.times == times


async def test_documents_are_kept_up_to_their_bytes(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "KEPT_BYTES", 1)
    assert await past.get("api/v1/map?at=0s") == 200
    assert not past.past._known


async def test_topics_that_take_too_long_to_read_are_a_503(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "READING", 0.0)
    assert await past.get("api/v1/history") == 503


@pytest.mark.parametrize("path", ["history", "map?at=0s", "findings?at=0s"])
async def test_topics_that_cannot_be_read_are_a_503_that_says_why(
    past: Past, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def unreadable(*_: object, **__: object) -> SiteHistory:
        raise InputError("kafka.tls.ca_file /etc/kafka/ca.pem: no such file", "kafka.sasl.password_file: empty")

    monkeypatch.setattr(SiteHistory, "read", unreadable)
    assert await past.ask(f"api/v1/{path}") == (
        503,
        "kafka.tls.ca_file /etc/kafka/ca.pem: no such file; kafka.sasl.password_file: empty",
    )


async def test_what_was_read_is_forgotten_when_nobody_has_looked_for_a_while(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "IDLE", 0.0)
    assert await past.get("api/v1/history") == 200
    async with asyncio.timeout(30):
        while past.past._read:  # noqa: ASYNC110 - a timer of the event loop sends no signal
            await asyncio.sleep(0)


async def test_the_reach_of_the_past_names_when_findings_opened_and_ended() -> None:
    topics = RememberedTopics()
    topics.state(a_site(a_node("n1"), a_pod("db-0").on("n1"), on={"n1": "h1"}, site="prod"), hours_ago(5))
    for id_, state, hours in (("f1", "opened", 4), ("f1", "resolved", 3), ("f2", "opened", 2), ("f3", "updated", 1)):
        topics.finding(a_finding(id_, "shop/db-0", state=state), hours_ago(hours))
    marks, ended = _marks(await SiteHistory.read(topics, "prod"))  # type: ignore[arg-type]
    assert [(mark.finding, mark.state, mark.severity) for mark in marks] == [
        ("f1", "opened", "physical"),
        ("f1", "resolved", "physical"),
        ("f2", "opened", "physical"),
    ]
    assert [mark.at for mark in marks] == sorted(mark.at for mark in marks)
    assert [event.id for event in ended] == ["f1"]
