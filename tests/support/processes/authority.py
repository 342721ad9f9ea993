"""A certificate authority of a test, made with openssl, and the certificates that it vouches for."""

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """PEM files: a certificate, its key, and both in one as Kafka reads them."""

    cert: Path
    key: Path
    both: Path


class Authority:
    """An authority; `cert` is what those who trust it are given.

    An `old` one does not say that it signs: Python refuses it from 3.13 on, where it is not told otherwise.
    """

    def __init__(self, folder: Path, name: str, *, old: bool = False) -> None:
        self._folder = folder
        self.cert, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        signs = [] if old else ["-addext", "keyUsage=critical,keyCertSign"]
        self._openssl("req", "-x509", *self._new(name, self._key), *signs, "-out", str(self.cert))

    def certificate(self, name: str, alternative: str) -> Certificate:
        """One for `alternative`, `IP:127.0.0.1` say."""
        made = Certificate(*(self._folder / f"{name}.{kind}" for kind in ("pem", "key", "both")))
        signed = ["-CA", str(self.cert), "-CAkey", str(self._key), "-addext", f"subjectAltName={alternative}"]
        extensions = ["-addext", "basicConstraints=critical,CA:FALSE"]
        self._openssl("req", "-x509", *self._new(name, made.key), *signed, *extensions, "-out", str(made.cert))
        made.both.write_text(made.key.read_text() + made.cert.read_text() + self.cert.read_text())
        return made

    @staticmethod
    def _new(name: str, key: Path) -> list[str]:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        return [*curve, "-nodes", "-days", "1", "-subj", f"/CN={name}", "-keyout", str(key)]

    @staticmethod
    def _openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
