"""`underhost demo`: the whole pipeline over a simulated site, and its story in the terminal as it happens.

In: the name of a scenario, and where the topics live (a temporary embedded log unless given). Out: sentences, each
printed only once the pipeline's own topics show it. The demo is the operator of the simulated clusters, and their
fate. What is wrong stays until somebody has opened the page and had time to read, or until Enter; then the story goes
round again with another failure. Exit 0 at Ctrl-C, and after the first round with `--once`, which waits for nobody;
1 where a step does not come in time.
"""

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.invocation import typed
from underhost.agents.commands.output.story import Teller
from underhost.agents.demo.operator import Operator
from underhost.agents.demo.pace import READING, Pace
from underhost.agents.demo.picture import TOPICS, DemoState
from underhost.agents.demo.story import (
    Step,
    Story,
    Told,
    back_home,
    beginning,
    host_fails,
    moved_by_hand,
    node_drained,
    quorum_at_risk,
)
from underhost.agents.pipeline import event_loop
from underhost.agents.pipeline.connections import Connections
from underhost.agents.sinks.ports import Writers
from underhost.agents.worker import run_worker
from underhost.streams.admin import ensure_topics
from underhost.streams.log import structlog
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings
from underhost.streams.simulated.site import SimulatedSite

SITE = "demo"
USUAL = ("127.0.0.1", 8080)
"""Where the page is, unless told otherwise."""
BETWEEN = 10.0
"""Seconds between two rounds."""
LOOK = 0.5
"""Seconds between two looks whether a rest is over."""


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
    teller = Teller()
    with _a_log(embedded, bootstrap_servers) as file, _a_page(listen) as (address, opened, taken):
        settings = settings_of(Topics(None, bootstrap_servers, file), **_groups(scenario, address))
        _keep_quiet()
        demonstration = _Demonstration(settings, site, teller, opened, first=taken, patience=step_timeout)
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


@contextlib.contextmanager
def _a_page(listen: str | None) -> Iterator[tuple[str, socket.socket | None, str | None]]:
    """The page's address, what listens there already, and the words for it.

    Unless told otherwise it is the usual address, or a free port: a second demo must not fail of the first. It is taken
    at once, since one that begins at the same moment would find it free as well.
    """
    if listen is not None:
        yield listen, None, None
        return
    try:
        opened, words = socket.create_server(USUAL), None
    except OSError:
        opened = socket.create_server((USUAL[0], 0))
        words = "{}:{} is taken by another program, so the page gets a free port.".format(*USUAL)
    with opened:
        yield "{}:{}".format(*opened.getsockname()), opened, words


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

    def __init__(
        self,
        settings: Settings,
        site: SimulatedSite,
        teller: Teller,
        opened: socket.socket | None,
        *,
        first: str | None,
        patience: float,
    ) -> None:
        self._settings, self._site, self._teller, self._patience = settings, site, teller, patience
        self._opened, self._first = opened, first
        self._operator, self._pace = Operator(site), Pace()
        self._since = time.monotonic()
        self._page = ""

    async def run(self, *, once: bool) -> str | None:
        """Until told to stop, or the end of the story. What was missed, in one line; None where nothing was."""
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):  # before a word is said: who reads one may stop it
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        if self._first is not None:
            self._teller.say([self._first])
        self._teller.say([f"A simulated site: {self._site.scenario.title}."])  # before a second of imports

        picture = DemoState(SITE, begin=int(time.time() * 1000))
        first = self._site.scenario.operator_move
        steps = [*beginning(*first, self._settings.host_label.key), *moved_by_hand(*first)]
        story = Story(steps, picture, self._operator.do)
        await ensure_topics(self._settings.kafka)
        connections = Connections(
            self._site.sources, Writers(self._site.kubernetes, self._site.vsphere, self._site.events)
        )
        worker = asyncio.ensure_future(
            run_worker(
                self._settings,
                connections=connections,
                stop=stop,
                opened=self._opened,
                on_listening=self._say_page,
                on_visit=self._visited,
            )
        )
        telling = asyncio.ensure_future(self._tell(story, once))
        watching = asyncio.ensure_future(self._watch(story))
        with _on_enter(self._pace.go_on):
            try:
                await asyncio.wait([worker, telling, watching], return_when=asyncio.FIRST_COMPLETED)
                missed = watching.result() if watching.done() else telling.result() if telling.done() else None
                if stop.is_set():
                    self._teller.say(["Goodbye: the simulated site and its page end here."])
                return missed
            finally:
                telling.cancel()
                watching.cancel()
                stop.set()
                await asyncio.gather(telling, watching, return_exceptions=True)
                await worker

    def _visited(self) -> None:
        self._pace.visit(time.monotonic())

    def _say_page(self, address: str) -> None:
        self._page = address
        self._teller.say([f"The page: {address}"])

    # ------------------------------------------------------------------------------------------------------ the story
    async def _tell(self, story: Story, once: bool) -> None:
        """Print the steps as the topics show them; unless `once`, round after round."""
        going = asyncio.ensure_future(self._go_on(story, once))
        try:
            async for record in open_reader(self._settings.kafka).follow(TOPICS, from_beginning=True):
                self._say(story.feed(record))
                if story.next is None and story.resting is None and once:
                    return
        finally:
            going.cancel()

    def _say(self, told: Iterable[tuple[Step, Told]]) -> None:
        for step, lines in told:
            self._since = time.monotonic()
            self._teller.say(lines, step.tone)

    async def _go_on(self, story: Story, once: bool) -> None:
        """End the rests of the story, and begin its rounds."""
        rounds, number, said = cycle(self._rounds()), 1, False
        next(rounds)  # the first one is under way
        while True:
            await asyncio.sleep(LOOK)
            if story.resting is not None:
                if not said and not once:
                    self._pace.rest(time.monotonic())
                    stays = f"It stays until {self._page} has been open for {READING:.0f} s, or until you press Enter."
                    meanwhile = ["Meanwhile, in another terminal:"] if number == 1 else []
                    self._teller.say([stays, *meanwhile], "quiet", self._commands() if number == 1 else ())
                said = True
                if self._pace.left(time.monotonic()) == 0.0:
                    said, self._since = False, time.monotonic()
                    self._pace.go_on()
                    self._say(story.go_on())
            elif story.next is None and not once:
                if number == 1:
                    self._teller.say(["That is the story. It goes on until Ctrl-C, with another failure each time."])
                number += 1
                await asyncio.sleep(BETWEEN)
                self._since = time.monotonic()
                self._say(story.append([*back_home(self._operator.home), *next(rounds)]))

    def _rounds(self) -> list[list[Step]]:
        scenario = self._site.scenario
        return [
            moved_by_hand(*scenario.operator_move),
            host_fails(scenario.failing_host, self._operator.home),
            node_drained(scenario.drained_node),
            quorum_at_risk(scenario.quorum, *scenario.quorum_move),
        ]

    def _commands(self) -> list[str]:
        """What shows the same from another terminal, as it can be typed there."""
        kafka, program = self._settings.kafka, shlex.quote(typed(sys.argv[0], os.environ))
        where = f"--bootstrap-servers {kafka.bootstrap_servers}"
        if not kafka.bootstrap_servers:
            where = f"--embedded {shlex.quote(str(kafka.embedded))}"
        return [
            f"{program} violations {where}",
            f"{program} topics {where}",
            f"{program} fail --each host --server {self._page.rstrip('/')}",
        ]

    async def _watch(self, story: Story) -> str:
        """Wait for a step that is late, and return what it waited for."""
        while True:
            step = story.next if story.resting is None else None
            left = self._since + self._patience - time.monotonic() if step is not None else self._patience
            if step is not None and left <= 0:
                return f"{step.waits_for} did not come within {self._patience:g} s"
            await asyncio.sleep(min(max(left, LOOK), self._patience))


@contextlib.contextmanager
def _on_enter(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` at every line that is typed; where nothing can be typed, nothing happens."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if os.read(sys.stdin.fileno(), 4096):
            act()
        else:
            loop.remove_reader(sys.stdin)

    try:
        loop.add_reader(sys.stdin, read)
    except (OSError, ValueError, AttributeError):  # a file, or nothing at all
        yield
        return
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)
