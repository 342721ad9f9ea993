"""A worker that writes down what it was told is in the topics.

`trust.jepsen.worker CONFIG JOURNAL` runs until a signal. In: a configuration as of `underhost run`. Out: a line of the
journal for each acknowledged record, of its watchers and of its deciders. A line is written after the acknowledgement:
what a killed worker was told last may be missing there, and nothing is there that it was not told.
"""

import asyncio
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from trust.jepsen.checks import Sent

from underhost.agents.pipeline.connections import connect
from underhost.agents.pipeline.roles import ALL
from underhost.agents.worker import run_worker
from underhost.streams.ports import Outgoing, Publisher
from underhost.streams.settings.load import load

SEPARATOR = "\t"


class Journal(Publisher):
    """Publishes for a watcher, and writes down what was acknowledged."""

    def __init__(self, inner: Publisher, file: TextIO) -> None:
        self._inner, self._file = inner, file

    async def publish(self, *records: Outgoing) -> None:
        """See `Publisher.publish`."""
        await self._inner.publish(*records)
        for record in records:
            write(self._file, record)


def write(file: TextIO, record: Outgoing) -> None:
    """One line, in the file before this returns."""
    file.write(SEPARATOR.join((record.topic.name, record.key, record.event_id)) + "\n")


def read(journal: Path) -> list[Sent]:
    """What the worker was told, in order; a line that a kill has cut is none."""
    lines = journal.read_text().split("\n")[:-1] if journal.exists() else []
    return [Sent(journal.stem, *line.split(SEPARATOR)) for line in lines if line.count(SEPARATOR) == 2]


async def main(config: Path, journal: Path) -> None:
    """Run until SIGTERM."""
    settings = load(config, {})
    made = await connect(settings, ALL)
    with journal.open("a", buffering=1) as file:
        sources = made.sources
        connections = replace(
            made, sources=lambda site, publisher, reader: sources(site, Journal(publisher, file), reader)
        )
        await run_worker(settings, connections=connections, on_event=lambda record: write(file, record))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
