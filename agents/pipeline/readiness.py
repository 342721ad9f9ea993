"""How a run of the pipeline stands: is it ready, may its picture be trusted, is everything written that should be.

In: the parts of a run, and the offsets of its consumer. Out: reasons in words, by what they are about; nothing where
all is well. The same in figures: gauges brought up to date.
"""

import asyncio
import time
from collections import Counter

import faust

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.decide.cycle import Cycles
from underhost.agents.pipeline.gates.guards import SHRUNK, STALE, Guards
from underhost.agents.pipeline.leases.roles import RoleLeases
from underhost.agents.pipeline.publishing import Publishing
from underhost.agents.pipeline.state import RunState
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.agents import Tables
from underhost.schemas.commands import BIND
from underhost.schemas.topics import BY_NAME

WAITING = "it waits for its partitions and their tables"


class Readiness:
    """Of one run."""

    def __init__(
        self,
        run: RunState,
        app: faust.App,
        watchers: Watchers,
        tables: Tables,
        cycles: Cycles,
        guards: Guards,
        leases: RoleLeases,
        publishing: Publishing,
    ) -> None:
        self._run, self._app, self._tables = run, app, tables
        self._watchers, self._cycles, self._guards = watchers, cycles, guards
        self._leases, self._publishing = leases, publishing

    def behind(self) -> str | None:
        """How far it is from what the topics held when the partitions became ours; None once it is there."""
        if not self._run.reads:
            return None
        if not self._run.recovered:
            left = sum(self._app.tables.recovery.active_remaining().values())
            return f"the tables are not recovered, {left} records are left"
        unread = self._run.sites.behind()
        return f"{unread} records of the topics are not read yet" if unread else None

    def _worker(self) -> str | None:
        """Why the worker as a whole can say nothing."""
        return self._run.membership.doubt() or (None if self._run.recovered else WAITING)

    def unsure(self, site: str) -> str | None:
        """Why nothing may be said of the site now; None when its picture is complete and trusted."""
        if (why := self._worker()) is not None:
            return why
        if role.EVALUATOR not in self._run.roles:
            return "this worker does not evaluate"
        why = self._run.sites.unready(site) or self._cycles.failure(site)
        if why is None and self._run.latest.of(site) is None:
            why = "nothing has been decided yet"
        return why or self._guards.standstill(site).forbids(BIND) or None

    def unready(self) -> dict[str, str]:
        """Why it is not ready, by what is not; empty when everything is decided for."""
        stopped = self._publishing.stopped()
        reasons = {"kafka": stopped} if stopped else {}
        if (why := self._worker() or self.behind()) is not None:
            return {**reasons, "worker": why}
        reasons |= {f"source {name}": reason for name, reason in self._watchers.unlisted().items()}
        reasons |= self._leases.unknown()
        for site in self._run.sites.held():
            reason = self._run.sites.unready(site) or self._cycles.failure(site)
            if reason is not None and not self._stands_by(site):
                reasons[f"site {site}"] = reason
        return reasons

    def standby(self) -> dict[str, str]:
        """Which roles are another worker's now, by lease, and what is not known here for that; empty where none are."""
        reasons = self._leases.standby()
        site = self._run.settings.site
        if self._stands_by(site) and self._run.recovered and (why := self._run.sites.unready(site)) is not None:
            reasons[f"site {site}"] = why
        return reasons

    def _stands_by(self, site: str) -> bool:
        """Whether another worker watches the site, perhaps with topics of its own: then nothing may be known here."""
        return site == self._run.settings.site and not all(
            self._leases.of(name).is_ours for name in role.WATCHERS & self._run.roles
        )

    def stopped(self) -> dict[str, str]:
        """Why not everything is written that should be, by site; empty when all is."""
        return self._guards.stopped(self._run.sites.held())

    def noted(self) -> dict[str, str]:
        """What a person should know though all is well: clocks that differ, sources without a lease."""
        return self._guards.skewed(self._run.sites.held()) | self._leases.without()

    # ------------------------------------------------------------------------------------------------- in figures
    def measure(self) -> None:
        """Bring the gauges up to date: what is so now, as opposed to what `metrics.py` counts as it happens."""
        self._run.metrics.tasks.set(len(asyncio.all_tasks()))
        self._run.metrics.unacknowledged.set(self._publishing.waited)
        self._run.metrics.unpublishable.set(bool(self._publishing.stopped()))
        self._of_sources()
        for name, is_held in self._leases.held().items():
            self._run.metrics.leases.labels(name).set(is_held)
        for short, rows in self._tables.sizes().items():
            self._run.metrics.rows.labels(short).set(rows)
        for site in self._run.sites.held():
            self._of_site(site)
        if self._run.reads and self._run.recovered:  # else there are no partitions whose ends can be told
            self._of_topics()

    def _of_sources(self) -> None:
        for source in self._watchers.sources:
            for why, said in ((STALE, source.stale), (SHRUNK, source.shrunk)):
                self._run.metrics.doubts.labels(source.name, why).set(bool(said))
            if source.contact is not None:
                self._run.metrics.silence.labels(source.name).set(max(0.0, time.monotonic() - source.contact))

    def _of_site(self, site: str) -> None:
        stopped = self._guards.standstill(site).why()
        for why in (SHRUNK, STALE):
            self._run.metrics.stopped.labels(site, why).set(why in stopped)
        for source in self._run.sites.signs.sources(site):
            self._run.metrics.skew.labels(site, source).set(self._run.sites.signs.skew(site, source))
        self._run.metrics.ready.labels(site).set(self._run.sites.unready(site) is None)
        state = self._run.sites.states.get(site)
        if state is None:
            return
        if state.as_of:
            self._run.metrics.age.labels(site).set(max(0.0, time.time() - state.as_of))
        for short, count in state.counts().items():
            self._run.metrics.objects.labels(site, short).set(count)

    def _of_topics(self) -> None:
        behind: Counter[str] = Counter()
        for place in self._app.consumer.assignment():
            topic = BY_NAME.get(place.topic)
            if topic is not None and topic in (*self._run.sites.read, *self._run.sites.followed):
                end = self._app.consumer.highwater(place) or 0
                behind[topic.short] += max(0, end - self._run.sites.following(topic, place.partition))
        for short, records in behind.items():
            self._run.metrics.lag.labels(short).set(records)
