"""Whose certificates are trusted: the authorities of a file, or the system's.

In: a setting and its file. Out: what a certificate is checked against.
"""

import ssl
from pathlib import Path

from underhost.schemas.errors import InputError


def trusted_by(setting: str, ca_file: Path | None) -> ssl.SSLContext:
    """What a certificate is checked against, without a file the system's. Raises InputError: setting and file."""
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except ssl.SSLError:
        raise InputError(f"{setting}: {ca_file}: no PEM certificate in it") from None
    except OSError as error:
        raise InputError(f"{setting}: {ca_file}: {error.strerror}") from error
    # From 3.13 on Python refuses authorities without a key identifier or usage, as older clusters and vCenters have
    # them; kubectl and govc take them, and so does Python 3.11. Chain, names and dates are checked as ever.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
