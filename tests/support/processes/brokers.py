"""Three real Kafka brokers that make one cluster on loopback, each a JVM of its own: Kafka as it is run.

    brokers = Brokers(folder, parts)    # three folders, formatted; nothing runs
    brokers.start()                     # returns when all three answer
    brokers.address                     # "127.0.0.1:…,127.0.0.1:…,127.0.0.1:…", for `kafka.bootstrapServers`
    brokers[0].pause()                  # frozen (SIGSTOP): its port still accepts, and nothing answers
    brokers[0].resume()
    brokers[1].kill(); brokers[1].start()
    brokers.address_from(2)             # the same servers, beginning with the third one
    brokers.resume()                    # every one that is paused, and started where it was killed
    await brokers.in_sync()             # until every replica has caught up: only then may another one go
    brokers.kill()                      # at the end, also of what is paused

Each is broker and controller; two of three are enough for both. Timeouts are Kafka's own: a frozen broker loses its
partitions after 9 s (`broker.session.timeout.ms`), some seconds later where it was the active controller. Internal
topics have three replicas; how ours are replicated is up to who creates them. One JVM takes some 400 MiB. Clients find
the other brokers through the metadata, past a relay that is put before one address.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest
from support.processes.kafka import KafkaProcess, Place
from support.processes.ports import free_ports

COUNT = 3
NODES = range(1, COUNT + 1)


class Brokers(Sequence[KafkaProcess]):
    """The brokers, in the order of their node ids 1, 2 and 3."""

    def __init__(self, state: Path, parts: Path) -> None:
        ports = free_ports(2 * COUNT)
        self._members = [
            KafkaProcess(state / f"kafka-{number + 1}", parts, place=Place(number, ports[:COUNT], ports[COUNT:]))
            for number in range(COUNT)
        ]
        with ThreadPoolExecutor(COUNT) as pool:  # each is a JVM of two seconds
            list(pool.map(KafkaProcess.format, self._members))

    def __getitem__(self, number: int) -> KafkaProcess:  # type: ignore[override]  # a slice of brokers is no cluster
        return self._members[number]

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[KafkaProcess]:
        return iter(self._members)

    @property
    def address(self) -> str:
        """The bootstrap servers."""
        return self.address_from(0)

    def address_from(self, first: int) -> str:
        """The bootstrap servers, beginning with this one."""
        return ",".join(each.address for each in (*self._members[first:], *self._members[:first]))

    def start(self, timeout: float = 180) -> None:
        """Start them together, and return when all of them answer. Raises RuntimeError when one does not."""
        for each in self._members:
            each.begin()
        for each in self._members:
            each.wait(timeout)

    def resume(self) -> None:
        """Let every one that is paused go on, and start every one that was killed."""
        for each in self._members:
            if each.runs:
                each.resume()
            else:
                each.start()

    async def in_sync(self) -> None:
        """Wait until every replica of every topic is in sync, without which losing one more broker stops Kafka.

        Each broker is asked: one that has just been resumed knows for a while what was so when it was paused.
        """
        client = AIOKafkaClient(bootstrap_servers=self.address)
        try:
            async with asyncio.timeout(180):
                await client.bootstrap()
                while True:
                    with suppress(KafkaError):  # the others do not show a broker that has just been resumed
                        seen = [await client.send(node, MetadataRequest(None)) for node in NODES]
                        if all(map(self._is_whole, seen)):
                            return
                    await asyncio.sleep(0.2)
        finally:
            await client.close()

    @staticmethod
    def _is_whole(metadata: Any) -> bool:
        seen = metadata.to_object()
        parts = [part for topic in seen["topics"] for part in topic["partitions"]]
        return len(seen["brokers"]) == COUNT and all(len(part["isr"]) == len(part["replicas"]) for part in parts)

    def kill(self) -> None:
        """End all of them hard."""
        for each in self._members:
            each.kill()
