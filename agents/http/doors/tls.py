"""TLS of a listener, with certificates that may be rotated while it listens.

In: `web.tls` or `extender.tls`. Out: a context for the listener. Every handshake looks whether the files have changed,
and is made with what they hold then; connections that stand are left alone. No session is resumed, as that would let in
who was let in before, whatever the CAs are now.
"""

import ssl

from underhost.agents.http.doors.files import KeptFresh
from underhost.schemas.errors import InputError
from underhost.streams.credentials import present, text_of
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    present(context, group, settings.cert_file, settings.key_file)
    authorities = settings.client_ca_file
    if authorities is None:
        return context
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # older versions resume sessions by a number, without any ticket
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    text_of(f"{group}.clientCaFile", authorities, kind="PEM")  # OpenSSL does not say why it cannot read it
    try:
        context.load_verify_locations(str(authorities))
    except ssl.SSLError:
        raise InputError(f"{group}.clientCaFile: {authorities}: no PEM certificate in it") from None
    return context
