"""What Faust's consumers need so that no record is lost at a rebalance: in front of every transport's own consumer.

A rebalance stops the flow, moves positions, and lets the flow go on. Faust forgets the fetch that is under way then: it
takes records from the new positions and drops them, for their partitions are paused, and nobody reads them again. A
table's recovery that misses a record so never ends; a source's record that is missed so is missed for ever. Here a
fetch that a stop has overtaken gives nothing, and positions are moved once it has ended.
"""

import asyncio
from collections.abc import Mapping
from typing import Any


class CarefulFetches:
    """Mixin of a Faust consumer; the transport's class comes after it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._stops = 0
        self._fetching: set[asyncio.Future[None]] = set()
        super().__init__(*args, **options)

    def stop_flow(self) -> None:
        """Faust's, and what is being fetched is for nobody any more."""
        self._stops += 1
        super().stop_flow()  # type: ignore[misc]

    async def on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Faust's; it stops the flow itself only where something was assigned before."""
        self.stop_flow()
        await super().on_partitions_revoked(revoked)  # type: ignore[misc]

    async def _getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        """Records by partition; None, which Faust leaves alone, where the flow was stopped meanwhile.

        Faust fetches by its live set of active partitions, which is empty for a moment when a recovery ends, and to
        aiokafka no partitions means all of them: a fetch keeps the partitions that it began with.
        """
        these, stops = None if active_partitions is None else set(active_partitions), self._stops
        if not self.flow_active:  # type: ignore[attr-defined]
            return None
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fetching.add(ended)
        try:
            records = await super()._getmany(these, timeout)  # type: ignore[misc]
        finally:
            self._fetching.discard(ended)
            ended.set_result(None)
        return records if stops == self._stops else None

    async def seek_wait(self, partitions: Mapping[Any, int]) -> None:
        """Move to these offsets, once no fetch is under way that could take records from there."""
        if self._fetching:
            await asyncio.wait(set(self._fetching))
        await super().seek_wait(partitions)  # type: ignore[misc]

    def keep_alive(self) -> None:
        """The event loop that handles the records lives, though it may have nothing to fetch."""
