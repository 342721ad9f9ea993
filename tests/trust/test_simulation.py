"""A small share of the simulation: `make trust ARGS=simulation` runs ten thousand seeds."""

import msgspec
import pytest
from trust.simulation.invariants import lives_of_findings
from trust.simulation.old_defects import Search
from trust.simulation.regime import SeedResult, results_of, start
from trust.simulation.rival import TAKEN

from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import VIOLATIONS


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


@pytest.mark.parametrize(
    ("states", "said"),
    [
        pytest.param(["opened", "updated", "resolved", None], [], id="a life"),
        pytest.param(["opened", "opened", "resolved"], [], id="an opening that was sent twice"),
        pytest.param(["opened", "resolved", None, "opened", "resolved at 2"], [], id="opened again in the same words"),
        pytest.param(["resolved"], ["finding town/f is resolved before it is opened"], id="never opened"),
        pytest.param(["opened", None], ["finding town/f is deleted before it is resolved"], id="deleted too early"),
        pytest.param(
            ["opened", "resolved", None, "opened at 2", None, "opened at 2", "resolved at 2"],
            [],
            id="an end and the next opening that were sent twice",
        ),
        pytest.param(
            ["opened", None, "opened at 2"],
            ["finding town/f is deleted before it is resolved", "finding town/f is opened twice"],
            id="deleted too early, and opened in other words",
        ),
        pytest.param(["opened", "opened at 2"], ["finding town/f is opened twice"], id="opened twice"),
    ],
)
def test_a_finding_lives_once_at_a_time(states: list[str | None], said: list[str]) -> None:
    def record(state: str | None) -> tuple[str, bytes, bytes | None]:
        word, _, at = (state or "").partition(" at ")
        value = FindingEvent("f", word, "town", "violation", "Rule", "reason", "message", "0", at, {})
        return VIOLATIONS.name, b"town/f", msgspec.json.encode(value) if state else None

    assert list(lives_of_findings([record(state) for state in states])) == said


def test_a_brought_back_defect_that_raises_has_not_been_found() -> None:
    ended = ["not ready: worker: it waits", "the worker ended with TypeError: without() takes 2 positional arguments"]
    with pytest.raises(RuntimeError, match="does not fit the code: the worker ended with TypeError"):
        Search().add([SeedResult(0, ended, 600, {}, "", 1.0)])


def test_the_first_violation_says_by_what_a_defect_was_found() -> None:
    search = Search()
    search.add([SeedResult(seed, ["label goes back"] if seed == 2 else [], 600, {}, "", 1.0) for seed in range(4)])
    assert (search.seeds, search.found) == (3, "label goes back")
