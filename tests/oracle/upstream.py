"""The upstream scheduler's plugins as a program: built once into the cache, then asked about documents.

In: List documents as bytes. Out: upstream's verdicts and placements (`upstream/README.md` says what they mean). Called
by `parity.py`, the parity test and the benchmark.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "upstream"
BATCH = 25


class NoOracle(Exception):
    """Go is missing, or the program cannot be built; the message is one line."""


def build() -> Path:
    """The built program: `${REAL_PARTS_CACHE:-~/.cache/underhost}/oracle/oracle-DIGEST`. Raises NoOracle."""
    cache = Path(os.environ.get("REAL_PARTS_CACHE") or Path.home() / ".cache" / "underhost") / "oracle"
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*.go")) + sorted(SOURCES.glob("go.*")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    binary = cache / f"oracle-{digest.hexdigest()[:12]}"
    if binary.exists():
        return binary
    go = shutil.which("go")
    if go is None:
        raise NoOracle("needs Go 1.26 or newer to build the upstream scheduler's plugins")
    cache.mkdir(parents=True, exist_ok=True)
    made = binary.with_name(f"{binary.name}.{os.getpid()}")
    done = subprocess.run([go, "build", "-o", str(made), "."], cwd=SOURCES, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoOracle("the upstream program cannot be built: " + " ".join(done.stderr.split())[-400:])
    made.replace(binary)  # whoever builds at the same time makes the same file
    return binary


def ask(binary: Path, documents: Iterable[bytes], *flags: str) -> Iterator[dict[str, Any]]:
    """Upstream's answer to each document, in order. Raises NoOracle if it fails or contradicts itself."""
    batch: list[bytes] = []
    for document in documents:
        batch.append(document)
        if len(batch) == BATCH:
            yield from _ask(binary, batch, flags)
            batch = []
    if batch:
        yield from _ask(binary, batch, flags)


def _ask(binary: Path, batch: Sequence[bytes], flags: Sequence[str]) -> list[dict[str, Any]]:
    done = subprocess.run([str(binary), *flags], input=b"\n".join(batch), capture_output=True)
    if done.returncode != 0:
        raise NoOracle(f"upstream exits with {done.returncode}: {done.stderr.decode()[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
