"""What a plan hears of its worker, from the log."""

import asyncio
from pathlib import Path

import pytest
from trust.sieve.topics import says

from underhost.streams.embedded.log import Log

TOPIC = "underhost.outcomes"


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        pytest.param("left to a person", True, id="said before something else of the same pod"),
        pytest.param("would set a label", True, id="said last"),
        pytest.param("bound to", False, id="never said"),
    ],
)
def test_what_was_said_counts_whatever_is_said_next_under_the_same_key(
    tmp_path: Path, text: str, is_said: bool
) -> None:
    asyncio.run(said(tmp_path / "underhost.db", "it is left to a person", "would set a label"))
    assert says(tmp_path / "underhost.db", TOPIC, text) is is_said


async def said(file: Path, *reasons: str) -> None:
    """A worker's log in which these were said of one pod."""
    log = Log(file)
    await log.open()
    await log.create_topic(TOPIC, 1, {})
    for reason in reasons:
        await log.append((TOPIC, 0), b"town/pod/shop/db-1", b'{"reason": "%s"}' % reason.encode(), 1)
    await log.close()
