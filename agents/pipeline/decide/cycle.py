"""The decide cycle of one site: wake on a change, wait for quiet, evaluate off the event loop, publish, remember.

In: a call for every change of the site. Out: published decisions. `Cycles` starts one for each held site and
cancels it when the site may move. A storm of changes collapses into one evaluation: it begins after 20 ms of quiet.
Under changes without a pause it begins 20 to 200 ms after the first of them, as soon as the last evaluation ended four
times as long ago as it took, or 200 ms. What changed during an evaluation that took longer is evaluated at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from underhost.agents.pipeline.decide.evaluation import Evaluation
from underhost.agents.pipeline.gates.guards import Guards, Standstill
from underhost.agents.pipeline.state import RunState
from underhost.agents.sinks.orders import FAILURES
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.records import Outcome
from underhost.streams.derived import rfc3339
from underhost.streams.ports import Publisher
from underhost.streams.publish import publish_until_taken

log = logging.getLogger(__name__)

QUIET, LIMIT = 0.020, 0.200
"""Seconds without a change before an evaluation starts; the longest that it ever waits after the first change."""
TICK = 5.0
"""Seconds after which the deciders are asked again though nothing changed."""
SHARE = 4
"""An evaluation is followed by a rest of so many times what it took: a fifth of the time is spent in evaluations."""


def begins_by(first: float, ended: float, cost: float) -> float:
    """When an evaluation begins though changes do not pause.

    `first`: when the first of them came; `ended`: when the last evaluation did; `cost`: the seconds that it took. Both
    are of evaluating alone: publishing is part of the rest.
    """
    rest = min(LIMIT, SHARE * cost)
    return min(first + LIMIT, max(first + QUIET, ended + rest))


class SiteCycle:
    """One site's cycle. `begin` makes the evaluation once the site is ready.

    Attributes:
        still: what it did not order, and why.
    """

    def __init__(
        self,
        site: str,
        run: RunState,
        begin: Callable[[str], Evaluation],
        guards: Guards,
        publisher: Publisher,
        pool: Executor,
    ) -> None:
        self._site, self._run, self._sites = site, run, run.sites
        self._begin, self._guards, self._publisher, self._pool = begin, guards, publisher, pool
        self._changed = asyncio.Event()
        self._first = self._last = self._ended = self._cost = 0.0
        self._poked = False
        self._outcomes: list[Outcome] = []
        self._evaluation: Evaluation | None = None
        self._reason: str | None = None
        self._skewed: frozenset[str] = frozenset()
        self.still = Standstill()

    @property
    def failure(self) -> str | None:
        """Why a step of the last evaluation came to nothing, None when all went well."""
        return self._evaluation.failure if self._evaluation is not None else None

    def poke(self) -> None:
        """Something changed."""
        self._poked = True
        self.nudge()

    def nudge(self) -> None:
        """Something changed that no evaluation reads, only a decider."""
        self._last = time.monotonic()
        if not self._changed.is_set():
            self._first = self._last
            self._changed.set()

    def renew(self) -> None:
        """What is kept of the site is wrong: evaluate it anew."""
        if self._evaluation is not None:
            self._evaluation.renew()
        self.poke()

    def observe(self, outcome: Outcome) -> None:
        """A command was answered. That a pod is bound is decided from only once the pod shows it."""
        self._outcomes.append(outcome)
        kind = COMMANDS.get(outcome.kind)
        if kind is None or not kind.frequent or outcome.result in FAILURES:
            self.poke()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            changed = await self._wake()
            reason = self._sites.unready(self._site)
            self._explain(reason)
            self._tell_clocks()
            if reason is None and (changed or self._evaluation is not None):
                await self._decide(changed)

    def _explain(self, reason: str | None) -> None:
        if reason != self._reason:
            self._reason = reason
            log.info("site %s: %s", self._site, "ready" if reason is None else f"waiting: {reason}")

    def _tell_clocks(self) -> None:
        """One line when a clock begins to differ from ours by too much."""
        skewed = self._guards.skewed([self._site])
        for what in sorted(skewed.keys() - self._skewed):
            log.warning("%s: it is %s", what, skewed[what])
        self._skewed = frozenset(skewed)

    async def _wake(self) -> bool:
        """Wait for a change and for quiet after it; False when only time has passed."""
        due, orders_due = None, None
        if self._evaluation is not None:
            due, orders_due = self._evaluation.evaluate_at(), self._evaluation.order_at(self.still)
        now = time.monotonic()
        # At least the quiet time: what stays due, because it raises, say, must not keep a processor busy.
        timeout = max(QUIET, min([TICK, *(at - now for at in (due, orders_due) if at is not None)]))
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return due is not None and due <= time.monotonic()
        await self._quiet()
        self._changed.clear()
        poked, self._poked = self._poked, False
        return poked

    async def _quiet(self) -> None:
        latest = begins_by(self._first, self._ended, self._cost)
        left = min(self._last + QUIET, latest) - time.monotonic()
        while left > 0:
            await asyncio.sleep(left)
            left = min(self._last + QUIET, latest) - time.monotonic()

    async def _decide(self, changed: bool) -> None:
        evaluation = self._evaluation = self._evaluation or self._begin(self._site)
        outcomes, self._outcomes = self._outcomes, []
        snapshot = self._sites.snapshot(self._site)
        at = rfc3339(self._sites.state(self._site).as_of or time.time())
        changed = self._look() or changed
        started = time.monotonic()
        decided = await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(evaluation.evaluate, snapshot, at, outcomes, self.still, changed=changed)
        )
        # Its rest begins here: a broker that is slow to answer takes no processor.
        self._ended = time.monotonic()
        took = self._cost = self._ended - started
        self._run.decide(self._site, decided)
        if decided.records:
            await publish_until_taken(self._publisher, decided.records, f"decisions of site {self._site}")
        evaluation.commit(decided)
        self._run.decided(self._site, decided, took)

    def _look(self) -> bool:
        """Look what may be ordered now; True where that has changed: what was held back is decided anew."""
        before, self.still = self.still, self._guards.standstill(self._site)
        if self.still == before:
            return False
        for name, why in self.still.why().items():
            if before.why().get(name) != why:
                log.error("site %s: writes stop (%s): %s", self._site, name, why)
        for name in before.why().keys() - self.still.why().keys():
            log.warning("site %s: writes go on (%s is over)", self._site, name)
        return True


class Cycles:
    """A cycle for each site that is held, from the moment its tables are recovered until it may move.

    Each begins with what the tables hold: another worker may have decided for the site meanwhile. `new` makes the cycle
    of a site.
    """

    def __init__(self, run: RunState, new: Callable[[str], SiteCycle]) -> None:
        self._run, self._new = run, new
        self._running: dict[str, tuple[SiteCycle, asyncio.Task[None]]] = {}
        run.sites.on_change = self.poke

    def poke(self, site: str) -> None:
        """The site changed; its cycle begins with the first change after it became ours."""
        if site not in self._running and self._run.sites.holds(site):
            cycle = self._new(site)
            task = asyncio.get_running_loop().create_task(cycle.run(), name=f"cycle {site}")
            task.add_done_callback(self._run.ended)
            self._running[site] = (cycle, task)
        if site in self._running:
            self._running[site][0].poke()

    def nudge(self, site: str) -> None:
        """Something of the site changed that only deciders read."""
        if site in self._running:
            self._running[site][0].nudge()

    def observe(self, site: str, outcome: Outcome) -> None:
        """A command for the site was answered. Before its cycle has begun, the table tells it."""
        if site in self._running:
            self._running[site][0].observe(outcome)

    def renew(self, site: str) -> None:
        """What is kept of the site is wrong: evaluate it anew."""
        if site in self._running:
            self._running[site][0].renew()

    def failure(self, site: str) -> str | None:
        """Why the site's last evaluation came to nothing."""
        return self._running[site][0].failure if site in self._running else None

    def resume(self) -> None:
        """The tables are recovered: begin where nothing new may come for a long time."""
        for site in self._run.sites.held():
            self.poke(site)

    async def suspend(self) -> None:
        """End every cycle; a decision that is not published yet is not published any more."""
        tasks = [task for _, task in self._running.values()]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
