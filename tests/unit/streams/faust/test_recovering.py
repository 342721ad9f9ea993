"""The recovery of tables: when it is over, and what a row of it costs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


async def test_a_row_that_is_there_is_taken_without_a_task(tables: Any) -> None:
    tables.changelog_queue.force_put_nowait("a row")
    before = asyncio.all_tasks()
    taking = asyncio.ensure_future(tables.changelog_queue.get())
    assert (asyncio.all_tasks(), await taking) == (before, "a row")


async def test_a_row_that_is_not_there_yet_is_waited_for(tables: Any) -> None:
    taking = asyncio.ensure_future(tables.changelog_queue.get())
    await asyncio.sleep(0)
    assert not taking.done()
    tables.changelog_queue.force_put_nowait("a row")
    assert await taking == "a row"


async def test_whoever_waits_for_a_row_is_told_of_an_error(tables: Any) -> None:
    taking = asyncio.ensure_future(tables.changelog_queue.get())
    await asyncio.sleep(0)
    await tables.changelog_queue.throw(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        await taking
