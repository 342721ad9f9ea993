"""The recovery of tables: when it is over, and what a row of it costs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from faust.tables.recovery import RebalanceAgain
from faust.types import TP

from underhost.streams.faust.app import build_app
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

PODS, NODES = TP("pods", 0), TP("nodes", 0)


@pytest.fixture
def tables(tmp_path: Path) -> Any:
    return build_app(Settings(kafka=KafkaSettings(embedded=tmp_path / "log.db")), app_id="t").tables


@pytest.mark.parametrize(
    ("ends", "read", "expected"),
    [
        pytest.param({}, {}, False, id="no partition is ours"),
        pytest.param({PODS: 7, NODES: 3}, {PODS: 7, NODES: 3}, False, id="every row is read"),
        pytest.param({PODS: 7, NODES: 3}, {PODS: 7, NODES: 2}, True, id="the last partition misses a row"),
        pytest.param({PODS: 7, NODES: 3}, {PODS: 0, NODES: 3}, True, id="the first partition misses rows"),
        pytest.param({PODS: 7}, {PODS: 9}, False, id="more is read than there was"),
        pytest.param({PODS: None}, {PODS: 0}, False, id="an end that is not known is not waited for"),
        pytest.param({PODS: 7}, {PODS: None}, False, id="nor is an offset that is not known"),
    ],
)
async def test_a_recovery_lasts_until_no_partition_misses_a_row(
    tables: Any, ends: Mapping[TP, int | None], read: Mapping[TP, int | None], expected: bool
) -> None:
    tables.recovery.active_highwaters.update(ends)
    tables.recovery.active_offsets.update(read)
    assert tables.recovery.need_recovery() is expected


async def test_a_recovery_during_which_partitions_move_is_not_completed(tables: Any) -> None:
    told = list[str]()

    async def complete(*_: object, **__: object) -> None:
        told.append("complete")

    tables.app.on_rebalance_complete.connect(complete, weak=False)
    tables.recovery.signal_recovery_start.set()
    with pytest.raises(RebalanceAgain):
        await tables.recovery.on_recovery_completed(0)
    assert told == []


class At(NamedTuple):
    """Where a row stands."""

    tp: TP
    offset: int


class TableOfNames:
    """A table that notes which rows it was given together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def apply_changelog_batch(self, rows: list[Any]) -> None:
        """Faust's."""
        self.batches.append([row.message.offset for row in rows])


@pytest.fixture
def recovering(tables: Any) -> Any:
    """A recovery of two partitions, whose tables note what they are given."""
    recovery = tables.recovery
    recovery.active_tps.update({PODS, NODES})
    recovery.tp_to_table.update({PODS: TableOfNames(), NODES: TableOfNames()})
    recovery.active_highwaters.update({PODS: 7, NODES: 3})
    return recovery


def put(recovery: Any, *rows: tuple[TP, int]) -> None:
    for tp, offset in rows:
        recovery.tables.changelog_queue.force_put_nowait(SimpleNamespace(message=At(tp, offset)))


async def test_the_rows_that_are_there_come_into_their_tables_together(recovering: Any) -> None:
    put(recovering, (PODS, 5), (NODES, 2), (PODS, 6))
    recovering._apply(await recovering._next_rows())
    assert recovering.tp_to_table[PODS].batches == [[5, 6]]
    assert recovering.tp_to_table[NODES].batches == [[2]]
    assert (recovering.active_offsets[PODS], recovering.active_offsets[NODES]) == (6, 2)


async def test_a_row_that_is_read_again_changes_nothing(recovering: Any) -> None:
    put(recovering, (PODS, 5), (PODS, 5), (PODS, 4), (PODS, 6))
    recovering._apply(await recovering._next_rows())
    assert recovering.tp_to_table[PODS].batches == [[5, 6]]


async def test_a_row_of_a_partition_that_is_not_held_is_left_out(recovering: Any) -> None:
    put(recovering, (TP("pods", 3), 9), (PODS, 5))
    recovering._apply(await recovering._next_rows())
    assert recovering.tp_to_table[PODS].batches == [[5]]


async def test_a_row_that_is_not_there_yet_is_waited_for(recovering: Any) -> None:
    taking = asyncio.ensure_future(recovering._next_rows())
    await asyncio.sleep(0)
    assert not taking.done()
    put(recovering, (PODS, 5))
    assert [row.message.offset for row in await taking] == [5]


async def test_the_event_loop_has_its_turn_between_many_rows(recovering: Any) -> None:
    put(recovering, *((PODS, offset) for offset in range(1_200)))
    assert [len(await recovering._next_rows()) for _ in range(3)] == [500, 500, 200]


async def test_a_recovery_is_over_with_the_last_row_of_the_last_partition(recovering: Any) -> None:
    recovering._set_recovery_started()
    told = []
    for rows in ([(PODS, 7)], [(NODES, 3)]):
        put(recovering, *rows)
        recovering._apply(await recovering._next_rows())
        recovering._end_where_whole()
        told.append(recovering.signal_recovery_end.is_set())
    assert told == [False, True]


async def test_rows_are_taken_by_one_task_of_ours(tables: Any) -> None:
    names = [task.fun.__qualname__ for task in tables.recovery._get_tasks()]
    assert [name for name in names if "slurp" in name] == ["QuickRecovery._slurp_changelogs"]
