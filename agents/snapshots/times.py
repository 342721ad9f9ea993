"""Moments as people and programs name them: RFC 3339, or so long ago.

In: text. Out: milliseconds since 1970.
"""

import re
import time
from datetime import datetime

from underhost.schemas.errors import InputError

_AGO = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_time(text: str, now: float | None = None) -> int:
    """`2026-11-21T03:00:00Z`, or `10m` for ten minutes ago (s, m, h, d). Raises InputError."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        seconds = int(ago[1]) * _SECONDS[ago[2]]
        return int(((time.time() if now is None else now) - seconds) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(f"{text!r}: a time is expected, 2026-11-21T03:00:00Z or 10m for ten minutes ago")
    return int(moment.timestamp() * 1000)
