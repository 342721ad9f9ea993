"""A worker over a large site: its first start, its restarts after a `kill -9`, and then from a write to the finding.

`bench.cluster.large PARTS SERVER [NODES APPS HOSTS CHANGES ROUNDS]`. Prints `name<TAB>value` lines, those of each round
behind `run`. A real API server has 5,000 nodes and 150,000 pods of 5.8 KB (`support.sites.real_size`), the topics are
on an Apache Kafka. Each round's first start finds a broker without topics, and one restart follows it. Then a day of
CHANGES is added to the topics (`history`), and each round has a restart after that day; the last worker goes on, and
each round writes to the server for a minute (`latency`). Of a restart: CPU, seconds and memory until it is ready.
"""

import asyncio
import random
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path

from bench.cluster.history import add_history, forget
from bench.cluster.latency import guards, measure, some_pods
from bench.cluster.worker import SITE, command, objects, server_with, start
from bench.rounds import tell
from support.processes.ports import free_ports
from support.sites.large import LargeSite

from underhost.streams.settings.kafka import KafkaSettings

AFTER_A_DAY = "restart after a day"


def main() -> None:
    """Measure and print."""
    parts, server = Path(sys.argv[1]), sys.argv[2]
    nodes, apps, hosts, changes, rounds = map(int, sys.argv[3:8] or ("5000", "7500", "512", "5000000", "1"))
    site, pick = LargeSite(nodes, apps, hosts), random.Random(3)
    stored = chain(objects(site), guards(site))
    with tempfile.TemporaryDirectory() as name, server_with(Path(name), parts, stored) as (kube, size):
        folder, [web] = Path(name), free_ports(1)
        underhost = command(folder, kube, server, site, web)
        found: list[dict[str, float]] = [{} for _ in range(rounds)]

        def started(title: str, figures: dict[str, float]) -> "subprocess.Popen[bytes]":
            process, used = start(underhost, folder / "worker.log", web)
            figures |= {f"a large site: {title}, {what}": value for what, value in used.items()}
            return process

        for figures in found:
            forget(server, SITE)
            for title in ("first start", "restart"):
                end(started(title, figures))
        history = add_history(server, SITE, KafkaSettings().partitions, changes)
        for figures in found[1:]:
            end(started(AFTER_A_DAY, figures))
        last = started(AFTER_A_DAY, found[0])
        try:
            for figures in found:
                figures |= asyncio.run(measure(kube, server, last.pid, some_pods(site, pick)))
        finally:
            end(last)
    print(f"a large site: its objects, MB\t{size / 1e6:.0f}")
    print(f"a day: changes\t{history.changes}")
    print(f"a day: records of the changelog then\t{history.changelog}")
    tell(found)


def end(process: "subprocess.Popen[bytes]") -> None:
    """As a machine that fails ends it."""
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
