"""Files that hold credentials: texts, passwords, and a certificate with its key.

In: a setting and its file. Out: what the file holds; InputError names setting and file, and says nothing of its text.
"""

import ssl
from pathlib import Path

from underhost.schemas.errors import InputError


def text_of(setting: str, path: Path, encoding: str = "utf-8", kind: str = "UTF-8") -> str:
    """What a file holds. `kind`: what it is said not to be. Raises InputError."""
    try:
        return path.read_text(encoding=encoding)
    except UnicodeDecodeError:
        raise InputError(f"{setting}: {path}: not {kind} text") from None
    except OSError as error:
        raise InputError(f"{setting}: {path}: {error.strerror}") from error


def password_of(setting: str, path: Path) -> str:
    """The password that a file holds, without the line's end. Raises InputError."""
    password = text_of(setting, path).rstrip("\r\n")
    if not password:
        raise InputError(f"{setting}: {path}: empty")
    return password


def present(context: ssl.SSLContext, group: str, cert: Path, key: Path | None) -> None:
    """Show this certificate, whose key may be in the same file, to the other side. Raises InputError."""
    for setting, path in (("certFile", cert), ("keyFile", key)):
        if path is not None:  # OpenSSL does not say which of the two it cannot read
            text_of(f"{group}.{setting}", path, kind="PEM")
    try:
        context.load_cert_chain(str(cert), None if key is None else str(key), password="")  # never asks a terminal
    except (ssl.SSLError, ValueError) as error:
        why = "not the key of this certificate" if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH" else ""
        where = f"{group}.certFile: {cert}" if key is None else f"{group}.keyFile: {key}"
        raise InputError(f"{where}: {why or 'no PEM certificate with its key, without a passphrase'}") from None
