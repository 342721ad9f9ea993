"""Settings of where the topics live, with TLS and the user of an Apache Kafka that asks for them.

In: `kafka` of the configuration. Out: frozen models, part of `model.py`; what `tls` and `sasl` mean to a client is
in `kafka/security.py`. No files are read here.
"""

import re
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from underhost.streams.settings.group import SettingsGroup

MOST_PARTITIONS = 1024
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(:(?P<port>[0-9]{1,5}))?")


class KafkaTlsSettings(SettingsGroup):
    """TLS to the brokers, on where it is given, if empty. Certificate and host name are always checked."""

    ca_file: Path | None = None
    """PEM of the CAs that vouch for the brokers; absent: the system's. `tls: {}` is TLS with those."""
    cert_file: Path | None = None
    """PEM of a certificate of ours and its chain, for brokers that ask for one (mutual TLS)."""
    key_file: Path | None = None
    """Its key, in PEM without a passphrase; absent: it is in `certFile`, too."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("keyFile without certFile: both make our certificate")
        return self


class KafkaSaslSettings(SettingsGroup):
    """The user that every client is at the brokers."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """`PLAIN` sends the password itself, and is refused without `kafka.tls`."""
    username: str = Field(min_length=1)
    password_file: Path
    """Read again for every new client; a line break at its end is not part of the password."""


class KafkaSettings(SettingsGroup):
    """Where the topics live: Apache Kafka, or the embedded default (one process, durable)."""

    bootstrap_servers: str | None = None
    embedded: Path = Path("underhost.db")
    """File of the embedded log, used when no bootstrap servers are given."""
    durability: Literal["normal", "full"] = "normal"
    """Of the embedded log. `full`: each record is on the disk before it is acknowledged. `normal`: a power cut may take
    the last records (a kill never does), but no eviction: what the evictor remembers is on the disk in both."""
    partitions: int = Field(default=8, ge=1, le=MOST_PARTITIONS)
    """Partitions of every topic; a start against topics with another count is refused."""
    replication_factor: int | None = Field(default=None, ge=1, le=16)
    """Replicas of the topics that a start creates; absent: 3, or as many as there are brokers where they are fewer.
    With 3 or more, two of them acknowledge each record (`min.insync.replicas`). Existing topics stay as they are."""
    session_timeout: float = Field(default=10.0, ge=1)
    """Seconds after which a dead worker's partitions move; Faust's default of 60 would be the length of an outage."""
    keep_unreadable: bool = False
    """Put the original bytes of what cannot be read into dead letters, in the place of a digest of them: there may be
    secrets in it, as in the variables of a pod."""
    tls: KafkaTlsSettings | None = None
    sasl: KafkaSaslSettings | None = None

    @field_validator("bootstrap_servers")
    @classmethod
    def _can_be_dialled(cls, given: str | None) -> str | None:
        servers = [server for server in map(str.strip, (given or "").split(",")) if server]
        if given and not servers:
            raise ValueError("names no server")
        for server in servers:
            if "@" in server:
                raise ValueError("holds credentials; use kafka.sasl")
            if not _is_server(server):
                raise ValueError(f"{server!r} is not HOST:PORT")
        return given

    @field_validator("tls", mode="before")
    @classmethod
    def _not_off_by_accident(cls, given: Any) -> Any:
        if given is None:
            raise ValueError("nothing in it: {} is TLS with the system's CAs, and no key at all is no TLS")
        return given

    @model_validator(mode="after")
    def _hidden(self) -> Self:
        if self.sasl is not None and self.sasl.mechanism == "PLAIN" and self.tls is None:
            raise ValueError("sasl.mechanism PLAIN sends the password itself: it needs kafka.tls, SCRAM does not")
        return self


def _is_server(text: str) -> bool:
    """Whether it is HOST:PORT, or a host alone, which an IPv6 address may be, too."""
    met = _SERVER.fullmatch(text)
    if met is not None:
        return int(met["port"] or 1) in range(1, 1 << 16)
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
