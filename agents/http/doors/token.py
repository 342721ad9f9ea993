"""The token that `web.tokenFile` holds: who shows it is let in, and a session of the page is signed with it.

In: a file. Out: whether what somebody shows is the token, or a session that it has signed and that has not ended. A new
token ends every session. Every comparison takes the same time whatever is shown.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from underhost.agents.http.doors.files import KeptFresh
from underhost.schemas.errors import InputError
from underhost.streams.credentials import text_of

SHORTEST = 16
"""Characters of a token: fewer could be guessed."""
SESSION_SECONDS = 30 * 24 * 3600
"""How long a browser stays signed in."""


class TokenFile:
    """The token of a file, read again when it changes. `clock` gives seconds since 1970.

    Raises InputError for a file that cannot be read or holds no token.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._kept, self._clock = KeptFresh([path], lambda: _token(path)), clock

    def is_it(self, shown: str) -> bool:
        """Whether this is the token."""
        return _same(shown.encode("utf-8", "surrogateescape"), self._kept.current())

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: workers with other tokens on other ports of one machine have others."""
        return f"underhost-{_digest(self._kept.current(), 'cookie')[:8]}"

    def new_session(self) -> str:
        """A session, for a cookie: when it ends, something random, and our signature of both."""
        begun = f"{int(self._clock()) + SESSION_SECONDS}.{secrets.token_hex(8)}"
        return f"{begun}.{_digest(self._kept.current(), f'session {begun}')}"

    def is_session(self, shown: str) -> bool:
        """Whether this is a session of ours that has not ended."""
        begun, _, signature = shown.rpartition(".")
        ends = begun.partition(".")[0]
        ours = _digest(self._kept.current(), f"session {begun}")
        return _same(signature.encode("utf-8", "surrogateescape"), ours.encode()) and int(ends) > self._clock()


def _same(one: bytes, other: bytes) -> bool:
    """In constant time, the length included."""
    return hmac.compare_digest(hashlib.sha256(one).digest(), hashlib.sha256(other).digest())


def _digest(token: bytes, what: str) -> str:
    return hmac.digest(token, what.encode("utf-8", "surrogateescape"), "sha256").hex()


def _token(path: Path) -> bytes:
    token = text_of("web.tokenFile", path, "ascii", "ASCII").strip()
    if len(token) < SHORTEST:
        raise InputError(f"web.tokenFile: {path}: a token of {SHORTEST} characters at least is expected")
    if not token.isprintable() or " " in token:
        raise InputError(f"web.tokenFile: {path}: one token without spaces is expected")
    return token.encode()
