"""From the record on the topic to the finding, on Apache Kafka: what a change costs a worker that reads and decides.

`bench.stream SERVER [NODES PODS CHANGES]`. Prints `name<TAB>value` lines. The site is that of `bench.pipeline`; this
program publishes it, and the worker is a process of its own, so that its CPU is what reading, keeping and judging cost.
For the storm the worker is stopped until all changes are on the topic (for less than its session), and the clock runs
from when it goes on to the finding of the last change. Beside it: bare loops over the same records, which do nothing
with them, of aiokafka, which is the worker's driver, and of confluent-kafka, which is C and so the ceiling. Then
changes come at a steady rate, and every tenth opens or resolves a finding: from the record on the topic to the finding
that its topic has acknowledged.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from bench.pipeline import REPLICAS, SITE, Sizes, home, kubernetes_objects, pod, vsphere_objects
from bench.usage import cpu_of
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from underhost.agents.pipeline.connections import Connections
from underhost.agents.worker import run_worker
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES_TOPICS, PODS, VIOLATIONS, VSPHERE_TOPICS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings
from underhost.streams.watching.records import marker_of

SESSION = 30.0
AT_ONCE = 2_000
RATES = ((100, 30), (1_000, 10))
"""Changes a second, and for how many seconds: a p99 is one of at least 300 findings, not the worst of them."""
TENTH, APPLICATIONS, LOOK = 10, 50, 0.05


def settings(server: str) -> Settings:
    """Of the worker, whose sources are elsewhere."""
    kafka = KafkaSettings(bootstrap_servers=server, session_timeout=SESSION)
    return Settings(site=SITE, kafka=kafka, vsphere=VSphereSettings(inventory=Path("bench")))


def work(settings: Settings) -> None:
    """A worker: it says when which finding was acknowledged, a line each."""

    def heard(record: Outgoing) -> None:
        if record.topic is VIOLATIONS:
            print(time.time(), record.key, record.value or "", flush=True)

    asyncio.run(
        run_worker(
            settings,
            roles={"evaluator"},
            connections=Connections(lambda *_: ()),
            on_event=heard,
            web=False,
        )
    )


class Worker:
    """The process that is measured."""

    def __init__(self, module: str, server: str) -> None:
        command = [sys.executable, "-m", module, "worker", server]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.said: list[tuple[float, str]] = []
        """When which finding was acknowledged, as its key and its record."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            at, _, record = line.partition(" ")
            self.said.append((float(at), record))

    async def until(self, word: str, after: float = 0.0) -> float:
        """When a finding that names this was first acknowledged after that time; waits for it."""
        while True:
            for at, record in list(self.said):
                if at > after and word in record:
                    return at
            if self.process.poll() is not None:
                sys.exit("the worker ended")
            await asyncio.sleep(LOOK)

    def cpu(self) -> float:
        """CPU seconds so far."""
        return cpu_of(self.process.pid)

    def end(self) -> float:
        """Stop it; MiB that it held at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        self.process.terminate()
        self.process.communicate(timeout=60)
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def publish(publisher: KafkaPublisher, records: Sequence[Outgoing]) -> None:
    """In order, many at a time."""
    for first in range(0, len(records), AT_ONCE):
        await publisher.publish(*records[first : first + AT_ONCE])


def of(site: str, records: Iterable[Outgoing]) -> Iterator[Outgoing]:
    """The same records, of another site."""
    return (record._replace(key=record.key.replace(SITE, site, 1)) for record in records)


async def fill(publisher: KafkaPublisher, sizes: Sizes, site: str = SITE) -> None:
    """Publish the site as its watchers list it."""
    for source, topics, objects in (
        ("vsphere", VSPHERE_TOPICS, vsphere_objects(sizes)),
        ("kubernetes", KUBERNETES_TOPICS, kubernetes_objects(sizes)),
    ):
        listed = list(of(site, objects))
        await publish(publisher, listed)
        marker = Listed(1, len(listed))
        await publisher.publish(*(marker_of(site, source, topic, marker) for topic in topics))


def storm(sizes: Sizes) -> Iterator[Outgoing]:
    """Changes of pods that change nothing of what is right, then one that does."""
    for number in range(sizes.changes):
        at = 10 + number % (sizes.pods - 20)
        yield pod(at, home(at, sizes), number + 1)
    last = sizes.pods - REPLICAS
    yield pod(last, home(last + 1, sizes), sizes.changes + 1)


async def bare(server: str, count: int) -> tuple[float, float]:
    """(Records a second, CPU ms of each) of a loop that takes the last records of the topic and does nothing."""
    consumer = AIOKafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    consumer.subscribe([PODS.name])
    seen, started, spent = 0, time.perf_counter(), time.process_time()
    while seen < count:
        seen += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
    took, used = time.perf_counter() - started, time.process_time() - spent
    await consumer.stop()
    return seen / took, used / seen * 1e3


def ceiling(server: str, count: int) -> tuple[float, float]:
    """The same as `bare` of confluent-kafka, whose threads' CPU is counted, too."""
    consumer = Consumer({"bootstrap.servers": server, "group.id": "ceiling", "enable.auto.commit": False})
    seen, started, spent = 0, time.perf_counter(), time.process_time()
    # Assigned, not subscribed: what its threads fetch while a group is joined would not be on the clock.
    partitions = range(settings(server).kafka.partitions)
    consumer.assign([TopicPartition(PODS.name, partition, OFFSET_BEGINNING) for partition in partitions])
    while seen < count:
        seen += len(consumer.consume(500, timeout=1))
    took, used = time.perf_counter() - started, time.process_time() - spent
    consumer.close()
    return seen / took, used / seen * 1e3


async def paced(worker: Worker, publisher: KafkaPublisher, sizes: Sizes, rate: int, seconds: int) -> list[float]:
    """Seconds from each change that opens or resolves a finding to its acknowledgement, at so many changes a second."""
    version, started = time.time_ns(), time.perf_counter()
    sent: list[tuple[float, str]] = []
    for number in range(rate * seconds):
        await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
        turn, rest = divmod(number, TENTH)
        if rest:
            at = sizes.pods // 2 + number % (sizes.pods // 4)
            await publisher.publish(pod(at, home(at, sizes), version + number))
            continue
        application, again = 100 + turn % APPLICATIONS, turn // APPLICATIONS % 2
        at = application * REPLICAS
        sent.append((time.time(), f"bench/app-{application}-0"))
        await publisher.publish(pod(at, home(at + 1 - again, sizes), version + number))
    return sorted([await worker.until(word, begun) - begun for begun, word in sent])


async def measure(server: str, sizes: Sizes) -> None:
    """A storm, the ceiling, and steady changes; printed as they come."""
    await ensure_topics(settings(server).kafka)
    worker = Worker("bench.stream", server)
    async with KafkaPublisher(settings(server).kafka, settings(server).kafka.partitions) as publisher:
        await fill(publisher, sizes)
        await worker.until("bench/app-0-0")
        changes = list(storm(sizes))
        os.kill(worker.process.pid, signal.SIGSTOP)
        await publish(publisher, changes)
        before, started = worker.cpu(), time.time()
        os.kill(worker.process.pid, signal.SIGCONT)
        ended = await worker.until(f"bench/app-{sizes.pods // REPLICAS - 1}-0")
        used = worker.cpu() - before
        print(f"changes per second\t{len(changes) / (ended - started):.0f}")
        print(f"CPU of the worker for each, ms\t{used / len(changes) * 1e3:.3f}")
        for name, (records, cost) in (
            ("aiokafka", await bare(server, len(changes))),
            ("confluent-kafka", await asyncio.to_thread(ceiling, server, len(changes))),
        ):
            print(f"a bare loop of {name}: records per second\t{records:.0f}")
            print(f"a bare loop of {name}: CPU for each, ms\t{cost:.4f}")
        for rate, seconds in RATES:
            before = worker.cpu()
            waits = await paced(worker, publisher, sizes, rate, seconds)
            print(f"{rate} changes a second: to the finding, p50, ms\t{waits[len(waits) // 2] * 1e3:.0f}")
            print(f"{rate} changes a second: to the finding, p99, ms\t{waits[int(len(waits) * 0.99)] * 1e3:.0f}")
            print(f"{rate} changes a second: processors of the worker\t{(worker.cpu() - before) / seconds:.2f}")
    print(f"memory of the worker, MiB\t{worker.end():.0f}")


def main(
    settings: Callable[[str], Settings], measure: Callable[[str, Sizes], Coroutine[Any, Any, None]], usual: Sizes
) -> None:
    """`SERVER [NODES PODS CHANGES]`: measure and print; with `worker SERVER`, be what is measured."""
    logging.basicConfig(level=logging.WARNING)
    if sys.argv[1] == "worker":
        work(settings(sys.argv[2]))
        return
    sizes = Sizes(*map(int, sys.argv[2:5])) if sys.argv[2:] else usual
    asyncio.run(measure(sys.argv[1], sizes))


if __name__ == "__main__":
    main(settings, measure, Sizes(1_000, 10_000, 40_000))
