"""Limits of time that share one timer: each ends what takes too long, and nothing else."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from underhost.streams.limits import Limits

T = TypeVar("T")


async def waits(limits: Limits, seconds: float | None, ended: list[str] | None = None, name: str = "") -> None:
    """For ever, within a limit; its name is among the `ended` when it ends, however that comes."""
    try:
        with limits.begin(seconds):
            await asyncio.Event().wait()
    finally:
        if ended is not None:
            ended.append(name)


async def begun(waiting: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """A task that waits by now."""
    task = asyncio.create_task(waiting)
    await asyncio.sleep(0)
    return task


async def test_what_is_over_first_ends_first_and_what_was_begun_before_goes_on() -> None:
    limits, ended = Limits(), list[str]()
    long = await begun(waits(limits, 3600, ended, "long"))
    for name, seconds in (("first", 0.02), ("second", 0.01)):
        with pytest.raises(TimeoutError):
            await waits(limits, seconds, ended, name)
    assert (ended, long.done()) == (["first", "second"], False)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long


async def test_what_is_left_when_the_first_one_has_ended_ends_in_its_turn() -> None:
    limits = Limits()
    failed = await asyncio.gather(waits(limits, 0.05), waits(limits, 0.01), return_exceptions=True)
    assert [type(error) for error in failed] == [TimeoutError, TimeoutError]


async def test_a_limit_without_seconds_ends_only_when_it_is_ended() -> None:
    limits = Limits()

    async def why() -> str:
        try:
            with limits.begin(None) as limit:
                await asyncio.Event().wait()
        except TimeoutError:
            return limit.why
        return "it went on"

    waiting = await begun(why())
    limits.end("another worker does it")
    assert await waiting == "another worker does it"


async def test_what_is_done_by_the_time_it_is_ended_is_done() -> None:
    limits, answered = Limits(), asyncio.get_running_loop().create_future()

    async def answer() -> str:
        with limits.begin(3600):
            return str(await answered)

    waiting = await begun(answer())
    answered.set_result("written")
    limits.end("another worker does it")
    assert await waiting == "written"


async def test_a_moved_limit_ends_at_its_new_time() -> None:
    limits, answered = Limits(), asyncio.get_running_loop().create_future()
    with limits.begin(0.01) as limit:
        limits.move(3600)
        asyncio.get_running_loop().call_later(0.05, answered.set_result, None)
        await answered
    assert not limit.is_over
    with pytest.raises(TimeoutError), limits.begin(3600):
        limits.move(0.01)
        await asyncio.Event().wait()


async def test_a_timeout_of_the_awaited_itself_is_no_end_of_the_limit() -> None:
    with pytest.raises(TimeoutError, match="of its own"), Limits().begin(3600) as limit:
        raise TimeoutError("of its own")
    assert not limit.is_over


@pytest.mark.parametrize("outer", [pytest.param(0.01, id="outer"), pytest.param(3600, id="inner")])
async def test_of_two_limits_the_one_that_is_over_raises(outer: float) -> None:
    with pytest.raises(TimeoutError), Limits().begin(outer) as without:
        try:
            with Limits().begin(3600 if outer < 1 else 0.01) as within:
                await asyncio.Event().wait()
        except TimeoutError:
            assert within.is_over
            raise
    assert (without.is_over, within.is_over) == (outer < 1, outer > 1)


async def test_who_is_cancelled_besides_is_cancelled() -> None:
    limits = Limits()
    waiting = await begun(waits(limits, 3600))
    limits.end("it is over")
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_the_task_goes_on_after_a_limit_that_is_over() -> None:
    limits = Limits()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await waits(limits, 0)
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
