"""Files as the sources of a site: a dump instead of a cluster, an inventory instead of a vCenter.

In: the paths of the settings, and what the topics hold. Out: the same records, keys, tombstones and markers as of the
live watchers. A file that changes is read again; if it then cannot be read, that is logged and the topics stay as they
are.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from underhost.schemas.errors import BackendError, InputError
from underhost.schemas.keys import object_key
from underhost.schemas.kubernetes import Pod
from underhost.schemas.pods.volumes import trimmed
from underhost.schemas.topics import KUBERNETES, KUBERNETES_TOPICS, VSPHERE, VSPHERE_TOPICS, Topic
from underhost.schemas.vsphere import Inventory
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import load_files
from underhost.streams.log import structlog
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.vsphere.records import Records, inventory_records
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.listing import publish_list
from underhost.streams.watching.reconcile import doubt_of

LOOK_AGAIN = 2.0

log = structlog.get_logger("underhost.files")


class FileSource(Source):
    """A source over files; `dump_source` and `inventory_source` make the two that there are.

    Attributes:
        ready: set once everything is listed and published.
    """

    def __init__(
        self,
        name: str,
        site: str,
        topics: Sequence[Topic],
        paths: Sequence[Path],
        read: Callable[[], Records],
        publisher: Publisher,
        reader: TopicReader,
        look_again: float,
    ) -> None:
        self.name = name
        self.epoch = time.time_ns() // 1_000_000
        self.ready = asyncio.Event()
        self._doubts = Doubts(site=site, source=name)
        self._accepted = asyncio.Event()
        self._site, self._topics, self._paths, self._read = site, topics, paths, read
        self._publisher, self._reader, self._look_again = publisher, reader, look_again

    @property
    def shrunk(self) -> list[str]:
        """See `Source.shrunk`."""
        return self._doubts.lines

    def accept(self) -> list[str]:
        """See `Source.accept`."""
        settled = self._doubts.accept()
        self._accepted.set()
        return settled

    async def run(self) -> None:
        """See `Source.run`."""
        seen = await asyncio.to_thread(_signature, self._paths)
        await self._publish(await asyncio.to_thread(self._read), first=True)
        self.ready.set()
        while True:
            accepted = await self._pause()
            now = await asyncio.to_thread(_signature, self._paths)
            if now == seen and not accepted:
                continue
            try:
                await self._publish(await asyncio.to_thread(self._read))
            except InputError as error:
                log.error("files cannot be read", site=self._site, source=self.name, faults=list(error.faults))
            except BackendError as error:
                log.warning("not published", site=self._site, source=self.name, reason=str(error))
                seen = ()  # and again after the next look
                continue
            seen = now

    async def _pause(self) -> bool:
        """Wait until the files are to be checked again; returns True where a person accepts what they hold."""
        try:
            async with asyncio.timeout(self._look_again):
                await self._accepted.wait()
        except TimeoutError:
            return False
        self._accepted.clear()
        return True

    async def _publish(self, listed: Mapping[str, Mapping[str, Struct]], *, first: bool = False) -> None:
        held = {topic.name: await self._reader.state(topic, self._site) for topic in self._topics}
        if first:
            self._doubts.recall(doubt_of(self._site, self.name, held))
        await publish_list(self._site, self.name, self._topics, held, listed, self.epoch, self._doubts, self._publisher)
        log.info("listed", site=self._site, source=self.name, objects=sum(map(len, listed.values())))


def dump_source(
    site: str,
    settings: KubernetesSettings,
    publisher: Publisher,
    reader: TopicReader,
    look_again: float = LOOK_AGAIN,
) -> FileSource:
    """The source `kubernetes` of a site that is a dump. `look_again`: seconds between looks at the files."""
    paths = settings.files

    def read() -> Records:
        objects = load_files(paths, compact=True)
        for note in objects.notes:
            log.warning("note", site=site, note=note)
        return kubernetes_records(site, objects)

    return FileSource(KUBERNETES, site, KUBERNETES_TOPICS, paths, read, publisher, reader, look_again)


def inventory_source(
    site: str, settings: VSphereSettings, publisher: Publisher, reader: TopicReader, look_again: float = LOOK_AGAIN
) -> FileSource:
    """The source `vsphere` of a site whose vSphere side is an inventory file."""
    path = settings.inventory
    assert path is not None

    def read() -> Records:
        inventory = load_files([], inventory=path).inventory
        return inventory_records(site, inventory or Inventory())

    return FileSource(VSPHERE, site, VSPHERE_TOPICS, [path], read, publisher, reader, look_again)


def kubernetes_records(site: str, objects: Objects) -> Records:
    """The records of a dump by topic and key."""
    tables: Mapping[str, Mapping[str, Struct]] = {
        "node": objects.nodes,
        "pod": objects.pods,
        "namespace": objects.namespaces,
        "service": objects.services,
        "poddisruptionbudget": objects.budgets,
    }
    placed = [(kind, key, value) for kind, table in tables.items() for key, value in table.items()]
    placed += [(owner.kind.lower(), key.partition("/")[2], owner) for key, owner in objects.workloads.items()]
    topic_of = {kind: topic.name for topic in KUBERNETES_TOPICS for kind in topic.kinds}
    records: Records = {topic.name: {} for topic in KUBERNETES_TOPICS}
    for kind, key, value in placed:
        namespace, _, name = key.rpartition("/")
        if isinstance(value, Pod):
            try:
                value = trimmed(value)
            except msgspec.DecodeError as error:
                raise InputError(f"Pod {key}: spec.volumes: {error}") from error
        records[topic_of[kind]][object_key(site, kind, name, namespace)] = value
    return records


def _signature(paths: Sequence[Path]) -> tuple[tuple[str, int, int], ...]:
    """Path, time and size of every file: a change of it means that a file has changed."""
    found = []
    for path in paths:
        inside = [Path(folder) / name for folder, _, names in os.walk(path) for name in names] if path.is_dir() else []
        for file in sorted(inside) or [path]:
            try:
                status = file.stat()
            except OSError:
                found.append((str(file), 0, -1))
            else:
                found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)
