"""A decide cycle for each site that is held, from the moment its tables are recovered until it may move.

In: the sites, outcomes. Out: running cycles. Each begins with a new memory from the tables: what another worker decided
meanwhile is in them.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from underhost.agents.pipeline.decide.cycle import SiteCycle
from underhost.agents.pipeline.decide.evaluation import Decisions, Evaluation
from underhost.agents.pipeline.gates.guards import Standstill
from underhost.agents.pipeline.tables.sites import Sites
from underhost.schemas.records import Outcome
from underhost.streams.ports import Publisher

log = logging.getLogger(__name__)


class Cycles:
    """The running cycles. `begin` makes a site's evaluation; `failed` is called with what ended a cycle."""

    def __init__(
        self,
        sites: Sites,
        begin: Callable[[str], Evaluation],
        publisher: Publisher,
        pool: Executor,
        *,
        has_vsphere: Callable[[str], bool],
        publishing: Callable[[str, Decisions], None],
        published: Callable[[str, Decisions, float], None],
        standstill: Callable[[str], Standstill],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._sites, self._begin, self._publisher, self._pool = sites, begin, publisher, pool
        self._has_vsphere, self._published, self._failed = has_vsphere, published, failed
        self._publishing, self._standstill = publishing, standstill
        self._running: dict[str, tuple[SiteCycle, asyncio.Task[None]]] = {}
        sites.on_change = self.poke

    def poke(self, site: str) -> None:
        """The site changed; its cycle begins with the first change after it became ours."""
        if site in self._running:
            self._running[site][0].poke()
        elif self._sites.holds(site):
            self._start(site)

    def observe(self, site: str, outcome: Outcome) -> None:
        """A command for the site was answered. Before its cycle has begun, the table tells it."""
        if site in self._running:
            self._running[site][0].observe(outcome)

    def failure(self, site: str) -> str | None:
        """Why the site's last evaluation came to nothing."""
        return self._running[site][0].failure if site in self._running else None

    def resume(self) -> None:
        """The tables are recovered: begin where nothing new may come for a long time."""
        for site in self._sites.held():
            self.poke(site)

    async def suspend(self) -> None:
        """End every cycle; a decision that is not published yet is not published any more."""
        tasks = [task for _, task in self._running.values()]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, site: str) -> None:
        cycle = SiteCycle(
            site,
            self._sites,
            lambda: self._begin(site),
            self._publisher,
            self._pool,
            has_vsphere=self._has_vsphere,
            publishing=self._publishing,
            published=self._published,
            standstill=self._standstill,
        )
        task = asyncio.get_running_loop().create_task(cycle.run(), name=f"cycle {site}")
        task.add_done_callback(self._ended)
        self._running[site] = (cycle, task)
        cycle.poke()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)
