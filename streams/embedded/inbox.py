"""A letter-box beside an embedded log: how another process hands a record to the one that holds the log.

In: bytes from a command on the same machine. Out: the same bytes, once, in the worker that owns the file. A letter is
a file of a folder `FILE-inbox` that only the log's owner can read and write, so that whoever can put one in may as
well write the log itself. What a letter says is its sender's and its receiver's business.
"""

from pathlib import Path

from underhost.schemas.errors import Unreachable

SUFFIX = ".letter"


def folder_of(log: Path) -> Path:
    """The letter-box of the log."""
    return log.with_name(f"{log.name}-inbox")


def post(log: Path, name: str, data: bytes) -> Path:
    """Put a letter in, whole or not at all; its path. Raises Unreachable where there is no log, or no right to."""
    if not log.exists():
        raise Unreachable(f"{log}: no such file; `underhost run` makes it")
    box = folder_of(log)
    letter = box / f"{name}{SUFFIX}"
    try:
        box.mkdir(mode=0o700, exist_ok=True)
        draft = letter.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_bytes(data)
        draft.rename(letter)
    except OSError as error:
        raise Unreachable(f"{box}: {error.strerror or error}") from error
    return letter


def collect(log: Path) -> list[bytes]:
    """Take every letter out, oldest first. One that cannot be read is left for the next time."""
    box = folder_of(log)
    try:
        waiting = sorted(box.glob(f"*{SUFFIX}"), key=lambda letter: (letter.stat().st_mtime_ns, letter.name))
    except OSError:
        return []
    letters = []
    for letter in waiting:
        try:
            data = letter.read_bytes()
            letter.unlink()
        except OSError:
            continue
        letters.append(data)
    return letters


def withdraw(letter: Path) -> bool:
    """Take one's own letter back; False where it was collected."""
    try:
        letter.unlink()
    except FileNotFoundError:
        return False
    return True
