"""What keeps a wrong password from locking an account: by vCenter's default five of them within three minutes do.

In: the account and password of each login, and which were refused. Out: Refused in the place of a login that would try
a refused password again too soon. Watcher, tags and writers of a process use one account, so all of them ask here;
another password is tried at once. A door is a vCenter's `host:port`, or that with the name of what has logins of its
own there.
"""

import hashlib
import threading
import time

from underhost.schemas.errors import Refused

PAUSE = 300.0
"""Seconds for which a refused password is not tried again: several workers together stay below vCenter's limit."""

turn = threading.Lock()
"""Held by a thread while it logs in: of several at once the others learn from the first that it is refused."""

_refused: dict[tuple[str, str], tuple[bytes, float]] = {}
"""The digest of the password that was refused last, and when (monotonic seconds), by door and user name."""


def check(door: str, username: str, password: str) -> None:
    """Raises Refused where vCenter has refused this password less than `PAUSE` ago."""
    digest, when = _refused.get((door, username), (b"", 0.0))
    if digest == _digest(password) and time.monotonic() - when < PAUSE:
        raise Refused(
            f"{_said(door)}; that one is not tried again within {PAUSE / 60:.0f} minutes, as vCenter locks accounts"
        )


def refused(door: str, username: str, password: str) -> Refused:
    """The error of a login whose password vCenter has just refused."""
    _refused[door, username] = _digest(password), time.monotonic()
    return Refused(_said(door))


def _said(door: str) -> str:
    return f"vCenter {door}: wrong user name or password"


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
