"""Fetching without losing records at a rebalance: a mixin in front of each transport's consumer.

A rebalance stops the flow, moves positions and resumes the flow. Faust does not wait for a fetch that is under way: the
fetch takes records from the new positions, Faust drops them because their partitions are paused, and they are never
read again. The recovery of a table that misses a record never ends. Here a fetch during which the flow was stopped
returns nothing, and positions are moved only after it has ended.
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
        """Faust's; the fetches under way return nothing."""
        self._stops += 1
        super().stop_flow()  # type: ignore[misc]

    async def on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Faust's, which stops the flow only if partitions were assigned before; this always does."""
        self.stop_flow()
        await super().on_partitions_revoked(revoked)  # type: ignore[misc]

    async def _getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        """Records by partition; None, which Faust ignores, where the flow was stopped meanwhile.

        Faust passes its live set of active partitions, which is empty for a moment when a recovery ends, and an empty
        set means all partitions to aiokafka. So a fetch keeps the partitions that it began with.
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
        """Move to these offsets, once no fetch is under way that could take records from them."""
        if self._fetching:
            await asyncio.wait(set(self._fetching))
        await super().seek_wait(partitions)  # type: ignore[misc]

    def keep_alive(self) -> None:
        """Say that the event loop is alive, though it may have nothing to fetch. Nothing to do by default."""
