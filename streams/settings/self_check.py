"""Settings of the self-check: how often a full evaluation is compared with the kept one, and where differences go."""

from pathlib import Path

from pydantic import Field

from underhost.streams.settings.group import SettingsGroup


class SelfCheckSettings(SettingsGroup):
    """Compares the findings that are kept from change to change with a full evaluation, one site at a time."""

    interval: float = Field(default=300.0, ge=0)
    """Seconds between two checks; 0: none. A check computes as long as the first evaluation of the site did."""
    folder: Path | None = None
    """Where the few objects that show a difference are written, as input of `underhost check`; absent: only the log
    names them."""
