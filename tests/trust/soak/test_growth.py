"""What counts as growth, and what does not."""

import pytest
from trust.soak.growth import MIB, growths, told


@pytest.mark.parametrize(
    ("gauge", "before", "after", "too_much"),
    [
        ("memory", 200 * MIB, 209 * MIB, False),
        ("memory", 200 * MIB, 211 * MIB, True),
        ("memory", 2000 * MIB, 2039 * MIB, False),
        ("memory", 2000 * MIB, 2041 * MIB, True),
        ("tasks", 40, 50, False),
        ("tasks", 40, 51, True),
        ("descriptors", 30, 25, False),
        ("rows of outcomes", 300, 349, False),
        ("rows of outcomes", 300, 351, True),
        ("rows of outcomes", 10_000, 10_190, False),
    ],
    ids=lambda value: str(value),
)
def test_a_gauge_may_grow_by_two_percent_or_by_a_little(gauge: str, before: int, after: int, too_much: bool) -> None:
    samples = [{gauge: float(before)}] * 10 + [{gauge: float(after)}] * 10
    assert [one.too_much for one in growths(samples)] == [too_much]


def test_one_high_sample_is_no_growth() -> None:
    samples = [{"tasks": 40.0}] * 99 + [{"tasks": 400.0}]
    assert not any(one.too_much for one in growths(samples))


def test_the_figures_say_what_was_before_and_after() -> None:
    sample = {"memory": 200.0 * MIB, "tasks": 40.0, "rows of pods": 100.0, "rows of nodes": 7.0}
    after = {**sample, "memory": 204.0 * MIB, "rows of pods": 103.0}
    assert told(growths([sample, after])) == "memory 200 → 204 MiB, tasks 40 → 40, rows 107 → 110"
