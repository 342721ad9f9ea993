"""Forty inputs changed at random: `make trust ARGS=inputs` tries two thousand."""

import time
from pathlib import Path

import pytest
from trust.inputs.mutations import case_of
from trust.inputs.regime import run, wrong

pytestmark = pytest.mark.timeout(600)


def test_whatever_is_in_a_file_is_read_or_refused_within_bounds(tmp_path: Path) -> None:
    tally = run(time.monotonic() + 500, tmp_path, cases=40)
    assert (tally.tried, tally.failures) == (40, [])


def test_a_seed_is_always_the_same_case() -> None:
    assert case_of(7) == case_of(7) != case_of(8)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param({"said": ""}, "", id="an answer"),
        pytest.param({"code": 2, "said": "error: no"}, "", id="a refusal"),
        pytest.param({"code": 2}, "exit code 2 without a word", id="a silent refusal"),
        pytest.param({"code": 1, "said": "Traceback (most …"}, "exit code 1: Traceback (most …", id="a traceback"),
        pytest.param({"code": -9}, "exit code -9: ", id="killed"),
        pytest.param({"seconds": 5.1}, "5.1 s of a processor", id="too slow"),
        pytest.param({"memory": 65.0}, "65 MiB for 0.0 MiB of input", id="too much"),
    ],
)
def test_what_is_lost(found: dict[str, object], why: str) -> None:
    case = case_of(0)._replace(content=b"x")
    assert wrong(case, {"code": 0, "said": "", "seconds": 0.1, "memory": 1.0, **found}) == why
