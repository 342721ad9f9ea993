"""Settings of the doors: where the worker listens, with which certificate, and what whoever asks there has to show.

In: `web` and `extender` of the configuration. Out: frozen models, part of `model.py`. No files are read here: what they
hold is for `agents/http/doors`.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, field_validator, model_validator

from underhost.schemas.numbers import number
from underhost.streams.settings.group import SettingsGroup


def split_listen(listen: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `:PORT`. Raises ValueError."""
    host, colon, text = listen.rpartition(":")
    port = number(text)
    if not colon or port is None or port > 65535:
        raise ValueError(f"HOST:PORT is expected, not {listen!r}")
    return host.strip("[]") or "0.0.0.0", port


def _checked(listen: str) -> str:
    split_listen(listen)
    return listen


Listen = Annotated[str, AfterValidator(_checked)]
"""Where to listen; what is no address is told before anything else is done."""


class ListenerTlsSettings(SettingsGroup):
    """TLS of a listener. The files are read again when they change."""

    cert_file: Path
    """PEM of the listener's certificate and its chain."""
    key_file: Path | None = None
    """Its key, in PEM without a passphrase; absent: it is in `certFile`, too."""
    client_ca_file: Path | None = None
    """PEM of CAs. Whoever shows a certificate that one of them has signed is let in as with the token, so let them sign
    for nobody else."""


class WebSettings(SettingsGroup):
    """The HTTP listener. Off loopback it needs `tokenFile` or `tls.clientCaFile`."""

    listen: Listen = "127.0.0.1:8080"
    hosts: tuple[str, ...] = ()
    """Public names that the page is called by; addresses, names without a dot and a cluster's own are always served."""
    tls: ListenerTlsSettings | None = None
    token_file: Path | None = None
    """Holds the token, 16 characters at least, read again when it changes. With it, whatever changes something or costs
    more than reading what is held needs the token, on loopback too."""
    anonymous_read: bool | None = None
    """Whether page and API may be read without the token; absent: on loopback only."""

    @field_validator("tls", "token_file", mode="before")
    @classmethod
    def _not_off_by_accident(cls, given: Any) -> Any:
        return something(given)

    @model_validator(mode="after")
    def _no_open_door(self) -> Self:
        known = self.token_file is not None or asks_for_certificates(self.tls)
        if not known and not is_loopback(self.listen):
            raise ValueError(f"listen {self.listen} is not loopback: it needs tokenFile or tls.clientCaFile")
        if not known and self.anonymous_read is False:
            raise ValueError("anonymousRead: false needs tokenFile or tls.clientCaFile, or nobody could read")
        return self

    @property
    def open_to_read(self) -> bool:
        """Whether page and API are read without any credential."""
        return is_loopback(self.listen) if self.anonymous_read is None else self.anonymous_read


class ExtenderSettings(SettingsGroup):
    """The listener of kube-scheduler's questions, beside the page's. Off loopback it needs `tls.clientCaFile` or
    `web.tokenFile`."""

    listen: Listen | None = None
    """`HOST:PORT`; absent: the questions are asked at `web.listen`."""
    tls: ListenerTlsSettings | None = None
    """With `clientCaFile` nobody gets as far as asking without a certificate."""

    @field_validator("tls", mode="before")
    @classmethod
    def _not_off_by_accident(cls, given: Any) -> Any:
        return something(given)


def something(given: Any) -> Any:
    """What was given. Raises ValueError for a key that stands there with nothing behind it: it may have been meant."""
    if given is None:
        raise ValueError("nothing in it: leave the key out where there is none")
    return given


def extender_fault(web: WebSettings, extender: ExtenderSettings) -> str | None:
    """What is wrong with the extender's own door; None where it can be opened."""
    if extender.listen is None:
        if extender.tls is not None:
            return "extender.tls without extender.listen: the questions are asked at web.listen, by web.tls"
    elif web.token_file is None and not asks_for_certificates(extender.tls) and not is_loopback(extender.listen):
        return f"extender.listen {extender.listen} is not loopback: it needs extender.tls.clientCaFile or web.tokenFile"
    return None


def is_loopback(listen: str) -> bool:
    """Whether nobody but this machine reaches `HOST:PORT`; a name that has to be looked up may be anything."""
    host, _ = split_listen(listen)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def asks_for_certificates(tls: ListenerTlsSettings | None) -> bool:
    """Whether who comes may show a certificate in a token's place."""
    return tls is not None and tls.client_ca_file is not None
