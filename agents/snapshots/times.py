"""Moments as people and programs name them: RFC 3339, or so long ago.

In: text. Out: milliseconds since 1970.
"""

import re
import time
from datetime import datetime

from underhost.schemas.errors import InputError

_AGO = re.compile(r"(\d{1,12})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LAST = 253_402_300_800
"""Seconds since 1970 at the end of the year 9999: no time is written beyond it."""


def parse_time(text: str, now: float | None = None) -> int:
    """`2026-11-21T03:00:00Z`, or `10m` for ten minutes ago (s, m, h, d). Raises InputError."""
    moment = _seconds(text, time.time() if now is None else now)
    if moment is None or not 0 <= moment <= LAST:
        shown = repr(text if len(text) <= 40 else f"{text[:40]}…")
        raise InputError(f"{shown}: a time is expected, 2026-11-21T03:00:00Z or 10m for ten minutes ago")
    return min(round(moment * 1000), LAST * 1000 - 1)  # the last second's end would be rounded beyond it


def _seconds(text: str, now: float) -> float | None:
    """Seconds since 1970; None for what is no time."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else moment.timestamp()
    except (ValueError, OverflowError):
        return None
