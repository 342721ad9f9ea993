"""The worker under test as a program of the seeded loop: the real one, started, killed, frozen and stopped.

In: a site, faults, the loop. Out: a worker that is always started again, the pipeline that runs now, and what a
run did after it had ended, which is a violation.
"""

import asyncio
import random
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

from support.simulation.operated import OperatedSite
from trust.simulation.api import ApiServer
from trust.simulation.faults import Faults, UnreliablePublisher, UnreliableReader, UnreliableWriter
from trust.simulation.loop import PROGRAM, BesideInTurns, SeededLoop
from trust.simulation.memory import MemoryFile
from trust.simulation.rival import Rival
from trust.simulation.server import Server
from trust.simulation.town import Moving
from trust.simulation.vcenter import FailingMover, VCenter
from trust.simulation.writes import Writer, Writes

from underhost.agents import worker
from underhost.agents.pipeline import run as pipeline_run
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.decide import self_check
from underhost.agents.pipeline.dispatch.dispatcher import Dispatcher
from underhost.agents.pipeline.run import Pipeline
from underhost.agents.sinks.moves import planning
from underhost.agents.sinks.ports import Writers
from underhost.schemas.commands import MOVE
from underhost.schemas.errors import BackendError
from underhost.schemas.records import Action, Outcome
from underhost.streams.kubernetes.watcher import KubernetesSource
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.publish import FaustPublisher
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings
from underhost.streams.settings.sinks import EvictionSettings, SinkSettings
from underhost.streams.vsphere.watcher import VSphereSource

SITE = "town"
NO_MOVER = Moving()
RUN: ContextVar[Any] = ContextVar("run", default=None)
"""The run of the pipeline that a callback belongs to."""
COMMAND: ContextVar[str] = ContextVar("command", default="")
"""The id of the command that a callback carries out."""


def settings(moving: Moving) -> Settings:
    """Every sink writes, but the mover only where the seed has one; an evictor that need not wait for long."""
    sinks = SinkSettings(labels=True, pod_labels=True, bindings=True, drs_rules=True, evictions=True, events=True)
    return Settings(
        site=SITE,
        kafka=KafkaSettings(embedded=MemoryFile.path, partitions=1),
        kubernetes=KubernetesSettings(simulated="town"),
        vsphere=VSphereSettings(simulated="town"),
        sinks=sinks.model_copy(update={"moves": moving.on, "drs_rules": moving.drs_rules}),
        evictions=EvictionSettings(wait=10.0, pause=60.0),
        moves=moving.settings,
    )


class WatchedPipeline(Pipeline):
    """The pipeline, which says when a run of it begins and has ended."""

    newest: "WatchedPipeline | None" = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.program, self.began, self.is_over = PROGRAM.get(), asyncio.get_running_loop().time(), False
        WatchedPipeline.newest = self

    async def run(self) -> None:
        """Until cancelled; see `Pipeline.run`."""
        RUN.set(self)
        await super().run()

    async def close(self) -> None:
        """End everything; nothing may be written by this run from then on."""
        await super().close()
        self.is_over = True


def decision_of(action: Action) -> str:
    """The command's id; of a vMotion that is ordered once more after a restart that of the decision."""
    if action.kind != MOVE or not isinstance(at := action.desired.get("at"), str):
        return action.id
    return f"{action.target} decided at {at}"


class WatchedDispatcher(Dispatcher):
    """The dispatcher, under whose eyes each write knows its command."""

    async def _apply(self, action: Action, message: Any) -> Outcome:
        COMMAND.set(decision_of(action))
        return await super()._apply(action, message)


ENDS_WITHIN = 15.0
"""Seconds in which a worker that is told to end has ended: what it waits for, added up."""
KILL_AFTER = (10, 100, 1000)
"""Steps within which a kill follows what it waits for."""
DOWN = (3.0, 3.0, 3.0, 60.0)
"""Seconds, at most, until a worker that has ended is started again."""


class Counted(dict[tuple[str, str], dict[str, Any]]):
    """The Events that people are told, which count their changes."""

    changes = 0

    def __setitem__(self, key: tuple[str, str], value: dict[str, Any]) -> None:
        super().__setitem__(key, value)
        self.changes += 1


class Programs:
    """The workers of one seed, one after another on one log.

    Attributes:
        number: of the newest program. writes: what all of them wrote.
        violations: of their ends, a line each.
    """

    def __init__(
        self,
        loop: SeededLoop,
        site: OperatedSite,
        file: MemoryFile,
        faults: Faults,
        dice: random.Random,
        rival: Rival | None = None,
        moving: Moving = NO_MOVER,
    ) -> None:
        self._loop, self._site, self._file, self._faults, self._dice = loop, site, file, faults, dice
        self.number, self.violations, self._rival, self._moving = 0, list[str](), rival, moving
        self._ended, self._kill_after = True, ""
        WatchedPipeline.newest = None
        self._context = copy_context()
        self.api = ApiServer(site.kubernetes.store, faults)
        self.vcenter = VCenter(site.vsphere, faults)
        self.writes = Writes(site, loop.time, self.api, self.vcenter)
        self._told = site.events.held = Counted(site.events.held)
        self._killed, self._stop = asyncio.Event(), asyncio.Event()
        loop.on_kill, faults.listener = self.kill, self.happened
        self.api.install()
        worker.Pipeline = WatchedPipeline  # type: ignore[misc]
        pipeline_run.Dispatcher = WatchedDispatcher  # type: ignore[misc]
        pipeline_run.FaustPublisher = self._publisher  # type: ignore[assignment,misc]
        planning.Beside, BesideInTurns.dice = BesideInTurns, dice  # type: ignore[misc,assignment]
        self_check.in_background = lambda work, name: loop.run_in_executor(None, work)  # type: ignore[assignment]

    @property
    def servers(self) -> list[Server]:
        """Whom they watch."""
        return [self.api, self.vcenter]

    @property
    def is_deaf(self) -> bool:
        """Whether one of them is silent."""
        return any(server.silent_since is not None for server in self.servers)

    @property
    def pipeline(self) -> WatchedPipeline:
        """The run that is there now, or was last."""
        assert WatchedPipeline.newest is not None
        return WatchedPipeline.newest

    # ---------------------------------------------------------------------------------------------- what befalls them
    def kill(self) -> None:
        """As SIGKILL, now."""
        self._faults.note("worker killed")
        self._loop.kill(self.number)
        self._killed.set()

    def kill_within(self, steps: int) -> None:
        """Kill it at one of its next steps."""
        self._loop.kill_at = self._loop.steps + self._dice.randint(1, steps)

    def kill_after(self, what: str) -> None:
        """Kill it at one of the steps that follow the next record of this topic, or the next fault of this name."""
        self._kill_after = what

    def happened(self, what: str) -> None:
        """A record of this topic is on disk, or this fault has struck."""
        if what == self._kill_after:
            self._kill_after = ""
            self.kill_within(self._dice.choice(KILL_AFTER))

    def spare(self) -> None:
        """No kill that is planned comes."""
        self._kill_after, self._loop.kill_at = "", None

    def rebalance(self) -> None:
        """Its consumer group is assigned anew: here, all of it to the same worker."""
        pipeline = WatchedPipeline.newest
        if self._ended or pipeline is None or pipeline.program != self.number:
            return
        consumer = pipeline.app.consumer
        if consumer.started and not consumer.should_stop:
            self._faults.note("group rebalanced")
            self._context.run(consumer.add_future, consumer._rebalance())

    async def terminate(self) -> None:
        """As SIGTERM: it ends by itself, in time."""
        self._faults.note("worker told to end")
        self.spare()
        number = self.number
        self._stop.set()
        await asyncio.sleep(ENDS_WITHIN)
        if self.number == number and not self._ended:
            self.violations.append(f"a worker that was told to end has not ended after {ENDS_WITHIN:.0f} s")
            self.kill()

    async def suspend(self, seconds: float) -> None:
        """As SIGSTOP and SIGCONT: the worker stands still while the world goes on."""
        self._faults.note("worker frozen")
        self._loop.freeze(self.number)
        await asyncio.sleep(seconds)
        self._loop.thaw()

    async def run(self) -> None:
        """Until cancelled: start a worker, and another one where it has ended, however that came."""
        while True:
            self.number, self._ended = self.number + 1, False
            self._killed, self._stop = asyncio.Event(), asyncio.Event()
            context = self._context = copy_context()
            context.run(PROGRAM.set, self.number)
            task = self._loop.create_task(worker.run_worker(settings(self._moving), **self._options()), context=context)
            killed = asyncio.ensure_future(self._killed.wait())
            await asyncio.wait([task, killed], return_when=asyncio.FIRST_COMPLETED)
            killed.cancel()
            self._file.crashed()
            self._ended = True
            if task.done() and (error := task.exception()) is not None and not isinstance(error, BackendError):
                self.violations.append(f"the worker ended with {type(error).__name__}: {error}")
            self._faults.trace.note("worker ended", self.number, task.done())
            await asyncio.sleep(self._dice.uniform(0.05, self._dice.choice(DOWN)))

    def _options(self) -> dict[str, Any]:
        leases = self._rival.origin if self._rival is not None else None
        return {"connections": Connections(self._sources, self._writers(), leases), "stop": self._stop, "web": False}

    # -------------------------------------------------------------------------------------------------- the outside
    def _publisher(self, app: Any) -> UnreliablePublisher:
        return UnreliablePublisher(FaustPublisher(app), self._faults)

    def _sources(self, site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
        unreliable: Any = UnreliableReader(reader, self._faults)
        kubernetes = KubernetesSource(site, KubernetesSettings(), publisher, unreliable)
        return [kubernetes, VSphereSource(site, VSphereSettings(), publisher, unreliable, connect=self.vcenter.log_in)]

    def _writers(self) -> Writers:
        site, told, mover = self._site, self._told, FailingMover(self._site.vsphere, self._faults)

        def of(writer: Any, version: Any) -> Any:
            return UnreliableWriter(writer, self._faults, version, self._asked, self._judge)

        return Writers(
            kubernetes=of(site.kubernetes, lambda: site.kubernetes.store.version),
            drs=of(site.vsphere, lambda: site.vsphere.store.version),
            events=of(site.events, lambda: (site.kubernetes.store.version, told.changes)),
            moves=of(mover, lambda: mover.version) if self._moving.on else None,
        )

    def _asked(self) -> None:
        """A request is on its way."""
        self.writes.asked(COMMAND.get())

    def _judge(self, name: str, args: tuple[Any, ...]) -> Callable[[], None]:
        """A request is about to be made; the answer is called if it has changed a cluster."""
        program, run, command = PROGRAM.get(), RUN.get(), COMMAND.get()
        wrong = self.writes.before(command, name, args)
        sources = {source.name for source in run.watchers.sources} if run is not None else ()
        anothers = self._rival.wrong(name, sources) if self._rival is not None else ""

        def made() -> None:
            self._faults.trace.note("write", program, command, name, args)
            fault = f"program {program}, which has ended" if program != self.number else ""
            fault = fault or ("a run that has ended" if run is None or run.is_over else "") or anothers
            self.writes.made(Writer(command, fault, run.began if run is not None else 0.0), name, args, wrong)

        return made
