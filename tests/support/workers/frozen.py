"""A worker that freezes in the middle of a write: it has read the node, and is stopped before it writes the label.

`support.workers.frozen JOURNAL BOOTSTRAP` runs until it is killed. Each host that it labels a node with is a line of
the journal; what the worker says is on standard output. It stops itself (SIGSTOP) at the first node that it reads, and
goes on at a SIGCONT as if no time had passed; meanwhile the node's VM has moved from h1 to h2. Run by tests.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from support.fakes.pipeline import FakeCluster, FakeEvaluator

from underhost.agents.worker import run_worker
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.labels import CAPV_HOST_KEY
from underhost.streams.settings.model import Settings
from underhost.streams.settings.sinks import SinkSettings

SESSION = 6.0


class FreezingCluster(FakeCluster):
    """A fake cluster whose first answer comes with a stop of the whole process."""

    journal: Path
    frozen = False

    async def node_labels(self, node: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """See `ports.KubernetesWriter`."""
        read = await super().node_labels(node)
        if not self.frozen:
            self.frozen = True
            os.kill(os.getpid(), signal.SIGSTOP)
            self.move("n1", "h2")  # it learns of it now, and has decided before
        return read

    async def apply_node_labels(
        self, node: str, uid: str, labels: Mapping[str, str | None], *, force: bool = True
    ) -> None:
        """See `ports.KubernetesWriter`."""
        await super().apply_node_labels(node, uid, labels, force=force)
        with self.journal.open("a") as file:
            file.write(f"{labels[CAPV_HOST_KEY]}\n")


def settings(bootstrap: str) -> Settings:
    """One partition: the site is where its only partition is."""
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=bootstrap, partitions=1, session_timeout=SESSION),
        vsphere=VSphereSettings(simulated="of the test"),
        sinks=SinkSettings(labels=True),
    )


def main(journal: Path, bootstrap: str) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    cluster = FreezingCluster()
    cluster.journal = journal
    cluster.node("n1", "h1")
    asyncio.run(
        run_worker(settings(bootstrap), connections=cluster.connections(), evaluator=FakeEvaluator(), web=False)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
