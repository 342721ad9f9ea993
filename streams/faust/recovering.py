"""The recovery of tables at less cost for each row, as a start reads all of them.

In: Faust's queue of rows. Out: tables, many rows at a time; whether rows are missing, without counting what is left of
every partition; no end of a recovery that a rebalance has cut off.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from mode import Service

log = logging.getLogger(__name__)

AT_ONCE = 500
"""Rows after which the event loop has a turn."""
LOOK_AGAIN = 5.0
"""Seconds without a row after which the end of the recovery is looked for again, as in Faust."""


class QuickRecovery(Recovery):  # type: ignore[misc]
    """Faust's recovery of tables."""

    def need_recovery(self) -> bool:
        """Whether a table of ours misses a row: the first one that does is enough."""
        offsets = self.active_offsets
        for partition, end in self.active_highwaters.items():
            if end is not None and (offset := offsets[partition]) is not None and offset < end:
                return True
        return False

    @Service.task  # type: ignore[untyped-decorator]
    async def _slurp_changelogs(self) -> None:
        """Faust's, which takes a row at a time: with a timer, and two looks at the partitions, for each."""
        while not self.should_stop:
            self.signal_recovery_end.clear()
            try:
                self._apply(await self._next_rows())
                self._end_where_whole()
            except Exception:  # as in Faust: whoever lost rows by this stays in recovery, which is seen
                log.exception("rows of tables cannot be recovered")

    async def _next_rows(self) -> list[Any]:
        """The rows that are there, at least one; none where none comes for a while."""
        queue = self.tables.changelog_queue
        rows: list[Any] = []
        try:
            async with asyncio.timeout(LOOK_AGAIN):
                rows.append(await queue.get())
        except TimeoutError:
            return rows
        while len(rows) < AT_ONCE and not queue.empty():
            rows.append(queue.get_nowait())
        return rows

    def _apply(self, rows: Sequence[Any]) -> None:
        """Bring rows into their tables, but those that are there already."""
        now, of_table = time.monotonic(), defaultdict[Any, list[Any]](list)
        for event in rows:
            tp, offset = event.message.tp, event.message.offset
            if tp not in self.active_tps:
                log.warning("a row of %s, which this worker does not hold", tp.topic)
                continue
            self._active_events_received_at[tp] = now
            seen = self.active_offsets.get(tp)
            if seen is None or offset > seen:
                self.active_offsets[tp] = offset
                of_table[self.tp_to_table[tp]].append(event)
        for table, events in of_table.items():
            table.apply_changelog_batch(events)

    def _end_where_whole(self) -> None:
        if self.in_recovery and not self.need_recovery():
            self._set_recovery_ended()
            self.signal_recovery_end.set()
        if not self.tables.standbys_ready:  # there are none: `table_standby_replicas` is 0
            self.tables.on_standbys_ready()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Faust's, which takes the next rebalance, where it ends the wait for rows, for the last of them.

        Tables that miss rows would count as recovered: what they do not show no source would ever delete.
        """
        await self._wait(asyncio.sleep(0))  # raises where another rebalance has begun, or everything ends
        await super().on_recovery_completed(generation_id)


class QuickTables(TableManager):  # type: ignore[misc]
    """Faust's manager of tables, with this recovery and queue."""

    _recovery: Any

    @property
    def recovery(self) -> Any:
        """Made when it is first asked for."""
        if self._recovery is None:
            self._recovery = QuickRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
