"""TLS of a listener, with certificates that may be rotated while it listens.

In: `web.tls` or `extender.tls`. Out: a context for the listener. Every handshake looks whether the files have changed,
and is made with what they hold then; connections that stand are left alone. No session is resumed, as that would let in
who was let in before, whatever the CAs are now.
"""

import ssl
from pathlib import Path

from underhost.agents.http.doors.files import KeptFresh
from underhost.schemas.errors import InputError
from underhost.streams.settings.web import ListenerTlsSettings


def listener_tls(settings: ListenerTlsSettings | None, group: str, *, required: bool = False) -> ssl.SSLContext | None:
    """The context of a listener; None without TLS. `group` names the settings in errors.

    `required`: with `clientCaFile`, nobody is let in without a certificate, to whatever; else who has none may still
    show the token, and ask for what is open to all. Raises InputError.
    """
    if settings is None:
        return None
    named = (settings.cert_file, settings.key_file, settings.client_ca_file)
    paths = [path for path in named if path is not None]
    kept = KeptFresh(paths, lambda: _context(settings, group, required))
    context = kept.current()

    def use_newest(handshake: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        handshake.context = kept.current()

    context.sni_callback = use_newest  # called at every handshake, be a name given or not
    return context


def _context(settings: ListenerTlsSettings, group: str, required: bool) -> ssl.SSLContext:
    cert, key, authorities = settings.cert_file, settings.key_file, settings.client_ca_file
    for setting, path in (("certFile", cert), ("keyFile", key), ("clientCaFile", authorities)):
        if path is not None:  # OpenSSL does not say which of them it cannot read
            _check_readable(f"{group}.{setting}", path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(str(cert), None if key is None else str(key), password="")  # never asks a terminal
    except (ssl.SSLError, ValueError) as error:
        why = "not the key of this certificate" if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH" else ""
        where = f"{group}.certFile: {cert}" if key is None else f"{group}.keyFile: {key}"
        raise InputError(f"{where}: {why or 'no PEM certificate with its key, without a passphrase'}") from None
    if authorities is None:
        return context
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # older versions resume sessions by a number, without any ticket
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    try:
        context.load_verify_locations(str(authorities))
    except ssl.SSLError:
        raise InputError(f"{group}.clientCaFile: {authorities}: no PEM certificate in it") from None
    return context


def _check_readable(setting: str, path: Path) -> None:
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{setting}: {path}: not PEM text") from None
    except OSError as error:
        raise InputError(f"{setting}: {path}: {error.strerror}") from error
