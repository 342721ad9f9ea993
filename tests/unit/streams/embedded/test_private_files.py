"""Nobody else can read the files of an embedded log: they hold what the sources may see of a cluster."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from underhost.streams.embedded import store


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A umask that would let everybody read."""
    before = os.umask(0o000)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in sorted(folder.iterdir())}


def opened(path: Path) -> dict[str, str]:
    """The modes of its files while the log is open and has been written."""
    with store.lock(path):
        db = store.connect(path, read_only=False)
        db.execute("INSERT OR REPLACE INTO topics(name, config) VALUES ('t', '{}')")
        try:
            return modes(path.parent)
        finally:
            db.close()


ONLY_OURS = dict.fromkeys(["log.db", "log.db-shm", "log.db-wal", "log.db.lock"], "0o600")


def test_a_new_log_is_its_owners_alone(tmp_path: Path) -> None:
    assert opened(tmp_path / "log.db") == ONLY_OURS


def test_a_log_that_others_could_read_is_its_owners_alone_from_now_on(tmp_path: Path) -> None:
    opened(tmp_path / "log.db")
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    found = opened(tmp_path / "log.db")
    assert {name: found[name] for name in ("log.db", "log.db-wal")} == {"log.db": "0o600", "log.db-wal": "0o600"}


def test_a_log_in_use_stays_so_while_it_is_looked_at(tmp_path: Path) -> None:
    with store.lock(tmp_path / "log.db"), pytest.raises(store.Refused, match="is in use by another underhost"):
        store.lock(tmp_path / "log.db")
