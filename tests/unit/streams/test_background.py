"""Work beside everything else: its result, its errors, and that nobody waits for it who need not."""

import asyncio
import os
import sys
import threading
import time

import pytest

from underhost.streams.background import LOWEST, Beside, in_background


class Panic(BaseException):
    """No Exception, as polars raises it."""


async def test_the_result_comes_from_another_thread_of_the_lowest_priority() -> None:
    def work() -> tuple[str, int]:
        return threading.current_thread().name, os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    name, priority = await in_background(work, "beside")
    assert name == "beside"
    assert priority == LOWEST or sys.platform != "linux"


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        pytest.param(ValueError("no"), ValueError, id="an exception as it is"),
        pytest.param(Panic("no"), RuntimeError, id="what is none as one"),
    ],
)
async def test_what_the_work_raises_is_raised(raised: BaseException, seen: type[Exception]) -> None:
    def work() -> None:
        raise raised

    with pytest.raises(seen, match="no"):
        await in_background(work, "beside")


async def test_who_is_cancelled_waits_no_longer() -> None:
    goes_on = threading.Event()
    waiting = asyncio.ensure_future(in_background(goes_on.wait, "beside"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    goes_on.set()
    assert waiting.cancelled()


def taken(beside: Beside[int]) -> int:
    """The result, as soon as it is there."""
    while (found := beside.take()) is None:
        pass
    return found


def test_a_result_is_looked_for_and_taken_once() -> None:
    beside, goes_on = Beside[int]("beside"), threading.Event()
    beside.begin(lambda: goes_on.wait() + 41)
    assert (beside.is_busy, beside.take()) == (True, None)
    goes_on.set()
    assert (taken(beside), beside.is_busy, beside.take()) == (42, False, None)


def test_what_work_costs_is_the_processors_time() -> None:
    def work() -> int:
        while time.thread_time() < 0.02:
            pass
        return 7

    beside = Beside[int]("beside")
    beside.begin(work)
    assert (taken(beside), beside.took >= 0.02) == (7, True)


def test_what_was_raised_is_raised_once() -> None:
    beside = Beside[int]("beside")
    beside.begin(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        taken(beside)
    assert (beside.is_busy, beside.take()) == (False, None)


def test_work_that_was_begun_anew_or_forgotten_is_of_no_interest() -> None:
    beside, goes_on = Beside[int]("beside"), threading.Event()
    beside.begin(lambda: goes_on.wait() + 0)
    beside.begin(lambda: 7)
    assert taken(beside) == 7
    beside.begin(lambda: goes_on.wait() + 0)
    beside.forget()
    goes_on.set()
    assert (beside.is_busy, beside.take()) == (False, None)
