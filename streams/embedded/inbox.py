"""An inbox beside an embedded log, through which another process hands a record to the owner of the log.

In: bytes from a command on the same machine. Out: the same bytes, once, in the worker that owns the file. A letter is
a file in the folder `FILE-inbox`, which only the log's owner can read and write: who can add a letter could also write
the log. So a folder of somebody else's, or one that others can write, is refused by both, and so is a letter of another
user. The content of letters is left to sender and receiver.
"""

import os
import stat
from pathlib import Path

from underhost.schemas.errors import Refused, Unreachable

SUFFIX = ".letter"


def folder_of(log: Path) -> Path:
    """The inbox of the log."""
    return log.with_name(f"{log.name}-inbox")


def post(log: Path, name: str, data: bytes) -> Path:
    """Add a letter, complete or not at all; returns its path.

    Raises Unreachable without a log, or the right; Refused where the folder or the log is somebody else's.
    """
    if not log.exists():
        raise Unreachable(f"{log}: no such file; `underhost run` makes it: name the log with --embedded or --config")
    box = folder_of(log)
    letter = box / f"{name}{SUFFIX}"
    try:
        _require_ours(log, "log")
        box.mkdir(mode=0o700, exist_ok=True)
        _require_ours(box, "inbox")
        draft = letter.with_suffix(".draft")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
        draft.rename(letter)
    except OSError as error:
        raise Unreachable(f"{box}: {error.strerror or error}") from error
    return letter


def _require_ours(path: Path, what: str) -> None:
    """Raises Refused where another user owns the file or folder, or may write it."""
    found, ours = path.lstat(), os.geteuid()
    if stat.S_ISLNK(found.st_mode) and what != "log":
        raise Refused(f"{path}: a link is no {what}")
    found = path.stat()
    if found.st_uid != ours:
        raise Refused(f"{path}: this {what} is of user {found.st_uid}, and this is user {ours}")
    if what != "log" and found.st_mode & 0o022:
        raise Refused(f"{path}: others can write this {what} (chmod go-w)")


def collect(log: Path) -> list[bytes]:
    """Take out every letter, oldest first. One that cannot be read, or is not ours, stays.

    Raises Refused where the folder is somebody else's, or others can write it: nothing in it is believed.
    """
    box = folder_of(log)
    try:
        _require_ours(box, "inbox")
        waiting = sorted(box.glob(f"*{SUFFIX}"), key=lambda letter: (letter.lstat().st_mtime_ns, letter.name))
    except OSError:
        return []
    letters = []
    for letter in waiting:
        try:
            if (data := _read(letter)) is None:
                continue
            letter.unlink()
        except OSError:
            continue
        letters.append(data)
    return letters


def _read(letter: Path) -> bytes | None:
    """What a letter of ours says, None for another user's."""
    with os.fdopen(os.open(letter, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return file.read() if os.fstat(file.fileno()).st_uid == os.geteuid() else None


def withdraw(letter: Path) -> bool:
    """Take a letter of one's own back; False where it was collected already."""
    try:
        letter.unlink()
    except FileNotFoundError:
        return False
    return True
