"""What is begun in a vCenter as a task, and what becomes of it; for writers whose changes take their time.

In: a kept session, what is asked of it. Out: answers, and whether a task has ended. What a task is for is the writer's
business.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

from pyVmomi import vim, vmodl

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.client import Session, connect, translated
from underhost.streams.vsphere.kept_session import Connect, KeptSession

T = TypeVar("T")

UNDER_WAY = (vim.TaskInfo.State.queued, vim.TaskInfo.State.running)


class VSphereTasks:
    """The tasks of one vCenter. Logs in at the first call and again when the session was lost.

    All methods raise InputError as well when the password file is gone.
    """

    def __init__(self, settings: VSphereSettings, *, connect: Connect = connect) -> None:
        self._session = KeptSession(settings, connect)

    async def is_done(self, task: str) -> bool:
        """See `VCenterTasks.is_done`."""

        def look(session: Session) -> tuple[bool, str]:
            info = vim.Task(task, session.content.rootFolder._stub).info
            if info.state == vim.TaskInfo.State.error and info.error is not None:
                return True, str(translated(session.address, info.error))
            return info.state not in UNDER_WAY, ""

        try:
            is_done, why = await self.asked(look)
        except Refused as error:  # a login, or a right: what was begun goes on, and is not refused
            raise Unreachable(str(error)) from error
        if why:
            raise Refused(why)
        return is_done

    async def asked(self, ask: Callable[[Session], T]) -> T:
        """What a function that blocks finds out in the session."""

        async def use(session: Session) -> T:
            return await session.call(ask, session)

        return await self._session.use(use)

    async def close(self) -> None:
        """Log out."""
        await self._session.close()


def read(session: Session, one: Any, *paths: str) -> dict[str, Any]:
    """Narrow properties of one object, all of one moment. Blocks. Raises the fault that withholds one."""
    return read_all(session, [one], *paths)[str(one._GetMoId())]


def read_all(session: Session, objects: Collection[Any], *paths: str) -> dict[str, dict[str, Any]]:
    """Narrow properties of objects of one kind, of which there is one at least, by reference. Blocks.

    Raises the fault that withholds one: that of a missing right, or, after the session's end, NotAuthenticated.
    """
    collect = vmodl.query.PropertyCollector
    kind = type(next(iter(objects)))
    spec = collect.FilterSpec(
        objectSet=[collect.ObjectSpec(obj=one) for one in objects],
        propSet=[collect.PropertySpec(type=kind, pathSet=list(paths))],
    )
    collector = session.content.propertyCollector
    found: dict[str, dict[str, Any]] = {}
    page = collector.RetrievePropertiesEx([spec], collect.RetrieveOptions())
    while page is not None:
        for missing in (missing for each in page.objects for missing in each.missingSet):
            raise missing.fault
        found |= {str(each.obj._GetMoId()): {one.name: one.val for one in each.propSet} for each in page.objects}
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    return found


def running(one: Any, kinds: Collection[str]) -> str:
    """The task of these kinds that is under way for an object, "" where there is none. Blocks."""
    found = ""
    for each in one.recentTask:
        with suppress(vmodl.fault.ManagedObjectNotFound):  # vCenter forgets a task some minutes after its end
            info = each.info
            if info.state in UNDER_WAY and info.descriptionId in kinds:
                found = str(each._GetMoId())
    return found
