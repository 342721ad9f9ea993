"""A few seconds of abuse by everybody at once: `make trust ARGS=abuse` goes on for ten minutes, and times a probe."""

import asyncio
from pathlib import Path

from trust.abuse.generated import KINDS
from trust.abuse.promises import GROWTH
from trust.abuse.regime import abused


def test_a_worker_that_is_abused_lives_and_answers_no_500(tmp_path: Path) -> None:
    measured = asyncio.run(abused(tmp_path, 8.0))
    assert measured.answers.total() > 20
    assert {kind for kind, _ in measured.answers} >= KINDS.keys()
    assert [kind for kind, status in measured.answers if status == 500] == []
    assert measured.restarts == 0, measured.told()
    assert measured.growth <= GROWTH, measured.told()
    assert measured.probes
