"""A few seconds of abuse by everybody at once: `make trust ARGS=abuse` goes on for ten minutes, and times a probe."""

import asyncio
from pathlib import Path

from trust.abuse.promises import GROWTH
from trust.abuse.regime import abused


def test_a_worker_that_is_abused_lives_is_bounded_and_answers_no_500(tmp_path: Path) -> None:
    measured = asyncio.run(abused(tmp_path, 8.0))
    assert measured.answers.total() > 20
    assert [kind for kind, status in measured.answers if status == 500] == []
    assert (measured.restarts, measured.growth <= GROWTH) == (0, True), measured.told()
    assert measured.probes
