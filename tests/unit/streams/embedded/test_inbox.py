"""The letter-box beside an embedded log: what is posted is collected once, by whoever holds the log."""

import os
import stat
from pathlib import Path

import pytest

from underhost.schemas.errors import Refused, Unreachable
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


def test_an_inbox_of_another_user_is_refused_by_both(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.post(log, "a", b"1")
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    with pytest.raises(Refused) as collecting:
        inbox.collect(log)
    assert str(collecting.value) == f"{log}-inbox: this inbox is of user {ours}, and this is user {ours + 1}"
    with pytest.raises(Refused) as posting:
        inbox.post(log, "b", b"2")
    assert str(posting.value) == f"{log}: this log is of user {ours}, and this is user {ours + 1}"


def test_an_inbox_that_others_can_write_is_refused_by_both(log: Path) -> None:
    box = inbox.post(log, "a", b"1").parent
    box.chmod(0o770)
    for use in (lambda: inbox.collect(log), lambda: inbox.post(log, "b", b"2")):
        with pytest.raises(Refused, match=r"inbox: others can write this inbox \(chmod go-w\)"):
            use()


def test_a_link_is_no_inbox_and_no_letter(log: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "secret").write_bytes(b"x")
    inbox.folder_of(log).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="inbox: a link is no inbox"):
        inbox.collect(log)
    inbox.folder_of(log).unlink()
    letter = inbox.post(log, "a", b"1")
    letter.with_name("b.letter").symlink_to(tmp_path / "secret")
    assert inbox.collect(log) == [b"1"]


def test_a_letter_of_another_user_is_not_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.post(log, "a", b"1")
    fstat = os.fstat

    def of_another(number: int) -> os.stat_result:
        found = fstat(number)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10]))

    monkeypatch.setattr(os, "fstat", of_another)
    assert inbox.collect(log) == []


def test_without_a_log_there_is_no_letter_box(tmp_path: Path) -> None:
    with pytest.raises(
        Unreachable,
        match=r"underhost\.db: no such file; `underhost run` makes it: name the log with --embedded or --config",
    ):
        inbox.post(tmp_path / "underhost.db", "a", b"1")
    assert inbox.collect(tmp_path / "underhost.db") == []
    assert list(tmp_path.iterdir()) == []
