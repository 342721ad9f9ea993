"""Whose certificates are trusted: the authorities of a file, or the system's.

In: a setting and its file. Out: what a certificate is checked against.
"""

import ssl
from pathlib import Path

from underhost.schemas.errors import InputError


def trusted_by(setting: str, ca_file: Path | None) -> ssl.SSLContext | None:
    """What a certificate is checked against; None without a file. Raises InputError that names setting and file."""
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except ssl.SSLError:
        raise InputError(f"{setting}: {ca_file}: no PEM certificate in it") from None
    except OSError as error:
        raise InputError(f"{setting}: {ca_file}: {error.strerror}") from error
