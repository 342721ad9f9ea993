"""Topics that remember what a test says happened, and a page's server whose past is told from them."""

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import msgspec
from support.sites.shown import ShownSite

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.keys import finding_key, listed_key, object_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.records import RESOLVED, FindingEvent, Listed
from underhost.schemas.topics import (
    HOSTS,
    KUBERNETES_TOPICS,
    NODES,
    PODS,
    VIOLATIONS,
    VMS,
    VSPHERE_TOPICS,
    Topic,
)
from underhost.streams.derived import rfc3339
from underhost.streams.ports import Record

SITE = "prod"
KINDS: tuple[tuple[Topic, str, str], ...] = (
    (NODES, "node", "nodes"),
    (PODS, "pod", "pods"),
    (VMS, "vm", "vms"),
    (HOSTS, "host", "hosts"),
)


class RememberedTopics:
    """A TopicReader whose records are of the moments (seconds since 1970) that a test names."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._held: dict[tuple[str, str], bytes] = {}

    def state(self, snapshot: Snapshot, at: float) -> None:
        """The site is like this from then on; the first one is both sources' first list."""
        first = not self._records
        for topic, kind, name in KINDS:
            objects: Mapping[str, Any] = getattr(snapshot, name)
            written = {self._key(kind, key): encode(one) for key, one in objects.items()}
            held = {key for held_topic, key in self._held if held_topic == topic.name}
            for key in sorted(written.keys() | held):
                if written.get(key) != self._held.get((topic.name, key)):
                    self._write(topic, key, written.get(key), at)
        for topic in (*KUBERNETES_TOPICS, *VSPHERE_TOPICS) if first else ():
            source = "kubernetes" if topic in KUBERNETES_TOPICS else "vsphere"
            self._write(topic, listed_key(SITE, source), encode(Listed(1, 0)), at)

    def finding(self, event: FindingEvent, at: float) -> None:
        """A finding was published; a resolved one is followed by its tombstone."""
        moment = rfc3339(at)
        told = msgspec.structs.replace(event, updated_at=moment, first_seen=moment)
        self._write(VIOLATIONS, finding_key(SITE, event.id), msgspec.json.encode(told), at)
        if event.state == RESOLVED:
            self._write(VIOLATIONS, finding_key(SITE, event.id), None, at)

    def add(self, *records: Record) -> None:
        """These, as they are."""
        self._records += records

    def _key(self, kind: str, name: str) -> str:
        namespace, _, rest = name.rpartition("/")
        return object_key(SITE, kind, rest, namespace)

    def _write(self, topic: Topic, key: str, value: bytes | None, at: float) -> None:
        offset = sum(record.topic == topic.name for record in self._records)
        self._records.append(Record(topic.name, 0, offset, int(at * 1000), key.encode(), value, ()))
        if value is None:
            self._held.pop((topic.name, key), None)
        else:
            self._held[topic.name, key] = value

    async def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        wanted = {topic.name for topic in topics}
        for record in self._records:
            if record.topic in wanted:
                yield record


class RememberingSite(ShownSite):
    """A site whose worker can tell the past: `past` is what happened before the page was opened."""

    features = ("history", "repair", "whatif")

    def __init__(self) -> None:
        super().__init__()
        self.past = RememberedTopics()

    def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        return self.past.history(topics, site)


def hours_ago(hours: float) -> float:
    """Seconds since 1970."""
    return time.time() - hours * 3600
