"""TLS and SASL: the one place where `kafka.tls` and `kafka.sasl` become arguments of clients.

In: `KafkaSettings`; the files that they name are read for every new client, so that rotated files are used. Out:
arguments of aiokafka's clients, credentials of Faust's, and the reason why a broker rejects us, in one line that names
the setting. No text that is made here contains a password.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import faust
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import IllegalSaslStateError, KafkaError, SaslAuthenticationFailed, UnsupportedSaslMechanismError
from aiokafka.protocol.metadata import MetadataRequest

from underhost.schemas.errors import BackendError, Refused, Unreachable
from underhost.streams.authorities import trusted_by
from underhost.streams.credentials import password_of, present
from underhost.streams.settings.kafka import KafkaSettings, KafkaTlsSettings

ASK_SECONDS = 5.0
"""Limit for asking all brokers why they reject us."""
_OTHER_NAME = {62, 64}
"""OpenSSL's codes of a certificate that is for another host name, or for another address."""


class _Ending(ssl.SSLObject):
    """TLS that closes at once: asyncio waits half a minute for a broker that does not close its side."""

    def unwrap(self) -> None:
        """Send the closing message and do not wait for its answer: nothing more is read."""
        with suppress(ssl.SSLWantReadError):
            super().unwrap()


def client_arguments(settings: KafkaSettings) -> dict[str, Any]:
    """Arguments of every aiokafka client: servers, TLS and user. Raises InputError."""
    return {"bootstrap_servers": settings.bootstrap_servers, **_security(settings)}


def credentials(settings: KafkaSettings) -> faust.SSLCredentials | faust.SASLCredentials | None:
    """The same for the clients that Faust makes. Raises InputError."""
    context = tls_context(settings.tls)
    if (sasl := settings.sasl) is not None:
        return faust.SASLCredentials(
            username=sasl.username,
            password=password_of("kafka.sasl.passwordFile", sasl.password_file),
            mechanism=sasl.mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)


def _security(settings: KafkaSettings) -> dict[str, Any]:
    context = tls_context(settings.tls)
    arguments: dict[str, Any] = {}
    if context is not None:
        arguments["ssl_context"] = context
    if (sasl := settings.sasl) is not None:
        arguments |= {
            "sasl_mechanism": sasl.mechanism,
            "sasl_plain_username": sasl.username,
            "sasl_plain_password": password_of("kafka.sasl.passwordFile", sasl.password_file),
        }
    protocol = {(False, False): "PLAINTEXT", (True, False): "SSL", (False, True): "SASL_PLAINTEXT"}
    return {"security_protocol": protocol.get((context is not None, sasl is not None), "SASL_SSL"), **arguments}


def tls_context(settings: KafkaTlsSettings | None) -> ssl.SSLContext | None:
    """How the brokers' certificates are checked and ours is presented; None without TLS. Raises InputError."""
    if settings is None:
        return None
    context = trusted_by("kafka.tls.caFile", settings.ca_file)
    context.sslobject_class = _Ending
    if settings.cert_file is not None:
        present(context, "kafka.tls", settings.cert_file, settings.key_file)
    return context


async def refusal(settings: KafkaSettings) -> BackendError | None:
    """Why a bootstrap server, or a broker that it names, rejects us or is rejected by us; None if no reason is found.

    aiokafka's error says only that it cannot connect; so this connects to each broker once to see why.
    """
    try:
        async with asyncio.timeout(ASK_SECONDS):
            return await _asked(settings)
    except TimeoutError:
        return None


async def _asked(settings: KafkaSettings) -> BackendError | None:
    arguments = _security(settings)
    places = [(host, port) for host, port, _ in collect_hosts(settings.bootstrap_servers, randomize=False)]
    for host, port in places:  # grows by the brokers that are named
        try:
            connection = await create_conn(host, port, **arguments)
            try:
                metadata = await connection.send(MetadataRequest([]))
            finally:
                connection.close()
        except (KafkaError, OSError) as error:
            if (said := against(error, f"{host}:{port}", settings)) is not None:
                return said
        else:
            places += [broker[1:3] for broker in metadata.brokers if broker[1:3] not in places]
    return None


def against(error: BaseException, where: str, settings: KafkaSettings) -> BackendError | None:
    """The error of a connection by its cause, with the setting to look at; None where the broker does not answer."""
    who = f"Kafka at {where}"
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                setting = "kafka.bootstrapServers" if cause.verify_code in _OTHER_NAME else "kafka.tls.caFile"
                return Refused(f"{who}: certificate not trusted: {cause.verify_message.rstrip('.')} ({setting})")
            case ssl.SSLEOFError():
                return Unreachable(f"{who}: closes the connection as TLS begins: is TLS spoken there (kafka.tls)?")
            case ssl.SSLError() if "ALERT" in (cause.reason or "") and "CERT" in (cause.reason or ""):
                return Refused(f"{who}: asks for a certificate of ours that it trusts (kafka.tls.certFile)")
            case ssl.SSLError():
                return Refused(f"{who}: no TLS that we can talk ({cause.reason or 'handshake failed'}; kafka.tls)")
            case SaslAuthenticationFailed():
                return Refused(f"{who}: wrong user name or password (kafka.sasl)")
            case UnsupportedSaslMechanismError():
                mechanism = settings.sasl.mechanism if settings.sasl is not None else ""
                return Refused(f"{who}: does not take {mechanism} (kafka.sasl.mechanism)")
            case IllegalSaslStateError():
                return Refused(f"{who}: takes no user and password there (kafka.sasl)")
            case asyncio.IncompleteReadError() if settings.sasl is None:
                wants = "kafka.sasl" if settings.tls is not None else "kafka.tls or kafka.sasl"
                return Unreachable(f"{who}: closes the connection: it may want {wants}")
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
