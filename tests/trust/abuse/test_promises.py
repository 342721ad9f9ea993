"""What must hold of a worker that is abused."""

from collections import Counter

import pytest
from trust.abuse.promises import MIB, Measured

GOOD = [0.01] * 990 + [9.0] * 10


@pytest.mark.parametrize(
    ("measured", "broken"),
    [
        pytest.param(Measured(GOOD, [MIB, 251 * MIB, MIB], Counter({("a", 200): 9, ("b", 503): 9})), [], id="all hold"),
        pytest.param(
            Measured([*GOOD, *GOOD, 9.0], [MIB]), ["/healthz took 9000 ms (p99)"], id="a probe waits once in a hundred"
        ),
        pytest.param(
            Measured([0.01] * 98 + [float("inf")] * 2, [MIB]),
            ["/healthz took inf ms (p99)"],
            id="a probe is unanswered",
        ),
        pytest.param(Measured((), [MIB]), ["/healthz took inf ms (p99)"], id="nobody probed"),
        pytest.param(Measured(GOOD, [MIB, 252 * MIB, MIB]), ["the worker grew by 251 MiB"], id="it grew for a moment"),
        pytest.param(
            Measured(GOOD, [MIB], Counter({("noise", 500): 2})), ["2 answers of 500 to noise"], id="an answer is a 500"
        ),
        pytest.param(Measured(GOOD, [MIB], restarts=1), ["1 restarts"], id="it began anew"),
    ],
)
def test_a_promise_that_is_broken_is_told(measured: Measured, broken: list[str]) -> None:
    assert measured.broken() == broken


def test_the_figures_tell_answers_probes_and_memory() -> None:
    measured = Measured([0.01] * 50, [MIB, 3 * MIB], Counter({("a", 500): 1, ("a", 200): 1999}), starved=0.123)
    assert measured.told() == (
        "2,000 answers, 1 of them 500; /healthz p99 10 ms of 50; memory 1 → at most 3 MiB; 0 restarts; "
        "12 % of the time without a processor"
    )
