"""An event loop that one seed decides: time moves only when nothing is left to do, threads are turns of the loop.

In: a clock and dice. Out: asyncio, but that waiting takes no time, that work for a thread is done in the loop after a
moment that the dice choose (in order for each executor), that a set of tasks is iterated over in one order
(`order.py`), and that a program of it can be killed or frozen as by a signal. A program is known by the context
variable `PROGRAM`, which its tasks inherit.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, ClassVar

from trust.simulation.clock import VirtualClock
from trust.simulation.order import OrderedFuture, OrderedTask

PROGRAM: ContextVar[int] = ContextVar("program", default=0)
"""The number of the program that a callback belongs to; 0 is the world outside."""
SLOW, SLOWEST = 0.1, 0.02
"""The share of turns in a thread that take time, and the most seconds that one takes."""
THINKS, LONGEST = 0.3, 4.0
"""The share of work beside the loop that takes long, and the most seconds that it takes."""
FORGET_FROM = 500
"""Tasks that have ended are forgotten once there are so many."""
TICK = 1e-6
"""Seconds that any turn in a thread takes: two turns of one thread never fall on one moment."""


class Stuck(Exception):
    """Nothing is left to do, and nothing is waited for."""


class Turn:
    """A callback that is planned: what asyncio asks of a handle, and no more, as a seed has 50,000 of them.

    Attributes:
        callback: None once it is cancelled. at: the loop's second that it is planned for, 0 for at once.
        program: whose it is.
    """

    __slots__ = ("args", "at", "callback", "context", "program")

    def __init__(self, at: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        self.at, self.args, self.context = at, args, context
        self.callback: Callable[..., object] | None = callback
        self.program = context.get(PROGRAM, 0)

    def cancel(self) -> None:
        """It does not come."""
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        """Whether it does not come."""
        return self.callback is None

    def when(self) -> float:
        """See `at`."""
        return self.at


class SeededLoop(asyncio.BaseEventLoop):
    """The loop of one seed.

    Attributes:
        steps: callbacks of programs so far.
        kill_at: the step at which `on_kill` is called, None for never.
    """

    def __init__(self, clock: VirtualClock, dice: random.Random) -> None:
        super().__init__()
        self.virtual, self._dice = clock, dice
        self.steps = 0
        self.kill_at: int | None = None
        self.on_kill: Callable[[], None] = lambda: None
        self._ready: deque[Turn] = deque()
        self._timers: list[tuple[float, int, Turn]] = []
        self._count = 0
        self._dead: set[int] = set()
        self._frozen = 0
        self._held: tuple[list[Turn], list[tuple[float, int, Turn]]] = ([], [])
        self._tasks: list[Any] = []
        self._most_tasks = FORGET_FROM
        self._buried: list[Any] = []
        self._free: dict[Any, float] = {}

    get_debug = staticmethod(bool)
    """Off: asked so often that a method of Python would be felt."""

    def time(self) -> float:
        """Virtual seconds."""
        return self.virtual.now

    def create_future(self) -> Any:
        """asyncio's, whose place in a set is the same whenever the seed is played."""
        return OrderedFuture(loop=self)

    def create_task(self, coro: Any, **options: Any) -> Any:
        """asyncio's, whose place in a set is the same whenever the seed is played."""
        self._tasks.append(task := OrderedTask(coro, loop=self, **options))
        hash(task)  # tasks are numbered as they are made
        if len(self._tasks) > self._most_tasks:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._most_tasks = 2 * len(self._tasks) + FORGET_FROM
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """asyncio's; nothing of a killed program is planned any more."""
        turn = Turn(0.0, callback, args, copy_context() if context is None else context)
        program = turn.program
        if not program:
            self._ready.append(turn)
        elif program == self._frozen:
            self._held[0].append(turn)
        elif program not in self._dead:
            self._ready.append(turn)
            self.steps += 1
            if self.steps == self.kill_at:
                self.on_kill()
        return turn

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """asyncio's, with which it ends generators that nobody holds any more; there is one thread."""
        turn = Turn(0.0, callback, args, copy_context() if context is None else context)
        self._ready.append(turn)
        return turn

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """See `call_at`."""
        return self.call_at(self.virtual.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """asyncio's; nothing of a killed program is planned any more."""
        turn = Turn(when, callback, args, copy_context() if context is None else context)
        if turn.program not in self._dead:
            self._count += 1
            heapq.heappush(self._timers, (when, self._count, turn))
        return turn

    def _run_once(self) -> None:
        """Everything that is ready now; before, if nothing is, the time moves on. Raises Stuck."""
        ready, timers = self._ready, self._timers
        while timers and (timers[0][2].callback is None or timers[0][0] <= self.virtual.now or not ready):
            when, _, turn = heapq.heappop(timers)
            if turn.callback is not None:
                self.virtual.now = max(self.virtual.now, when)
                ready.append(turn)
        if not ready:
            raise Stuck("every task waits for another one")
        for _ in range(len(ready)):
            turn = ready.popleft()
            if turn.callback is None:
                continue
            try:
                turn.context.run(turn.callback, *turn.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio does
                told = {"message": f"exception in {turn.callback}", "exception": error, "handle": turn}
                self.call_exception_handler(told)

    # ------------------------------------------------------------------------------------------------------- programs
    def freeze(self, program: int) -> None:
        """As SIGSTOP: no callback of this program runs until `thaw`; what it waits for comes then, all at once."""
        self._frozen = program
        self._held = (
            [turn for turn in self._ready if turn.program == program],
            [timer for timer in self._timers if timer[2].program == program],
        )
        for turn in self._held[0]:
            self._ready.remove(turn)
        self._timers[:] = [timer for timer in self._timers if timer[2].program != program]
        heapq.heapify(self._timers)

    def thaw(self) -> None:
        """The frozen program goes on."""
        (ready, timers), self._held, self._frozen = self._held, ([], []), 0
        self._ready.extend(ready)
        for timer in timers:
            heapq.heappush(self._timers, timer)

    def kill(self, program: int) -> None:
        """As SIGKILL: no callback of this program runs from now on; its tasks neither end nor clean up."""
        self.thaw()
        self._dead.add(program)
        for turn in (*self._ready, *(timer[2] for timer in self._timers)):
            if turn.program == program:
                turn.cancel()
        # Kept alive until the seed is over: what their collection would run must not run between two steps.
        self._buried.extend(task for task in self._tasks if not task.done())
        self._tasks = []

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

    # ------------------------------------------------------------------------------------- what a loop of files needs
    def _process_events(self, events: Any) -> None:
        """There are no files."""

    def _write_to_self(self) -> None:
        """No other thread has to wake this loop."""


class BesideInTurns:
    """In the place of `Beside`: the work is done in the running loop, after a moment that the dice choose."""

    dice: ClassVar[random.Random] = random.Random(0)

    def __init__(self, name: str) -> None:
        self._done: asyncio.Future[Any] | None = None
        self.took = self._takes = 0.0

    @property
    def is_busy(self) -> bool:
        """See `Beside`."""
        return self._done is not None

    def begin(self, work: Callable[[], Any]) -> None:
        """See `Beside`."""
        loop = asyncio.get_running_loop()
        done = self._done = loop.create_future()

        def think() -> None:
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - whoever takes it is told
                done.set_exception(error)

        self._takes = self.dice.random() * LONGEST if self.dice.random() < THINKS else 0.0
        loop.call_later(self._takes, think)

    def take(self) -> Any:
        """See `Beside`."""
        if self._done is None or not self._done.done():
            return None
        done, self._done, self.took = self._done, None, self._takes
        return done.result()

    def forget(self) -> None:
        """See `Beside`."""
        self._done = None
