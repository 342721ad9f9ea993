"""A fleet on one Apache Kafka: eight sites over one, two and four workers that read and decide.

`bench.fleet SERVER [NODES PODS CHANGES]`, of each site. Prints `name<TAB>value` lines. The sites are those of
`bench.pipeline`, each in a partition of its own, and change alike. A worker's share of the CPU is compared with its
share of the sites. Last, one of four workers is killed: from there to a finding about one of its sites.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from bench.pipeline import REPLICAS, Sizes, home, pod
from bench.stream import LOOK, Worker, fill, main, of, publish

from underhost.schemas.keys import site_of
from underhost.streams.admin import ensure_topics
from underhost.streams.partition import partition_of
from underhost.streams.publish import KafkaPublisher
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

SESSION, PARTITIONS = 10.0, 8
FLEETS = (1, 2, 4)


def settings(server: str) -> Settings:
    """Of each worker: no site is named, so it decides for all of its partitions."""
    kafka = KafkaSettings(bootstrap_servers=server, session_timeout=SESSION, partitions=PARTITIONS)
    return Settings(kafka=kafka, vsphere=VSphereSettings(inventory=Path("bench")))


def sites() -> list[str]:
    """A name for each partition."""
    found: dict[int, str] = {}
    for number in count():
        found.setdefault(partition_of(name := f"site-{number}", PARTITIONS), name)
        if len(found) == PARTITIONS:
            return sorted(found.values())
    raise AssertionError


class Fleet:
    """The sites on their topics, and the workers that run now."""

    def __init__(self, server: str, sizes: Sizes, publisher: KafkaPublisher) -> None:
        self.server, self.sizes, self.publisher, self.sites = server, sizes, publisher, sites()
        self.workers: list[Worker] = []
        self._application = count(10)

    async def fill(self) -> None:
        """Publish every site as its watchers list it."""
        for site in self.sites:
            await fill(self.publisher, self.sizes, site)

    async def start(self, workers: int) -> None:
        """So many workers, from here on: until each site has told a finding."""
        for worker in self.workers:
            worker.end()
        self.workers = [Worker("bench.fleet", self.server) for _ in range(workers)]
        await self.break_rule(self.sites)

    async def break_rule(self, sites: Sequence[str]) -> None:
        """A rule is broken on these sites; returns once each has told it."""
        application = next(self._application)
        at = application * REPLICAS
        broken = pod(at, home(at + 1, self.sizes), time.time_ns())
        await publish(self.publisher, [change for site in sites for change in of(site, [broken])])
        for site in sites:
            await self.told(site, application)

    async def told(self, site: str, application: int) -> Worker:
        """The worker that has told that this application of the site breaks its rule; waits for it."""
        word = f"bench/app-{application}-0"
        while True:
            for worker in self.workers:
                if any(site_of(record) == site and word in record for _, record in list(worker.said)):
                    return worker
                if worker.process.poll() is not None and worker.process.returncode >= 0:
                    sys.exit("a worker ended")
            await asyncio.sleep(LOOK)

    async def storm(self) -> None:
        """Changes that break nothing, of all sites in turn, then one that does."""
        first = time.time_ns()
        changes = [
            change
            for number in range(self.sizes.changes)
            for at in [self.sizes.pods // 2 + number % (self.sizes.pods // 4)]
            for site in self.sites
            for change in of(site, [pod(at, home(at, self.sizes), first + number)])
        ]
        await publish(self.publisher, changes)
        await self.break_rule(self.sites)

    def held(self, since: float) -> list[list[str]]:
        """For each worker the sites of which it has told something since then."""
        return [
            sorted({site_of(record) for at, record in list(worker.said) if at > since} & set(self.sites))
            for worker in self.workers
        ]


async def measure(server: str, sizes: Sizes) -> None:
    """Fleets of several sizes, and a worker that dies; printed as they come."""
    kafka = settings(server).kafka
    await ensure_topics(kafka)
    async with KafkaPublisher(kafka, kafka.partitions) as publisher:
        fleet = Fleet(server, sizes, publisher)
        await fleet.fill()
        for workers in FLEETS:
            await fleet.start(workers)
            since, before = time.time(), [worker.cpu() for worker in fleet.workers]
            await fleet.storm()
            used = [worker.cpu() - spent for worker, spent in zip(fleet.workers, before, strict=True)]
            held = fleet.held(since)
            each = sum(used) / sizes.changes / len(fleet.sites)
            print(f"{workers} workers: CPU of all for a change, ms\t{each * 1e3:.3f}")
            print(f"{workers} workers: sites of the one with most\t{max(map(len, held))}")
            print(f"{workers} workers: a worker's CPU off its share of the sites, %\t{_off(used, held) * 100:.0f}")
        victim = next(worker for worker, some in zip(fleet.workers, fleet.held(0), strict=True) if some)
        orphan = fleet.held(0)[fleet.workers.index(victim)][0]
        victim.process.kill()
        killed = time.time()
        await fleet.break_rule([orphan])
        print(f"a worker killed: to a finding of its site, s\t{time.time() - killed:.1f}")
        print(f"a worker killed: beyond the session's timeout, s\t{time.time() - killed - SESSION:.1f}")
    for worker in fleet.workers:
        if worker is not victim:
            worker.end()


def _off(used: Sequence[float], held: Sequence[Sequence[str]]) -> float:
    """By how much of its share the worker is off that is off by most; without a site there is no share."""
    every = sum(map(len, held))
    shares = [(cpu / sum(used), len(some) / every) for cpu, some in zip(used, held, strict=True) if some]
    return max(abs(cpu / share - 1) for cpu, share in shares)


if __name__ == "__main__":
    main(settings, measure, Sizes(200, 2_000, 2_500))
