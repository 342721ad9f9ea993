"""`underhost demo`: the whole pipeline over a simulated site, and its story in the terminal as it happens.

In: the name of a scenario, and where the topics live (a temporary embedded log unless given). Out: sentences, each
printed only once the pipeline's own topics show it. The demo is the operator of the simulated vCenter and nothing else.
Exit 0 at Ctrl-C, and after the story with `--once`; 1 where a step does not come in time.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import structlog
import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.story import Teller
from underhost.agents.demo.picture import TOPICS, DemoState
from underhost.agents.demo.story import Story, happened, move_and_mend, status
from underhost.agents.pipeline import event_loop
from underhost.agents.pipeline.connections import Connections
from underhost.agents.sinks.ports import Writers
from underhost.agents.worker import run_worker
from underhost.streams.admin import ensure_topics
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings
from underhost.streams.simulated.site import SimulatedSite

SITE = "demo"
USUAL = ("127.0.0.1", 8080)
"""Where the page is, unless told otherwise."""
STATUS_SECONDS = 60.0
"""Between two lines that say how things are, after the story."""


def handle(
    scenario: str,
    once: bool,
    embedded: Path | None,
    bootstrap_servers: str | None,
    listen: str | None,
    seed: int | None,
    step_timeout: float,
) -> None:
    """Run the pipeline over a simulated site and tell its story."""
    site = SimulatedSite(scenario, seed=time.time_ns() if seed is None else seed)
    with _a_log(embedded, bootstrap_servers) as file:
        settings = settings_of(Topics(None, bootstrap_servers, file), **_groups(scenario, listen or _free()))
        _keep_quiet()
        demonstration = _Demonstration(settings, site, Teller(), patience=step_timeout)
        missed = event_loop.run(demonstration.run(once=once))
    if missed is not None:
        typer.echo(f"error: {missed}", err=True)
        raise typer.Exit(1)


@contextlib.contextmanager
def _a_log(embedded: Path | None, bootstrap_servers: str | None) -> Iterator[Path | None]:
    """The file of the embedded log: the given one, or one that is gone afterwards; None on Kafka."""
    if embedded is not None or bootstrap_servers is not None:
        yield embedded
        return
    with tempfile.TemporaryDirectory(prefix="underhost-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "underhost.db"


def _free() -> str:
    """The usual address of the page, or any free port: a second demo must not fail of the first."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(USUAL)
        except OSError:
            return "127.0.0.1:0"
    return "{}:{}".format(*USUAL)


def _groups(scenario: str, listen: str) -> dict[str, Any]:
    """The settings of a demo: its site is simulated, so its sinks may write."""
    return {
        "site": SITE,
        "kubernetes": {"simulated": scenario},
        "vsphere": {"simulated": scenario},
        "sinks": {"labels": True, "bindings": True, "drs_rules": True, "events": True},
        "web": {"listen": listen},
    }


def _keep_quiet() -> None:
    """Only what went wrong is logged, on standard error: the terminal is the story's."""
    logging.basicConfig(
        level=logging.ERROR, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True
    )
    for library in ("aiokafka", "faust", "mode"):  # what of their troubles matters comes as an error of ours
        logging.getLogger(library).setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


class _Demonstration:
    """One run of the demo."""

    def __init__(self, settings: Settings, site: SimulatedSite, teller: Teller, *, patience: float) -> None:
        self._settings, self._site, self._teller, self._patience = settings, site, teller, patience
        self._since = time.monotonic()

    async def run(self, *, once: bool) -> str | None:
        """Until told to stop, or the end of the story. What was missed, in one line; None where nothing was."""
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        self._teller.say([f"A simulated site: {self._site.scenario.title}."])  # before a second of imports

        picture = DemoState(SITE, begin=int(time.time() * 1000))
        story = Story(move_and_mend(*self._site.scenario.operator_move, self._settings.host_label.key), picture)
        await ensure_topics(self._settings.kafka)
        connections = Connections(
            self._site.sources, Writers(self._site.kubernetes, self._site.vsphere, self._site.events)
        )
        worker = asyncio.ensure_future(
            run_worker(self._settings, connections=connections, stop=stop, on_listening=self._say_page)
        )
        telling = asyncio.ensure_future(self._tell(story, once))
        watching = asyncio.ensure_future(self._watch(story))
        try:
            await asyncio.wait([worker, telling, watching], return_when=asyncio.FIRST_COMPLETED)
            return watching.result() if watching.done() else telling.result() if telling.done() else None
        finally:
            telling.cancel()
            watching.cancel()
            stop.set()
            await asyncio.gather(telling, watching, return_exceptions=True)
            await worker

    def _say_page(self, address: str) -> None:
        self._teller.say([f"The page: {address}"])

    async def _tell(self, story: Story, once: bool) -> None:
        """Print the steps as the topics show them, then, unless `once`, what else becomes of findings."""

        told = 0
        async for record in open_reader(self._settings.kafka).follow(TOPICS, from_beginning=True):
            if story.next is None:
                story.picture.apply(record)
                for line in happened(story.picture, told):
                    self._teller.say([line])
            for step, lines in story.feed(record) if story.next is not None else ():
                self._since = time.monotonic()
                self._teller.say(lines, step.tone)
                if step.move is not None:
                    self._site.vsphere.move_vm(*step.move)
                if story.next is None and once:
                    return
                if story.next is None:
                    self._teller.say(["That is the story. The pipeline goes on until Ctrl-C.", *self._hints()])
            told = len(story.picture.events)

    async def _watch(self, story: Story) -> str:
        """Wait for a step that is late, and return what it waited for; after the story say now and then how it is."""

        while (step := story.next) is not None:
            left = self._since + self._patience - time.monotonic()
            if left <= 0:
                return f"{step.waits_for} did not come within {self._patience:g} s"
            await asyncio.sleep(left)
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            self._teller.say([status(story.picture)], "quiet")

    def _hints(self) -> list[str]:
        kafka = self._settings.kafka
        where = f"--bootstrap-servers {kafka.bootstrap_servers}"
        if not kafka.bootstrap_servers:
            where = f"--embedded {kafka.embedded}"
        return [f"To look from another terminal: underhost topics {where}"]
