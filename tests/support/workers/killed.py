"""A worker that can be killed: its cluster is kept in a journal, and it stops for ever in the middle of a write.

`support.workers.killed FOLDER BOOTSTRAP|- STALL` runs until every pod is bound and every node labelled, then exits: 0.
STALL is `before:N` or `after:N` (the Nth write is not made, or is made and never answered) or `never`. Run by tests.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from support.fakes.pipeline import FakeCluster, FakeEvaluator

from underhost.agents.worker import run_worker
from underhost.streams.ports import Outgoing
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings
from underhost.streams.settings.sinks import SinkSettings

NODES = 6
STALLED = "stalled"


class JournalCluster(FakeCluster):
    """A fake cluster whose writes are lines of a file, done again at its start: a real one outlives the worker, too."""

    journal: Path
    stall: str = "never"
    writes: int = 0

    def restore(self) -> None:
        """Make what the journal says."""
        for line in self.journal.read_text().splitlines() if self.journal.exists() else ():
            entry = json.loads(line)
            if entry["kind"] == "bind":
                asyncio.run(FakeCluster.bind_pod(self, "shop", entry["name"], f"pod-{entry['name']}", entry["node"]))
            else:
                asyncio.run(FakeCluster.apply_node_labels(self, entry["name"], "", entry["labels"]))

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """See `ports.KubernetesWriter`."""
        await self._stall("before")
        await super().bind_pod(namespace, name, uid, node, labels)
        await self._write({"kind": "bind", "name": name, "node": node})

    async def apply_node_labels(
        self, node: str, uid: str, labels: Mapping[str, str | None], *, force: bool = True
    ) -> None:
        """See `ports.KubernetesWriter`."""
        await self._stall("before")
        await super().apply_node_labels(node, uid, labels, force=force)
        await self._write({"kind": "label", "name": node, "labels": dict(labels)})

    async def _write(self, entry: dict[str, object]) -> None:
        with self.journal.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        self.writes += 1
        await self._stall("after")

    async def _stall(self, when: str) -> None:
        if self.stall == f"{when}:{self.writes}":
            self.stall = STALLED
            print("stalled", flush=True)
        if self.stall == STALLED:  # the others as well: a slow machine must not let them finish before the kill
            await asyncio.Event().wait()


def settings(folder: Path, bootstrap: str) -> Settings:
    """Where the topics are: Kafka, or a file of the folder."""
    if bootstrap == "-":
        kafka = KafkaSettings(embedded=folder / "log.db", partitions=4)
    else:
        kafka = KafkaSettings(bootstrap_servers=bootstrap, partitions=4, session_timeout=6)
    return Settings(
        kafka=kafka, vsphere=VSphereSettings(simulated="of the test"), sinks=SinkSettings(labels=True, bindings=True)
    )


def main(folder: Path, bootstrap: str, stall: str) -> None:
    cluster = JournalCluster()
    cluster.journal, cluster.stall = folder / "journal", stall
    for number in range(NODES):
        cluster.node(f"n{number}", f"h{number}")
        cluster.pod(f"db-{number}", app="db")
    cluster.restore()
    stop = asyncio.Event()

    def saw(record: Outgoing) -> None:
        if len(cluster.bound) == len(cluster.labels) == NODES:
            stop.set()

    asyncio.run(
        run_worker(
            settings(folder, bootstrap),
            connections=cluster.connections(),
            evaluator=FakeEvaluator(),
            on_event=saw,
            stop=stop,
            web=False,
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
