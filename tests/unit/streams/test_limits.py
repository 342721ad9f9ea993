"""Limits of time that share one timer: each ends what takes too long, and nothing else."""

import asyncio

import pytest

from underhost.streams.limits import Limits


async def test_what_takes_longer_than_its_limit_ends_and_what_does_not_goes_on() -> None:
    limits, ended = Limits(), list[str]()

    async def waits(name: str, seconds: float) -> None:
        with limits.begin(seconds):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)

    long = asyncio.create_task(waits("long", 3600))
    await asyncio.sleep(0)
    for name, seconds in (("second", 0.02), ("first", 0.01)):
        with pytest.raises(TimeoutError):
            await waits(name, seconds)
    assert (ended, long.done()) == (["second", "first"], False)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long


async def test_the_shortest_limit_ends_first_whatever_was_begun_first() -> None:
    limits, ended = Limits(), list[str]()

    async def waits(name: str, seconds: float) -> None:
        with pytest.raises(TimeoutError), limits.begin(seconds):
            await asyncio.Event().wait()
        ended.append(name)

    await asyncio.gather(waits("third", 0.09), waits("first", 0.01), waits("second", 0.05))
    assert ended == ["first", "second", "third"]


async def test_a_limit_without_seconds_ends_only_when_it_is_ended() -> None:
    limits, begun = Limits(), asyncio.Event()

    async def waits() -> str:
        try:
            with limits.begin(None) as limit:
                begun.set()
                await asyncio.Event().wait()
        except TimeoutError:
            return limit.why
        return "it went on"

    waiting = asyncio.create_task(waits())
    await begun.wait()
    limits.end("another worker does it")
    assert await waiting == "another worker does it"


async def test_what_is_done_by_the_time_it_is_ended_is_done() -> None:
    limits, answered = Limits(), asyncio.get_running_loop().create_future()

    async def waits() -> str:
        with limits.begin(3600):
            return str(await answered)

    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
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

    async def waits() -> None:
        with limits.begin(3600):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    limits.end("it is over")
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_the_task_goes_on_after_a_limit_that_is_over() -> None:
    limits = Limits()
    for _ in range(2):
        with pytest.raises(TimeoutError), limits.begin(0):
            await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
