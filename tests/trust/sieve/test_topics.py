"""What a plan hears of its worker, from the log."""

import asyncio
from pathlib import Path

import pytest
from trust.sieve.topics import has_said, still_says

from underhost.streams.embedded.log import Log

TOPIC = "underhost.outcomes"


@pytest.mark.parametrize(
    ("text", "ever", "still"),
    [
        pytest.param("left to a person", True, False, id="said before something else of the same pod"),
        pytest.param("would set a label", True, True, id="said last"),
        pytest.param("bound to", False, False, id="never said"),
    ],
)
def test_what_was_said_of_a_pod_stays_said_and_only_the_newest_is_still_said(
    tmp_path: Path, text: str, ever: bool, still: bool
) -> None:
    log = tmp_path / "underhost.db"
    asyncio.run(said(log, "it is left to a person", "would set a label"))
    assert (has_said(log, TOPIC, text), still_says(log, TOPIC, text)) == (ever, still)


def test_nothing_is_said_in_the_log_of_a_worker_that_has_not_begun(tmp_path: Path) -> None:
    log = tmp_path / "underhost.db"
    assert (has_said(log, TOPIC, ""), still_says(log, TOPIC, "")) == (False, False)


async def said(file: Path, *reasons: str) -> None:
    """A worker's log in which these were said of one pod."""
    log = Log(file)
    await log.open()
    await log.create_topic(TOPIC, 1, {})
    for reason in reasons:
        await log.append((TOPIC, 0), b"town/pod/shop/db-1", b'{"reason": "%s"}' % reason.encode(), 1)
    await log.close()
