"""Settings of who is told of findings: Alertmanagers and webhooks."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, model_validator

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
    ca_file: Path | None = None
    """PEM of the CAs that vouch for the receiver; absent: the system's."""
    plain_secrets: bool = False
    """Send the headers, or a password in the URL, over `http://`, where everybody on the way reads them."""

    @model_validator(mode="after")
    def _hidden(self) -> Self:
        if not self.plain_secrets:
            _require_tls([self.url], self.headers_file)
        return self


class AlertingSettings(SettingsGroup):
    """Who is alerted to findings; nobody unless given."""

    alertmanagers: tuple[Annotated[str, Field(pattern=r"^https?://")], ...] = ()
    severity: SeverityName = CO_LOCATED
    """Alertmanagers are told of findings of this severity and above."""
    repeat: float = Field(default=60.0, gt=0)
    """Seconds between repetitions. An alert that is not repeated for four of them counts as resolved."""
    headers_file: Path | None = None
    """Lines of `Name: value` for the Alertmanagers; read again at every call."""
    ca_file: Path | None = None
    """PEM of the CAs that vouch for the Alertmanagers; absent: the system's."""
    plain_secrets: bool = False
    """Send the headers, or a password in a URL, over `http://`, where everybody on the way reads them."""
    link: str = ""
    """Where people reach the page, for links in alerts: `https://underhost.example`."""
    runbooks: str = "docs/runbooks"
    """Where docs/runbooks can be read, for links in alerts."""
    webhooks: tuple[WebhookSettings, ...] = ()

    @model_validator(mode="after")
    def _hidden(self) -> Self:
        if not self.plain_secrets:
            _require_tls(self.alertmanagers, self.headers_file)
        return self


def _require_tls(urls: Iterable[str], headers_file: Path | None) -> None:
    """Raises ValueError for a URL over which a secret would travel in the clear."""
    for url in urls:
        parts = urlsplit(url)
        what = "headersFile" if headers_file is not None else "the password in it" if parts.password else ""
        if what and parts.scheme == "http":
            raise ValueError(f"{public(url)}: {what} would travel in the clear: take https, or set plainSecrets: true")


def public(url: str) -> str:
    """Where a URL leads, without what in it may be a secret: user and password, path and query.

    Who knows the whole URL of a chat's webhook may write there.
    """
    parts = urlsplit(url)
    rest = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{rest}"
