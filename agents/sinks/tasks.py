"""Following a task of vCenter to its end, for every sink that begins one."""

import asyncio

from underhost.agents.sinks.ports import VCenterTasks
from underhost.schemas.errors import InputError, Unreachable

LOOK = 0.5
"""Seconds between two looks at a task."""


async def until_done(tasks: VCenterTasks, task: str, look: float) -> None:
    """Until the task has ended well. Raises Refused where it has failed, Unreachable where nobody can look any more."""
    try:
        while not await tasks.is_done(task):  # noqa: ASYNC110 - vCenter signals nothing
            await asyncio.sleep(look)
    except InputError as error:  # no login any more: what was begun goes on, and is not refused
        raise Unreachable(str(error)) from error
