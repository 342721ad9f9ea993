"""Settings of who is told of findings: Alertmanagers and webhooks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field

from underhost.schemas.severities import CO_LOCATED, LEAST, SEVERITIES
from underhost.streams.settings.group import SettingsGroup

if TYPE_CHECKING:
    SeverityName: TypeAlias = str
else:  # what the table holds: a type checker cannot read it, pydantic can
    SeverityName = Literal[SEVERITIES]


class WebhookSettings(SettingsGroup):
    """A URL that is called for every change of a finding, with a CloudEvent."""

    url: str = Field(pattern=r"^https?://")
    severity: SeverityName = LEAST
    """Only findings of this severity and above."""
    headers_file: Path | None = None
    """Lines of `Name: value`, a token among them; read again at every call."""


class AlertingSettings(SettingsGroup):
    """Who is alerted to findings; nobody unless given."""

    alertmanagers: tuple[Annotated[str, Field(pattern=r"^https?://")], ...] = ()
    severity: SeverityName = CO_LOCATED
    """Alertmanagers are told of findings of this severity and above."""
    repeat: float = Field(default=60.0, gt=0)
    """Seconds between repetitions. An alert that is not repeated for four of them counts as resolved."""
    headers_file: Path | None = None
    link: str = ""
    """Where people reach the page, for links in alerts: `https://underhost.example`."""
    runbooks: str = "docs/runbooks"
    """Where docs/runbooks can be read, for links in alerts."""
    webhooks: tuple[WebhookSettings, ...] = ()


def public(url: str) -> str:
    """Where a URL leads, without what in it may be a secret: user and password, path and query.

    Who knows the whole URL of a chat's webhook may write there.
    """
    parts = urlsplit(url)
    rest = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{rest}"
