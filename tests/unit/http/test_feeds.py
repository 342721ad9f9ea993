"""What happened in the sites, as the page is told it: followed for as long as the server listens."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager

import pytest
from support.build import a_node, a_site
from support.published import a_finding, decided, records

from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.schemas.errors import InputError
from underhost.schemas.keys import finding_key
from underhost.schemas.topics import VIOLATIONS, Topic
from underhost.streams.ports import Record

[OPENED] = records((VIOLATIONS, finding_key("prod", "f1"), a_finding("f1", "shop/db-0")))


class Topics:
    """A TopicReader that yields or raises these, one each time that it follows, and then waits for ever."""

    def __init__(self, *told: Record | Exception) -> None:
        self._told = list(told)

    async def follow(self, topics: Iterable[Topic], *, from_beginning: bool = False) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        each = self._told.pop(0) if self._told else None
        if isinstance(each, Exception):
            raise each
        if each is not None:
            yield each
        await asyncio.Event().wait()


@asynccontextmanager
async def following(topics: Topics) -> AsyncIterator[ChangeFeeds]:
    latest = LatestDecisions()
    latest.put("prod", decided(a_site(a_node("n1"))))
    feeds = ChangeFeeds(latest, "prod", dict, topics)  # type: ignore[arg-type]
    async with aclosing(feeds.running(None)) as life:  # type: ignore[type-var, arg-type]
        await anext(life)
        yield feeds
        await anext(life, None)


async def test_a_password_file_that_is_empty_for_a_while_does_not_end_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("underhost.agents.http.feeds.AGAIN", 0.001)
    async with following(Topics(InputError("kafka.sasl.passwordFile: /run/password: empty"), OPENED)) as feeds:
        async with asyncio.timeout(20):
            while not feeds.activity_log("prod").latest():  # noqa: ASYNC110 (it tells nobody)
                await asyncio.sleep(0)
        assert [entry.subject for entry in feeds.activity_log("prod").latest()] == ["finding/f1"]


@pytest.mark.parametrize(
    ("site", "why"),
    [
        ("prod", "kafka: nothing can be published; lease a: is not known; source vsphere: has not listed yet"),
        ("beta", "kafka: nothing can be published"),
    ],
)
def test_what_a_worker_watches_is_no_reason_about_another_site(site: str, why: str) -> None:
    reasons = {"source vsphere": "has not listed yet", "lease a": "is not known", "kafka": "nothing can be published"}
    feeds = ChangeFeeds(LatestDecisions(), "prod", lambda: reasons, Topics())  # type: ignore[arg-type]
    assert feeds.reason(site) == why


async def test_a_history_that_a_bug_has_ended_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with following(Topics(ZeroDivisionError("division by zero"))), asyncio.timeout(20):
        while not caplog.records:  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0)
    assert caplog.messages == ["the history of the page stands still: ZeroDivisionError: division by zero"]
