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

Rows = dict[str, "StoredTable"]


class StoredTable(dict[bytes, bytes]):
    """A table whose store is itself: the changes of a started app, without the app."""

    @property
    def data(self) -> Any:
        """See `faust.Table`."""
        return SimpleNamespace(data=self, _key_partition={})


class StoredTables(Tables):
    """Tables of one site, whose every record is in partition 0, with all that was refused: (topic, why).

    `rows` are those of an earlier run, by topic: the state is rebuilt from them, as after a recovery.
    """

    def __init__(
        self, folder: Path, read: tuple[Topic, ...], derived: tuple[Topic, ...] = (), rows: Rows | None = None
    ):
        self.late: list[tuple[str, str]] = []
        app = build_app(Settings(kafka=KafkaSettings(embedded=folder / "log.db", partitions=1)), app_id="t")
        sites = Sites(read, derived, partition_of=lambda site: 0, sources=lambda state: frozenset())
        super().__init__(app, sites, lambda topic, why: self.late.append((topic, why)))
        self.stored: Rows = rows or {topic.short: StoredTable() for topic in (*read, *derived)}
        self._tables.update(self.stored)
        sites.resume({0}, {}, {})
        for key in {key for table in self.stored.values() for key in table}:
            sites.state(key.decode().partition("/")[0])
        for topic in read:
            rebuild(sites, self, topic)

    async def take(
        self, topic: Topic, key: str, value: bytes | None, *, term: int | None = None, id_: str = "", at: float = 1.0
    ) -> None:
        """Keep a record: its publisher's term, the id of its event, and when it was sent."""
        headers = [("ce_id", id_.encode()), *([("ce_term", str(term).encode())] if term is not None else [])]
        message = SimpleNamespace(key=key.encode(), value=value, partition=0, timestamp=at, headers=headers)
        await self.keep(topic, message)
