"""The recovery of tables at less cost for each row, as a start reads all of them.

In: Faust's recovery and its queue of rows. Out: whether rows are missing, without counting what is left of every
partition; a row that is there, without a task for it; no end of a recovery that a rebalance has cut off.
"""

import asyncio
from typing import Any

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from mode.utils.queues import ThrowableQueue


class RowQueue(ThrowableQueue):  # type: ignore[misc]
    """Rows that are read and not yet in their tables."""

    def get(self) -> Any:
        """The next row. Faust waits for each with a limit: asyncio makes a task of a coroutine, but not of a future."""
        if self.empty():
            return super().get()
        row = asyncio.get_running_loop().create_future()
        row.set_result(self.get_nowait())
        return row


class QuickRecovery(Recovery):  # type: ignore[misc]
    """Faust's recovery of tables."""

    def need_recovery(self) -> bool:
        """Whether a table of ours misses a row: the first one that does is enough."""
        offsets = self.active_offsets
        for partition, end in self.active_highwaters.items():
            if end is not None and (offset := offsets[partition]) is not None and offset < end:
                return True
        return False

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Faust's, which takes the next rebalance, where it ends the wait for rows, for the last of them.

        Tables that miss rows would count as recovered: what they do not show no source would ever delete.
        """
        await self._wait(asyncio.sleep(0))  # raises where another rebalance has begun, or everything ends
        await super().on_recovery_completed(generation_id)


class QuickTables(TableManager):  # type: ignore[misc]
    """Faust's manager of tables, with this recovery and queue."""

    _changelog_queue: Any
    _recovery: Any

    @property
    def changelog_queue(self) -> Any:
        """Made when it is first asked for."""
        if self._changelog_queue is None:
            self._changelog_queue = RowQueue(
                maxsize=self.app.conf.stream_buffer_maxsize, flow_control=self.app.flow_control, clear_on_resume=True
            )
        return self._changelog_queue

    @property
    def recovery(self) -> Any:
        """Made when it is first asked for."""
        if self._recovery is None:
            self._recovery = QuickRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
