"""The brokers of a rig: one, three of which two are enough, or one that each worker reaches by a way of its own.

In: a folder, the built parts. Out: running brokers; ended with the context they are used in.
"""

from contextlib import AsyncExitStack
from pathlib import Path

from support.processes.brokers import Brokers
from support.processes.kafka import KafkaProcess, Place
from support.processes.kube import ADMINS
from support.processes.ports import free_ports
from support.processes.relay import Outage

WAYS = """
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller},{listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker},{advertised}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{protocols}
"""
"""Read after the others. A client is told the address of the listener that it comes by: each worker its relay's."""


class OneBroker:
    """One broker that all workers reach."""

    replicas = 1

    def __init__(self, folder: Path, parts: Path) -> None:
        self._broker = KafkaProcess(folder, parts)
        self.bootstrap = self._broker.address

    def bootstrap_of(self, worker: int) -> str:
        """See `rig.Transport`."""
        return self.bootstrap

    async def __aenter__(self) -> "OneBroker":
        self._broker.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._broker.kill()


class ThreeBrokers:
    """Three brokers, two of which must have a record before it is acknowledged."""

    replicas = 3

    def __init__(self, folder: Path, parts: Path) -> None:
        self.brokers = Brokers(folder, parts)
        self.bootstrap = self.brokers.address

    def bootstrap_of(self, worker: int) -> str:
        """See `rig.Transport`: each worker begins with another broker."""
        return self.brokers.address_from(worker % len(self.brokers))

    async def __aenter__(self) -> "ThreeBrokers":
        self.brokers.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.brokers.kill()


class WaysToOneBroker:
    """One broker, and a relay before it for each worker that can be cut and healed.

    Attributes:
        ways: the relay of each worker, in order.
    """

    replicas = 1

    def __init__(self, folder: Path, parts: Path) -> None:
        (self._broker_port, controller, *listeners) = free_ports(2 + len(ADMINS))
        self._broker = KafkaProcess(folder, parts, place=Place(0, [self._broker_port], [controller]))
        self._controller, self._listeners = controller, listeners
        self._properties = folder / "kafka.properties"
        self.bootstrap = self._broker.address
        self.ways = [Outage(port) for port in listeners]
        self._ports: list[int] = []
        self._running = AsyncExitStack()

    def bootstrap_of(self, worker: int) -> str:
        """See `rig.Transport`: the worker's own relay."""
        return f"127.0.0.1:{self._ports[worker]}"

    async def __aenter__(self) -> "WaysToOneBroker":
        self._ports = [await self._running.enter_async_context(way.relaying()) for way in self.ways]
        names = [f"WAY{number}" for number in range(len(self.ways))]
        named = lambda ports: ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True))  # noqa: E731
        with self._properties.open("a") as file:
            file.write(
                WAYS.format(
                    broker=self._broker_port,
                    controller=self._controller,
                    listeners=named(self._listeners),
                    advertised=named(self._ports),
                    protocols=",".join(f"{name}:PLAINTEXT" for name in names),
                )
            )
        self._broker.format()
        self._broker.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._running.aclose()
        self._broker.kill()
