"""The watchers of the simulated site: the same records, keys, markers and order as of the live ones.

In: a store of simulated objects, and what the topics hold of an earlier run. Out: the first list (differences only),
tombstones, `listed` markers, then every change, each acknowledged before the next. While they run they also drive the
simulated time.
"""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from underhost.schemas.keys import object_key
from underhost.schemas.topics import DRS_RULES, HOSTS, KUBERNETES, KUBERNETES_TOPICS, VMS, VSPHERE, Topic
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.publish import publish_until_taken
from underhost.streams.simulated.store import Change, Store
from underhost.streams.simulated.timeline import Timeline
from underhost.streams.timing import Timing
from underhost.streams.watching.reconcile import plan_listing
from underhost.streams.watching.records import outgoing_of

TOPICS_OF = {KUBERNETES: KUBERNETES_TOPICS, VSPHERE: (HOSTS, VMS, DRS_RULES)}


class SimulatedSource(Source):
    """A source over one simulated store; it believes whatever that shows.

    Args:
        name: `kubernetes` or `vsphere`.

    Attributes:
        ready: set once everything is listed and published.
    """

    def __init__(
        self, name: str, site: str, store: Store, timeline: Timeline, publisher: Publisher, reader: TopicReader
    ) -> None:
        self.name = name
        self.epoch = int(timeline.clock.now() * 1000)
        self.ready = asyncio.Event()
        self._site = site
        self._store = store
        self._timeline = timeline
        self._publisher = publisher
        self._reader = reader
        self._timing = Timing()
        self._topics = TOPICS_OF[name]
        self._topic_of = {kind: topic for topic in self._topics for kind in topic.kinds}

    async def run(self) -> None:
        """List, mark as listed, then publish changes until cancelled. Raises Unreachable if the topics are."""
        held = {topic.name: await self._reader.state(topic, self._site) for topic in self._topics}
        self._timeline.run_due()
        objects, watch = self._store.watch()
        self._timeline.planned.append(watch.changed.set)
        try:
            await self._publish_list(objects, held)
            while True:
                self._timeline.run_due()
                await self._publish_changes(watch.take())
                await self._timeline.clock.wait(watch.changed, self._timeline.next_due())
        finally:
            self._timeline.planned.remove(watch.changed.set)
            self._store.unwatch(watch)

    async def _publish_list(self, objects: Sequence[Change], held: Mapping[str, Mapping[str, bytes]]) -> None:
        listed: dict[str, dict[str, Struct]] = {topic.name: {} for topic in self._topics}
        for change in objects:
            topic, key = self._place(change)
            listed[topic.name][key] = change.value
        # This cluster never answers wrongly: what it does not list is gone, however much that is.
        plan = plan_listing(self._site, self.name, self._topics, held, listed, self.epoch, shrink_limit=1.0)
        await self._publisher.publish(*plan.records())
        self.ready.set()

    async def _publish_changes(self, changes: Sequence[Change]) -> None:
        records = [outgoing_of(*self._place(change), change.value, change.uid) for change in changes]
        if records:
            await publish_until_taken(self._publisher, records, f"changes of site {self._site}", self._timing)

    def _place(self, change: Change) -> tuple[Topic, str]:
        kind, namespace, name = change.key
        return self._topic_of[kind], object_key(self._site, kind, name, namespace)
