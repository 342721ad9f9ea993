"""Tables of an app that is never started: each keeps its rows in a mapping, which a test may hand to a restart."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.recovery import rebuild
from underhost.agents.pipeline.tables.sites import Sites
from underhost.schemas.topics import Topic
from underhost.streams.faust.app import build_app
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings


class StoredTable(dict[bytes, bytes]):
    """A table whose store is itself: the changes of a started app, without the app."""

    @property
    def data(self) -> Any:
        """See `faust.Table`."""
        return SimpleNamespace(data=self, _key_partition={})

    @property
    def stored(self) -> dict[bytes, bytes]:
        """See `ChangelogTable`."""
        return self


class StoredTables(Tables):
    """Tables of one site, whose every record is in partition 0.

    Attributes:
        late: what was refused, (topic, why). live: what the topics hold, where that is asked for. wall: the time of the
            wall clock, which records are not of the future by.
    """

    def __init__(self, folder: Path, read: tuple[Topic, ...], derived: tuple[Topic, ...] = ()) -> None:
        self.late: list[tuple[str, str]] = []
        self._made_of = folder, read, derived
        app = build_app(Settings(kafka=KafkaSettings(embedded=folder / "log.db", partitions=1)), app_id="t")
        sites = Sites(read, derived, partition_of=lambda site: 0, sources=lambda state: frozenset())
        sites.resume({0}, {}, {})
        self.live: dict[str, bytes] = {}
        self.wall = float("inf")
        super().__init__(
            app, sites, self._of_topic, lambda topic, why: self.late.append((topic, why)), lambda: self.wall
        )
        self._tables.update({topic.short: StoredTable() for topic in (*read, *derived)})

    async def _of_topic(self, topic: Topic, site: str) -> dict[str, bytes]:
        return self.live

    async def current(self, message: Any) -> bool:
        """No partition moves."""
        return True

    async def restarted(self) -> "StoredTables":
        """The tables of the next run: it has these rows, and rebuilds from them what it knows of the site."""
        after = StoredTables(*self._made_of)
        for short, table in self._tables.items():
            after._tables[short] = StoredTable(table)
        for topic in after.sites.read:
            await rebuild(after.sites, after, topic)
        return after

    async def take(
        self,
        topic: Topic,
        key: str,
        value: bytes | None,
        *,
        term: int | str | None = None,
        id_: str = "",
        at: float = 1.0,
    ) -> None:
        """Keep a record: its publisher's term, the id of its event, and when it was sent."""
        headers = [("ce_id", id_.encode()), *([("ce_term", str(term).encode())] if term is not None else [])]
        message = SimpleNamespace(key=key.encode(), value=value, partition=0, timestamp=at, headers=headers)
        await self.keep(topic, message)
