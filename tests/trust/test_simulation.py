"""A small share of the simulation: `make trust ARGS=simulation` runs ten thousand seeds."""

import pytest
from trust.simulation.regime import results_of, start


def test_a_few_seeds_keep_every_promise() -> None:
    results = [result for process in [start("0:12"), start("12:24")] for result in results_of(process)]
    assert [(result.seed, result.violations) for result in results if result.violations] == []
    assert [result.seed for result in results] == list(range(24))
    assert min(result.events for result in results) >= 500
    assert min(sum(result.faults.values()) for result in results) >= 5


@pytest.mark.xfail(
    strict=False,
    reason="two steps of one moment may change places: Faust keeps what it wakes in sets, whose order is by address."
    " Of the seeds 40 to 55 this shows in 41 and 48.",
)
def test_a_seed_replays_exactly_twice_and_in_another_process() -> None:
    processes = [start("40:42", "40:42", PYTHONHASHSEED="1"), start("41", "40", PYTHONHASHSEED="2")]
    first, second = ([(result.seed, result.trace) for result in results_of(process)] for process in processes)
    assert first[:2] == first[2:] == second[::-1]
    assert first[0][1] != first[1][1]
