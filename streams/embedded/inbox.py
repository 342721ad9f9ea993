"""An inbox beside an embedded log, through which another process hands a record to the owner of the log.

In: bytes from a command on the same machine. Out: the same bytes, once, in the worker that owns the file. A letter is
a file in the folder `FILE-inbox`, which only the log's owner can read and write: who can add a letter could also write
the log. The content of letters is left to sender and receiver.
"""

from pathlib import Path

from underhost.schemas.errors import Unreachable

SUFFIX = ".letter"


def folder_of(log: Path) -> Path:
    """The inbox of the log."""
    return log.with_name(f"{log.name}-inbox")


def post(log: Path, name: str, data: bytes) -> Path:
    """Add a letter, complete or not at all; returns its path. Raises Unreachable without a log, or the right."""
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
    """Take out every letter, oldest first. One that cannot be read stays for the next time."""
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
    """Take a letter of one's own back; False where it was collected already."""
    try:
        letter.unlink()
    except FileNotFoundError:
        return False
    return True
