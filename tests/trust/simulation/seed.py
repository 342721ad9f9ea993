"""One seed, from its site to its verdict: a story of acts and faults, then calm, then the invariants.

In: the number of the seed. Out: a `Verdict`: what was violated, how much happened, and the hash of all that did.
"""

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.simulation.operated import OperatedSite
from trust.simulation import clock as machine
from trust.simulation import order, town
from trust.simulation.faults import Faults, Moods
from trust.simulation.invariants import violations
from trust.simulation.loop import SeededLoop, Stuck
from trust.simulation.memory import MemoryFile
from trust.simulation.rival import ONE_IN, Rival
from trust.simulation.trace import Trace
from trust.simulation.worker import SITE, Programs

from underhost.schemas.keys import parse_key
from underhost.schemas.topics import NODES, PODS, TOPICS
from underhost.streams.simulated.scenarios import SCENARIOS
from underhost.streams.simulated.timeline import Clock

EVENTS, FAULTS = 500, 5
"""Records of the topics and faults that each seed has at least."""
MEAN_PAUSE = 0.6
"""Seconds between two acts, on average."""
LONG_STORY, LONGEST_STORY = 900.0, 1800.0
"""Seconds after which a story goes on with ordinary moods, as its own let hardly anything happen; the most it takes."""
QUIET, PATIENCE, LONGEST_CALM = 12.0, 75.0, 900.0
"""Seconds without a change after which a site is judged; after which nothing is due any more, as no pause of the
pipeline is longer, so that what is wrong then stays wrong; and the most that it may take until then."""
KILL_WITHIN = 3000
"""Steps within which a planned kill comes."""
CALMER = 0.3
"""The mood of vMotions that people begin where there is a mover: if all VMs move all the time, it has nothing to do."""
WORST = 3.0
"""The worst mood of what befalls a worker as a whole: it has to get somewhere between two ends."""


@dataclass
class Verdict:
    """What became of one seed.

    Attributes:
        violations: what was violated, one line each; none is good.
        events, faults: records of the topics, and faults by what they were.
        trace: the hash of all that happened.
        seconds: of processor time.
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    events: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    trace: str = ""
    seconds: float = 0.0


class _WorldClock(Clock):
    """The time of the world, which no jump of the worker's wall clock changes."""

    def __init__(self, clock: machine.VirtualClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.true_time


class Story:
    """One seed's world. `run` is the whole story."""

    def __init__(self, seed: int, *, loud: bool = False) -> None:
        self.seed, self.clock = seed, machine.begin(seed)
        order.begin()
        self.trace = Trace(self.clock, loud=loud)
        self.loop = SeededLoop(self.clock, self._dice("threads"))
        self.faults = Faults(self._dice("faults"), Moods(self._dice("moods")), self.trace)
        self._fate = self._dice("fate")
        SCENARIOS["town"] = town.scenario(self._dice("town"))
        self._moving = town.moving(seed, self._dice("moving"))
        moods = Moods(self._dice("acts"), town.MOODS)
        if self._moving.on:
            moods["vmotion"] = CALMER
        self._acts = town.Acts(moods)
        self.site = OperatedSite("town", seed=seed, clock=_WorldClock(self.clock), vmotion=self._moving.vmotion)
        self.site.drs.held = self._moving.on and not self._moving.drs_rules
        self.file = MemoryFile(f"seed-{seed}", self._recorded)
        self._rival = None if seed % ONE_IN else Rival(SITE, self.faults, self._dice("rival"))
        self.events, self._last = 0, 0.0
        self._topics: dict[int, str] = {}

    def _dice(self, of: str) -> random.Random:
        return machine.RealRandom(f"{self.seed}/{of}")

    def _recorded(self, row: int, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        """A record is on disk."""
        number = row >> 40
        if number not in self._topics:
            self._topics = self.file.topics()
        topic = self._topics[number]
        self.trace.note("record", topic, row, timestamp, key, value)
        if topic.startswith("underhost.") and b"/listed/" not in (key or b""):
            self.events, self._last = self.events + 1, self.clock.now
            self._programs.happened(topic)

    def run(self) -> Verdict:
        """Everything. What it raises is a fault of the harness."""
        began = machine.processor_seconds()
        self.file.install()
        asyncio.set_event_loop(self.loop)
        found: list[str]
        try:
            found = self.loop.run_until_complete(self._tell())
        except Stuck as error:
            found = [f"the simulation stands still: {error}"]
        finally:
            self.loop.kill(self._programs.number)
            self.loop.close()
            asyncio.set_event_loop(None)
            self.file.close()
        took = machine.processor_seconds() - began
        return Verdict(self.seed, found, self.events, dict(self.faults.struck), self.trace.digest, took)

    async def _tell(self) -> list[str]:
        dice = self._dice("programs")
        self._programs = Programs(self.loop, self.site, self.file, self.faults, dice, self._rival, self._moving)
        others = [asyncio.ensure_future(self._programs.run()), asyncio.ensure_future(self._drive())]
        if self._rival is not None:
            others.append(asyncio.ensure_future(self._rival.run()))
        began, befallen = self.clock.now, asyncio.ensure_future(self._misfortune())
        is_ordinary = False
        while self.events < EVENTS or self.faults.struck.total() < FAULTS or self._programs.is_deaf:
            await asyncio.sleep(self._fate.expovariate(1 / MEAN_PAUSE))
            self.trace.note("act", self._acts.happen(self.site, self._fate))
            if befallen.done():
                befallen.result()
                befallen = asyncio.ensure_future(self._misfortune())
            if self.clock.now - began > LONG_STORY and not is_ordinary:
                is_ordinary = True
                self.faults.moods, self._acts = Moods(self._fate, [1.0]), town.Acts(Moods(self._fate, [1.0]))
            if self.clock.now - began > LONGEST_STORY:
                return [f"only {self.events} records and {self.faults.struck.total()} faults in {LONGEST_STORY:.0f} s"]
        await befallen
        self.faults.on = False
        self._programs.spare()
        for server in self._programs.servers:
            server.speak()
        town.calm(self.site)
        others.append(asyncio.ensure_future(self._accept()))
        found = await self._calm(QUIET) or (self._wrong() and await self._calm(PATIENCE)) or self._wrong()
        del others
        return found + self._programs.violations + self._programs.writes.violations

    def _wrong(self) -> list[str]:
        """What is not as it has to be now."""
        return violations(self._programs.pipeline, self.site, self.file, contended=self._rival is not None)

    async def _misfortune(self) -> None:
        """Now and then something befalls the worker as a whole."""
        moods = self.faults.moods
        shares = {name: share * min(WORST, moods[name]) for name, (share, _) in MISFORTUNES.items()}
        [name] = self._fate.choices([*shares, ""], [*shares.values(), max(0.0, 1.0 - sum(shares.values()))])
        if name:
            await MISFORTUNES[name][1](self)

    async def kill(self) -> None:
        """At any step."""
        self._programs.kill_within(KILL_WITHIN)

    async def kill_after(self) -> None:
        """Right after a record of some topic, or after a fault."""
        topics = [topic.name for topic in TOPICS]
        self._programs.kill_after(self._fate.choice([*topics, *sorted(self.faults.struck)]))

    async def terminate(self) -> None:
        """By a signal that it hears."""
        await self._programs.terminate()

    async def suspend(self) -> None:
        """By a signal that it does not hear."""
        await self._programs.suspend(self._fate.uniform(0.5, 40.0))

    async def rebalance(self) -> None:
        """As Kafka's coordinator may at any time."""
        self._programs.rebalance()

    async def be_late(self) -> None:
        """A former owner's record comes now."""
        topic = self._fate.choice((PODS, NODES))
        if self.file.send_late(self._fate, topic.name, self._exists):
            self.faults.note("record of a former owner came late")

    async def jump(self) -> None:
        """Its wall clock is wrong from now on, or right again."""
        self.faults.note("wall clock jumped")
        self.clock.skew += self._fate.choice((-1, 1)) * self._fate.choice((0.5, 30.0, 3600.0))

    async def be_silent(self) -> None:
        """A server answers nobody who watches; for longer, perhaps, than the worker may write."""
        self._fate.choice(self._programs.servers).be_silent(self._fate.uniform(30.0, 150.0))

    async def _accept(self) -> None:
        """A person looks, and says that what is missing is gone."""
        while True:
            if self._programs.pipeline.watchers.accept():
                self.trace.note("act", "resumed by hand")
            await asyncio.sleep(5.0)

    def _exists(self, key: str) -> bool:
        """Whether there is an object of this key in Kubernetes now."""
        _, kind, namespace, name = parse_key(key) if "/listed/" not in key else ("", "", "", "")
        return self.site.kubernetes.store.get(kind, name, namespace) is not None

    async def _drive(self) -> None:
        """The world goes on, whether or not a worker looks."""
        changed, timeline = asyncio.Event(), self.site.timeline
        timeline.planned.append(changed.set)
        while True:
            changed.clear()
            timeline.run_due()
            await timeline.clock.wait(changed, timeline.next_due())

    async def _calm(self, quiet: float) -> list[str]:
        """Until nothing has changed for so many seconds; what does not come to rest is a violation."""
        began, stores = self.clock.now, (self.site.kubernetes.store, self.site.vsphere.store)
        versions, self._last = (0, 0), self.clock.now
        while self.clock.now - self._last < quiet:
            await asyncio.sleep(1.0)
            if (now := tuple(store.version for store in stores)) != versions:
                versions, self._last = now, self.clock.now
            if self.clock.now - began > LONGEST_CALM:
                return [f"nothing comes to rest within {LONGEST_CALM:.0f} s"]
        return []


MISFORTUNES: Mapping[str, tuple[float, Callable[[Story], Awaitable[None]]]] = {
    "kill": (1 / 60, Story.kill),
    "kill after": (2 / 60, Story.kill_after),
    "end": (1 / 60, Story.terminate),
    "freeze": (1 / 60, Story.suspend),
    "rebalance": (1 / 60, Story.rebalance),
    "late record": (4 / 60, Story.be_late),
    "clock": (1 / 60, Story.jump),
    "silence": (1 / 200, Story.be_silent),
}
"""What befalls a worker as a whole: the share of the acts that it comes after, before the seed's mood."""


def run_seed(seed: int, **options: Any) -> Verdict:
    """One seed; what is left of it is left to the process, which should not run many."""
    gc.disable()  # what is collected runs code, so that the moment of it would have to be the same every time
    return Story(seed, **options).run()
