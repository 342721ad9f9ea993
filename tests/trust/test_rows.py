"""The rows of docs/trust.md, and that every regime is told there."""

import re

import pytest
from trust.rows import BEGIN, END, HEAD, Row, duration, with_row
from trust.run import PAGE, REGIMES


def a_row(regime: str, commit: str, tried: int = 10) -> Row:
    return Row(regime, "2026-11-22", commit, tried, tried - 1, 1, "12 min", "p99 3 ms")


def page(*rows: Row) -> str:
    return "\n".join(["# Title", BEGIN, HEAD, *map(str, rows), END, "after", ""])


@pytest.mark.parametrize(
    ("there", "new", "expected"),
    [
        ([], a_row("b", "c1"), [a_row("b", "c1")]),
        ([a_row("b", "c1")], a_row("b", "c1", 20), [a_row("b", "c1", 20)]),
        ([a_row("b", "c1")], a_row("b", "c2"), [a_row("b", "c1"), a_row("b", "c2")]),
        ([a_row("a", "c1"), a_row("c", "c1")], a_row("b", "c1"), [a_row(name, "c1") for name in "abc"]),
    ],
    ids=["first row", "same commit again", "another commit", "regimes are sorted"],
)
def test_a_regime_has_one_row_for_each_commit(there: list[Row], new: Row, expected: list[Row]) -> None:
    assert with_row(page(*there), new) == page(*expected)


def test_a_cell_cannot_break_the_table() -> None:
    assert str(Row("a", "d", "c", 1, 1, 0, "1 s", "x | y\nz")) == "| a | d | c | 1 | 1 | 0 | 1 s | x / y z |"


@pytest.mark.parametrize(
    ("seconds", "said"), [(4.4, "4 s"), (99.0, "99 s"), (100.0, "2 min"), (1800.0, "30 min"), (11_100.0, "3 h 05 min")]
)
def test_a_duration_is_said_in_its_largest_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_page_tells_every_regime_and_no_other() -> None:
    told = re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert told == sorted(REGIMES)
