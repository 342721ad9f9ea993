"""The gauges of a worker: what it knows now, as opposed to what `metrics.py` counts as it happens.

In: the sites, watchers and guards of a pipeline, and the offsets of its consumer. Out: gauges brought up to date.
"""

import time
from collections import Counter

import faust

from underhost.agents.pipeline.gates.guards import SHRUNK, STALE, Guards
from underhost.agents.pipeline.state import RunState
from underhost.agents.pipeline.supervisor import Watchers
from underhost.schemas.topics import BY_NAME


class Gauges:
    """Of one pipeline."""

    def __init__(self, run: RunState, app: faust.App, watchers: Watchers, guards: Guards) -> None:
        self._run, self._metrics, self._sites = run, run.metrics, run.sites
        self._app, self._watchers, self._guards = app, watchers, guards

    def refresh(self) -> None:
        """Bring them up to date."""
        self._of_sources()
        for site in self._sites.held():
            self._of_site(site)
        if self._run.reads and self._run.recovered:  # else there are no partitions whose ends can be told
            self._of_topics()

    def _of_sources(self) -> None:
        for source in self._watchers.sources:
            for why, said in ((STALE, source.stale), (SHRUNK, source.shrunk)):
                self._metrics.doubts.labels(source.name, why).set(bool(said))
            if source.contact is not None:
                self._metrics.silence.labels(source.name).set(max(0.0, time.monotonic() - source.contact))

    def _of_site(self, site: str) -> None:
        stopped = self._guards.standstill(site).why()
        for why in (SHRUNK, STALE):
            self._metrics.stopped.labels(site, why).set(why in stopped)
        self._metrics.ready.labels(site).set(self._sites.unready(site) is None)
        state = self._sites.states.get(site)
        if state is None:
            return
        if state.as_of:
            self._metrics.age.labels(site).set(max(0.0, time.time() - state.as_of))
        for short, count in state.counts().items():
            self._metrics.objects.labels(site, short).set(count)

    def _of_topics(self) -> None:
        behind: Counter[str] = Counter()
        for place in self._app.consumer.assignment():
            topic = BY_NAME.get(place.topic)
            if topic is not None and topic in (*self._sites.read, *self._sites.followed):
                end = self._app.consumer.highwater(place) or 0
                behind[topic.short] += max(0, end - self._sites.following(topic, place.partition))
        for short, records in behind.items():
            self._metrics.lag.labels(short).set(records)
