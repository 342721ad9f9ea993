"""The end of a recovery, asked for at each record: found without counting what is left of every partition.

In: the offsets of Faust's recovery. Out: whether rows are missing. A worker of hundreds of partitions asks for each of
its rows, and Faust makes two tables of all partitions for an answer.
"""

from typing import Any

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery


class QuickRecovery(Recovery):  # type: ignore[misc]
    """Faust's recovery of tables."""

    def need_recovery(self) -> bool:
        """Whether a table of ours misses a row: the first one that does is enough."""
        offsets = self.active_offsets
        for partition, end in self.active_highwaters.items():
            if end is not None and (offset := offsets[partition]) is not None and offset < end:
                return True
        return False


class QuickTables(TableManager):  # type: ignore[misc]
    """Faust's manager of tables, with this recovery."""

    _recovery: Any  # declared by Faust without a type that holds for both

    @property
    def recovery(self) -> Any:
        """Made when it is first asked for."""
        if self._recovery is None:
            self._recovery = QuickRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
