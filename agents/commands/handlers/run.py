"""`underhost run`: the pipeline, until SIGTERM or Ctrl-C.

In: a configuration file, environment and flags. Out: a running worker; nothing is printed, what happens is logged. Exit
codes: 0 after a signal, 2 for a bad configuration, 3 where a backend is unreachable or refuses before it has answered
once.
"""

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import Any

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output import progress
from underhost.agents.commands.output.errors import leave
from underhost.agents.pipeline import event_loop, logs
from underhost.agents.pipeline.roles import parse_roles
from underhost.agents.worker import run_worker

END_WITHIN = 9.0
"""Seconds from a signal to the end of the process, whatever hangs."""
LEAVE_WITHIN = 2.0
"""Seconds that the event loop may take to end after the worker has failed."""


def handle(where: Topics, given: dict[str, Any], agents: str | None, verbosity: int) -> None:
    """Run a worker with these settings on top of file and environment, and with these roles only."""
    settings = settings_of(where, **given)
    names = [name.strip() for name in agents.split(",") if name.strip()] if agents is not None else None
    roles = parse_roles(names)
    progress.say("starting")  # before the log is set up: its lines go above the one that waits
    logs.configure(verbosity)

    leaving: list[threading.Timer] = []

    async def until_stopped() -> None:
        stop = asyncio.Event()
        beside = [asyncio.ensure_future(each) for each in (_end_anyway(stop), event_loop.keep_memory_low())]
        try:
            await run_worker(settings, roles=roles, stop=stop, on_waiting=_say_waiting)
        except Exception as error:
            leaving.append(_leave_anyway(error))
            raise
        finally:
            for task in beside:
                task.cancel()

    try:
        event_loop.run(until_stopped())
    finally:
        progress.end()
        for timer in leaving:
            timer.cancel()


async def _end_anyway(stop: asyncio.Event) -> None:
    """A thread of a library that hangs in a dead connection would keep the process: a told end is one within 10 s.

    What is left undone then is what a kill leaves undone: the next start does it.
    """
    await stop.wait()
    logs.hush()
    timer = threading.Timer(END_WITHIN, os._exit, [0])
    timer.daemon = True
    timer.start()


def _leave_anyway(error: Exception) -> threading.Timer:
    """What the worker failed of is said, and the process ended, though a task or thread of a library goes on."""
    timer = threading.Timer(LEAVE_WITHIN, leave, [error])
    timer.daemon = True
    timer.start()
    return timer


def _say_waiting(reasons: Mapping[str, str]) -> None:
    """What the start waits for, on a terminal; nothing means that all is ready."""
    if reasons:
        progress.say("waiting: " + "; ".join(f"{what}: {why}" for what, why in reasons.items()))
    else:
        progress.end()
        event_loop.settle()
