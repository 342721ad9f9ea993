"""A small share of the simulation: `make trust ARGS=simulation` runs ten thousand seeds."""

from trust.simulation.regime import results_of, start
from trust.simulation.rival import TAKEN


def test_a_few_seeds_keep_every_promise() -> None:
    results = [result for process in [start("0:12"), start("12:24")] for result in results_of(process)]
    assert [(result.seed, result.violations) for result in results if result.violations] == []
    assert [result.seed for result in results] == list(range(24))
    assert min(result.events for result in results) >= 500
    assert min(sum(result.faults.values()) for result in results) >= 5
    assert sum(result.faults.get(TAKEN, 0) for result in results) >= 50  # another worker contends for the leases


def test_a_seed_replays_exactly_in_another_order_and_in_another_process() -> None:
    seeds = [*map(str, range(40, 52))]
    processes = [start(*seeds, PYTHONHASHSEED="1"), start(*reversed(seeds), PYTHONHASHSEED="2")]
    first, second = ([(result.seed, result.trace) for result in results_of(process)] for process in processes)
    assert first == second[::-1]
    assert len({trace for _, trace in first}) == len(seeds)
