"""One HTTP POST to somebody who is alerted, and how long to wait where it fails.

In: a URL, headers from a file, a body. Out: nothing, or Refused (sending it again is of no use) or Unreachable.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.settings.alerting import public

TIMEOUT = aiohttp.ClientTimeout(total=10.0)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the next attempt; doubled at each failure."""
LATER = frozenset({408, 425, 429})
"""Answers of the 4xx that mean: again, later."""
OF_THE_BODY = frozenset({400, 413, 422})
"""Answers of the 4xx that are about what was sent, and not about the address or who sends."""
SHOWN = 200


class BodyRefused(Refused):
    """It is what was sent that is refused: a part of it may be taken."""


def new_session(trusted: ssl.SSLContext | None = None) -> aiohttp.ClientSession:
    """A session of one receiver's own: a slow one must not hold the others' connections.

    `trusted`: what its certificate is checked against; None: the system's authorities.
    """
    connector = aiohttp.TCPConnector(limit=2, ssl=trusted if trusted is not None else True)
    return aiohttp.ClientSession(timeout=TIMEOUT, connector=connector)


async def post(session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], body: bytes) -> None:
    """Returns once it is taken (2xx). Raises Refused, BodyRefused and Unreachable, whose text holds no secret."""
    where = public(url)
    try:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            if answer.status < 300:
                return
            said = " ".join((await answer.text(errors="replace"))[:SHOWN].split())
            error = f"{where}: {answer.status} {answer.reason}{': ' if said else ''}{said}"
            if not 400 <= answer.status < 500 or answer.status in LATER:
                raise Unreachable(error)
            raise (BodyRefused if answer.status in OF_THE_BODY else Refused)(error)
    except (aiohttp.ClientError, TimeoutError, OSError) as fault:
        said = " ".join(str(fault).replace(url, where).split())
        raise Unreachable(f"{where}: {said or type(fault).__name__}") from fault


def read_headers(path: Path | None) -> dict[str, str]:
    """The headers of a file of `Name: value` lines, read at each use so that a rotated token is found.

    Raises Unreachable where it cannot be read: it may be there again soon.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unreachable(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    pairs = [line.partition(":") for line in lines if line.strip()]
    if not all(name.strip() and colon for name, colon, _ in pairs):
        raise Unreachable(f"{path}: lines of `Name: value` are expected")
    return {name.strip(): value.strip() for name, _, value in pairs}


def next_pause(pause: float) -> float:
    """The pause after one that was of no use."""
    return min(LONGEST_PAUSE, pause * 2) if pause else FIRST_PAUSE
