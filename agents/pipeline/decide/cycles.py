"""A decide cycle for each site that is held, from the moment its tables are recovered until it may move.

In: the sites, outcomes. Out: running cycles. Each begins with what the tables hold: another worker may have decided for
the site meanwhile.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from underhost.agents.pipeline.decide.cycle import SiteCycle
from underhost.agents.pipeline.decide.evaluation import Evaluation
from underhost.agents.pipeline.gates.guards import Guards
from underhost.agents.pipeline.state import RunState
from underhost.schemas.records import Outcome
from underhost.streams.ports import Publisher


class Cycles:
    """The running cycles; see `SiteCycle` for the arguments."""

    def __init__(
        self,
        run: RunState,
        begin: Callable[[str], Evaluation],
        guards: Guards,
        publisher: Publisher,
        pool: Executor,
    ) -> None:
        self._run = run
        self._new = partial(SiteCycle, run=run, begin=begin, guards=guards, publisher=publisher, pool=pool)
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

    def observe(self, site: str, outcome: Outcome) -> None:
        """A command for the site was answered. Before its cycle has begun, the table tells it."""
        if site in self._running:
            self._running[site][0].observe(outcome)

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
