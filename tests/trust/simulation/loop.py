"""An event loop that one seed decides: time moves only when nothing is left to do, threads are turns of the loop.

In: a clock and dice. Out: asyncio, but that waiting takes no time, that work for a thread is done in the loop after a
moment that the dice choose (in order for each executor), and that a program of it can be killed: none of its
callbacks runs from then on. A killed program is known by the context variable `PROGRAM`, which its tasks inherit.
"""

import asyncio
import heapq
import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from trust.simulation.clock import VirtualClock

PROGRAM: ContextVar[int] = ContextVar("program", default=0)
"""The number of the program that a callback belongs to; 0 is the world outside."""
SLOW, SLOWEST = 0.1, 0.02
"""The share of turns in a thread that take time, and the most seconds that one takes."""
TICK = 1e-6
"""Seconds that any turn in a thread takes: two turns of one thread never fall on one moment."""


class Stuck(Exception):
    """Nothing is left to do, and nothing is waited for."""


class _NoFiles:
    """What a loop selects from: there are no files, so the time of the wait is skipped."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def select(self, timeout: float | None) -> list[Any]:
        """Move the time on by the timeout. Raises Stuck where there is none."""
        if timeout is None:
            raise Stuck("every task waits for another one")
        self._clock.now += max(0.0, timeout)
        return []


class SeededLoop(asyncio.BaseEventLoop):
    """The loop of one seed.

    Attributes:
        steps: callbacks of programs so far.
        kill_at: the step at which `on_kill` is called, None for never.
    """

    def __init__(self, clock: VirtualClock, dice: random.Random) -> None:
        super().__init__()
        self._selector = _NoFiles(clock)
        self.virtual, self._dice = clock, dice
        self.steps = 0
        self.kill_at: int | None = None
        self.on_kill: Callable[[], None] = lambda: None
        self._dead: set[int] = set()
        self._frozen = 0
        self._held: list[Any] = []
        self._buried: list[Any] = []
        self._free: dict[Any, float] = {}

    def time(self) -> float:
        """Virtual seconds."""
        return self.virtual.now

    def _process_events(self, events: Any) -> None:
        """There are no files."""

    def _write_to_self(self) -> None:
        """No other thread has to wake this loop."""

    # ------------------------------------------------------------------------------------------------------- programs
    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """asyncio's; nothing of a killed program is planned any more."""
        handle = super().call_soon(callback, *args, context=context)
        program = _program_of(handle)
        if program:
            if program in self._dead:
                handle.cancel()
            elif program == self._frozen:
                self._held.append(self._ready.pop())  # type: ignore[attr-defined]
            else:
                self.steps += 1
                if self.steps == self.kill_at:
                    self.on_kill()
        return handle

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """asyncio's; nothing of a killed program is planned any more."""
        handle = super().call_at(when, callback, *args, context=context)
        if _program_of(handle) in self._dead:
            handle.cancel()
        return handle

    def freeze(self, program: int) -> None:
        """As SIGSTOP: no callback of this program runs until `thaw`; what it waits for comes then, all at once."""
        self._frozen = program
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        self._held = [handle for handle in (*ready, *scheduled) if _program_of(handle) == program]
        for queue in (ready, scheduled):
            others = [handle for handle in queue if _program_of(handle) != program]
            queue.clear()
            queue.extend(others)
        heapq.heapify(scheduled)

    def thaw(self) -> None:
        """The frozen program goes on."""
        held, self._held, self._frozen = self._held, [], 0
        for handle in held:
            if isinstance(handle, asyncio.TimerHandle):
                heapq.heappush(self._scheduled, handle)  # type: ignore[attr-defined]
            else:
                self._ready.append(handle)  # type: ignore[attr-defined]

    def kill(self, program: int) -> None:
        """No callback of this program runs from now on; its tasks neither end nor clean up."""
        self.thaw()
        self._dead.add(program)
        for handle in (*self._ready, *self._scheduled):  # type: ignore[attr-defined]
            if _program_of(handle) == program:
                handle.cancel()
        # Kept alive until the seed is over: what their collection would run must not run between two steps.
        self._buried.extend(asyncio.all_tasks(self))

    # -------------------------------------------------------------------------------------------------------- threads
    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Do the work in this loop: at once or after a moment, but in the order of the calls of each executor."""
        future = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                future.set_exception(error)
            else:
                future.set_result(result)

        begin = self.virtual.now
        if self._dice.random() < SLOW:
            begin += self._dice.random() * SLOWEST
        if executor is not None:
            begin = self._free[executor] = max(begin, self._free.get(executor, 0.0) + TICK)
        if begin > self.virtual.now:
            self.call_at(begin, work)
        else:
            self.call_soon(work)
        return future


def _program_of(handle: Any) -> int:
    context = handle._context
    return context.get(PROGRAM, 0) if context is not None else 0
