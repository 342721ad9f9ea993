"""A Faust table whose changes go straight into the embedded log; on Kafka they go Faust's own way.

In: `table[key] = value` and `del table[key]` while a record is handled. Out: the change in the changelog, in the log's
next commit. Faust makes a future, a message and a callback of each change, for stores that keep their offset; a table
in memory needs none of them. The changelog, its recovery and its partitions are left to Faust.
"""

import faust


class ChangelogTable(faust.Table):  # type: ignore[misc]
    """Raw keys and values, not windowed."""

    def on_key_set(self, key: bytes, value: bytes) -> None:
        """A row is about to be set."""
        if not self._written(key, value):
            super().on_key_set(key, value)

    def on_key_del(self, key: bytes) -> None:
        """A row is about to be deleted."""
        if not self._written(key, None):
            super().on_key_del(key)

    def _written(self, key: bytes, value: bytes | None) -> bool:
        """Whether the producer has taken the change as it is."""
        changelog, partition = self.changelog_topic.get_topic_name(), self.partition_for_key(key)
        return bool(self.app.producer.put_change(changelog, partition, key, value))
