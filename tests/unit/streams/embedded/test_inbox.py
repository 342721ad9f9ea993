"""The letter-box beside an embedded log: what is posted is collected once, by whoever holds the log."""

import stat
from pathlib import Path

import pytest

from underhost.schemas.errors import Unreachable
from underhost.streams.embedded import inbox


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "underhost.db"
    path.touch()
    return path


def test_letters_are_collected_once_in_the_order_in_which_they_came(log: Path) -> None:
    for name in ("z", "a"):
        inbox.post(log, name, name.encode())
    assert inbox.collect(log) == [b"z", b"a"]
    assert inbox.collect(log) == []


def test_a_letter_that_nobody_has_collected_can_be_taken_back(log: Path) -> None:
    letter = inbox.post(log, "a", b"1")
    assert inbox.withdraw(letter)
    assert inbox.collect(log) == []
    letter = inbox.post(log, "b", b"2")
    assert inbox.collect(log) == [b"2"]
    assert not inbox.withdraw(letter)


def test_nobody_else_can_read_the_letters_or_add_one(log: Path) -> None:
    letter = inbox.post(log, "a", b"1")
    assert stat.S_IMODE(letter.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(letter.parent.stat().st_mode) == 0o700


def test_without_a_log_there_is_no_letter_box(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"underhost\.db: no such file; `underhost run` makes it"):
        inbox.post(tmp_path / "underhost.db", "a", b"1")
    assert inbox.collect(tmp_path / "underhost.db") == []
    assert list(tmp_path.iterdir()) == []
