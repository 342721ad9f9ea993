"""A Faust table whose changes go straight to the producer; on Kafka each says in which generation it was made.

In: `table[key] = value` and `del table[key]` while a record is handled. Out: the change in the changelog. Faust makes
a future, a message and a callback of each change, for stores that keep their offset; a table in memory needs none of
them. Its recovery and its partitions are left to Faust.

A worker that was cut off from Kafka has records that it fetched before, and handles them before it hears that its
group has gone on without it. What it writes then lies behind what its successor has written. So each change carries the
generation of the consumer group in which it was made, and a recovery leaves out what comes after a newer generation.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import faust
from faust.types import TP

GENERATION = "generation"
"""The header. What has none, of an older version or of the embedded log, is never late."""
BEGUN_ANEW = 600.0
"""Seconds after the first record of a generation from which on an older one is no late one: Kafka has forgotten the
group, and counts from 1 again. A worker that was cut off hears of it long before."""


class _Newest(NamedTuple):
    """The newest generation of a partition, when its first record was made, and the last offset that was read."""

    generation: int
    since: float
    offset: int


class ChangelogTable(faust.Table):  # type: ignore[misc]
    """Raw keys and values, not windowed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._newest: dict[TP, _Newest] = {}

    def __setitem__(self, key: bytes, value: bytes) -> None:
        if not self._written(key, value):
            super().on_key_set(key, value)
        self.stored[key] = value

    def on_key_del(self, key: bytes) -> None:
        """A row is about to be deleted."""
        if not self._written(key, None):
            super().on_key_del(key)

    def _written(self, key: bytes, value: bytes | None) -> bool:
        """Whether the producer has taken the change as it is."""
        return bool(self.app.producer.put_change(self._changelog, self.partition_for_key(key), key, value))

    @cached_property
    def stored(self) -> dict[bytes, bytes]:
        """The rows as they are now and will be, without the steps that Faust takes to each."""
        rows: dict[bytes, bytes] = self.data.data
        return rows

    @cached_property
    def _changelog(self) -> str:
        return str(self.changelog_topic.get_topic_name())

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        """Faust's, without what comes late."""
        super().apply_changelog_batch([event for event in batch if not self._is_late(event.message)])

    def _is_late(self, message: Any) -> bool:
        headers = dict(message.headers or ())
        if GENERATION not in headers:
            return False
        generation, known = int(headers[GENERATION]), self._newest.get(message.tp)
        if known is None or message.offset <= known.offset:  # read from its beginning, perhaps once more
            known = _Newest(generation, message.timestamp, message.offset)
        late = generation < known.generation and message.timestamp - known.since < BEGUN_ANEW
        if generation != known.generation and not late:
            known = _Newest(generation, message.timestamp, message.offset)
        self._newest[message.tp] = known._replace(offset=message.offset)
        return late
