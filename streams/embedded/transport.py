"""The Faust transport `embedded:///PATH`: found through the entry point `faust.transports`, at-least-once only.

In: a broker URL, `embedded:///absolute/path.db`, with `?sync=full` for an fsync per commit. Out: Faust's consumer and
producer over one log. `register` is for an interpreter without our package's metadata.
"""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiokafka.partitioner import DefaultPartitioner
from faust.transport import base
from faust.transport.drivers import TRANSPORTS
from faust.types.enums import ProcessingGuarantee

from underhost.schemas.errors import InputError
from underhost.streams.embedded import registry
from underhost.streams.embedded.consumer import Consumer
from underhost.streams.embedded.log import Log
from underhost.streams.embedded.producer import Producer

SCHEME = "embedded"
TARGET = "underhost.streams.embedded.transport:Transport"


def embedded_url(path: Path, sync: str | None) -> str:
    """The broker URL of a file; Faust splits a broker setting at `,` and `;`, so these are escaped."""
    query = f"?sync={sync}" if sync else ""
    return f"{SCHEME}://{quote(str(path.resolve()))}{query}"


def register() -> None:
    """Make the scheme known to Faust where the entry point is not installed."""
    TRANSPORTS.aliases.setdefault(SCHEME, TARGET)


class Transport(base.Transport):  # type: ignore[misc]
    """Consumer and producer of one file."""

    Consumer = Consumer
    Producer = Producer
    default_port = 0
    driver_version = "embedded=1"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        url = self.url[0]
        if not url.path.strip("/"):
            raise InputError(f"{url}: no file is named; write embedded:///path/to/file.db")
        if self.app.conf.processing_guarantee != ProcessingGuarantee.AT_LEAST_ONCE:
            raise InputError("the embedded log is at-least-once: processing_guarantee exactly_once needs Apache Kafka")
        self.path, self.sync = Path(url.path), url.query.get("sync", "NORMAL").upper()
        self._partitioner = DefaultPartitioner()

    async def acquire(self) -> Log:
        """The log, shared by all of this process. Raises Refused when another process has it."""
        return await registry.acquire(self.path, self.sync)

    def choose_partition(self, key: bytes | None, count: int) -> int:
        """Where Kafka's default partitioner puts a key."""
        every = list(range(count))
        return int(self._partitioner(key, every, every))
