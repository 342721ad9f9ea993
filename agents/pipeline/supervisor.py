"""The watchers of a site as supervised tasks: started when partition and lease are held, ended before they may move.

In: a factory of sources. Out: running watchers; each start makes new sources, whose markers alone count from then on.
Before a source's first success its error ends the worker; after it, the source is started again for ever.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.tables.sites import Sites
from underhost.schemas.errors import BackendError, InputError
from underhost.schemas.keys import LISTED, parse_key
from underhost.schemas.topics import KUBERNETES, VSPHERE
from underhost.streams.ports import Outgoing, Publisher, Source, TopicReader

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a watcher that failed is started again; doubled at each failure."""

SourceFactory = Callable[[str, Publisher, TopicReader], Sequence[Source]]
"""Makes new sources for (site, publisher, reader)."""


class Watchers:
    """The sources of one site. `failed` is called with what ends the worker."""

    def __init__(
        self,
        site: str,
        make: SourceFactory,
        publisher: Callable[[str], Publisher],
        reader: TopicReader,
        sites: Sites | None,
        *,
        failed: Callable[[BaseException], None],
        metrics: Metrics,
        names: Collection[str] = (KUBERNETES, VSPHERE),
    ) -> None:
        """`publisher` makes that of a source, by its name, at its start. `names` are the sources that may run.

        `sites` is None where there is no consumer, and so no partition to hold.
        """
        self._site, self._make, self._publisher, self._reader, self._sites = site, make, publisher, reader, sites
        self._failed, self._metrics = failed, metrics
        self._names = [name for name in (KUBERNETES, VSPHERE) if name in names]
        self._succeeded: set[str] = set()
        self._absent: set[str] = set()
        self._running: dict[str, Source] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def sources(self) -> list[Source]:
        """The sources that run now."""
        return list(self._running.values())

    def has_listed(self, name: str) -> bool:
        """Whether the source has listed once, in this or an earlier start; also where there is no such source."""
        return name not in self._names or name in self._succeeded | self._absent

    def refresh(self) -> None:
        """Let every source that can read again what its backend does not announce."""
        for source in self.sources:
            source.refresh()

    def is_listing(self, name: str) -> bool:
        """Whether the source runs, and has not listed yet."""
        return name in self._running and name not in self._succeeded

    def unlisted(self) -> dict[str, str]:
        """Running sources that have not listed yet, with what they say about it."""
        waiting = [source for source in self.sources if self.is_listing(source.name)]
        return {source.name: "; ".join(source.shrunk) or "has not listed yet" for source in waiting}

    def doubts(self) -> dict[str, str]:
        """What each source does not believe: an inventory that is empty or has shrunk. Nothing may be written then.

        What such a source does not believe it has not published: what the topics hold may be wrong, or the source.
        """
        return {name: "; ".join(lines) for name, source in self._running.items() if (lines := source.shrunk)}

    def stale(self) -> dict[str, str]:
        """The sources whose data is too old to act on, with what they say about it."""
        return {name: why for name, source in self._running.items() if (why := source.stale)}

    def accept(self) -> list[str]:
        """A person says that what the sources do not believe is true: the lines that are settled by that."""
        return [line for source in self.sources for line in source.accept()]

    def start(self, names: Collection[str] = (KUBERNETES, VSPHERE)) -> None:
        """Start those of these names, unless they run."""
        for name in self._names:
            if name in names and name not in self._tasks:
                source = self._new(name)
                if source is not None:
                    work = self._supervise(source)
                    self._tasks[name] = asyncio.get_running_loop().create_task(work, name=f"source {name}")

    def _new(self, name: str) -> Source | None:
        publisher = _Noting(self._publisher(name), self._published)
        made = self._make(self._site, publisher, self._reader)
        source = next((each for each in made if each.name == name), None)
        if source is None:
            self._absent.add(name)
        else:
            self._running[name] = source
            if self._sites is not None:
                self._sites.require_epoch(self._site, name, source.epoch)
        return source

    async def stop(self, names: Collection[str] = (KUBERNETES, VSPHERE)) -> None:
        """End those of these names and wait for their end: nothing of theirs is published after this."""
        tasks = [self._tasks.pop(name) for name in names if name in self._tasks]
        for name in names:
            if self._running.pop(name, None) is not None and self._sites is not None:
                self._sites.require_epoch(self._site, name, None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _supervise(self, source: Source) -> None:
        pause = FIRST_PAUSE
        while True:
            [error] = await asyncio.gather(source.run(), return_exceptions=True)
            if error is None:
                return
            if not isinstance(error, BackendError | InputError) or source.name not in self._succeeded:
                self._failed(error)
                return
            log.warning("source %s of site %s failed: %s", source.name, self._site, error)
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)
            self._metrics.restarts.labels(source.name).inc()
            again = self._new(source.name)
            assert again is not None
            source = again

    def _published(self, records: Collection[Outgoing]) -> None:
        """Note what the sources have achieved: a marker is a first success."""
        for record in records:
            key = parse_key(record.key) if f"/{LISTED}/" in record.key else None
            if key is not None and key.kind == LISTED:
                self._succeeded.add(key.name)
        for source, count in Counter(record.topic.source for record in records).items():
            if source is not None:
                self._metrics.sources.labels(source).inc(count)


class _Noting:
    """A source's publisher that tells `published` of what was acknowledged."""

    def __init__(self, publisher: Publisher, published: Callable[[Collection[Outgoing]], None]) -> None:
        self._publisher, self._published = publisher, published

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        await self._publisher.publish(*records)
        self._published(records)
