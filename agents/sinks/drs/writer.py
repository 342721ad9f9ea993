"""Edits VM-VM rules in vCenter; a `DrsWriter`.

One change at a time per cluster: read, one rule in one task, wait for the task, read again and compare. Touches only
rules whose name says that they are the site's own, whoever asks. What the change is for is the sink's business.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from pyVmomi import vim

from underhost.agents.drs.names import owns
from underhost.schemas.errors import Conflict, Gone, Refused, Unreachable
from underhost.schemas.vsphere import OTHER, DrsRule
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.client import Session, SessionLost, connect, translated
from underhost.streams.vsphere.kept_session import Connect, KeptSession
from underhost.streams.vsphere.records import cluster_name
from underhost.streams.vsphere.rules import info_of, rule_of

TASK_TIMEOUT = 30.0
"""Seconds for one reconfiguration; vCenter takes one or two."""
TASK_LOOK = 0.2
"""Seconds between two looks at a task."""


class VSphereDrsWriter:
    """Rules of one vCenter's clusters. Logs in at the first call and again when the session was lost.

    Only rules that `site` owns are written. All methods raise InputError as well when the password file is gone.
    """

    def __init__(
        self,
        settings: VSphereSettings,
        site: str,
        *,
        connect: Connect = connect,
    ) -> None:
        self._site, self._session = site, KeptSession(settings, connect)
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def rules(self, cluster: str) -> Sequence[DrsRule]:
        """See `DrsWriter.rules`. Refused: no such cluster, or more than one of this name."""
        return await self._session.use(lambda session: self._read(session, cluster))

    async def add_rule(self, cluster: str, rule: DrsRule) -> None:
        """See `DrsWriter.add_rule`. Refused: DRS is off."""

        def spec(infos: Sequence[Any]) -> Any:
            if any(info.name == rule.name for info in infos):
                raise Conflict(f"cluster {cluster}: the name {rule.name} is taken")
            return vim.cluster.RuleSpec(operation="add", info=info_of(rule))

        await self._change(cluster, rule, spec)
        await self._verify(cluster, rule)

    async def edit_rule(self, cluster: str, rule: DrsRule) -> None:
        """See `DrsWriter.edit_rule`. Refused: DRS is off."""

        def spec(infos: Sequence[Any]) -> Any:
            info = _own(infos, cluster, rule)
            # The server's own object goes back, so that what we do not know of it (its uuid) stays.
            info.vm = [vim.VirtualMachine(moref) for moref in rule.vms]
            info.mandatory = rule.mandatory
            info.enabled = rule.enabled
            return vim.cluster.RuleSpec(operation="edit", info=info)

        await self._change(cluster, rule, spec)
        await self._verify(cluster, rule)

    async def remove_rule(self, cluster: str, rule: DrsRule) -> None:
        """See `DrsWriter.remove_rule`. Gone: no such rule; nothing of another name is removed in its place."""

        def spec(infos: Sequence[Any]) -> Any:
            return vim.cluster.RuleSpec(operation="remove", removeKey=_own(infos, cluster, rule).key)

        await self._change(cluster, rule, spec, needs_drs=False)
        if any(now.name == rule.name for now in await self.rules(cluster)):
            raise Conflict(f"cluster {cluster}: rule {rule.name} is still there after its removal")

    async def close(self) -> None:
        """Log out."""
        await self._session.close()

    async def _change(
        self, cluster: str, rule: DrsRule, spec: Callable[[Sequence[Any]], Any], *, needs_drs: bool = True
    ) -> None:
        """Read the rules, make the one change that `spec` derives from them, and wait for its task."""
        if not owns(self._site, rule.name):
            raise Refused(f"rule {rule.name} is not one of site {self._site}'s own")
        async with self._busy[cluster]:
            await self._session.use(lambda session: self._reconfigure(session, cluster, spec, needs_drs))

    async def _reconfigure(
        self, session: Session, cluster: str, spec: Callable[[Sequence[Any]], Any], needs_drs: bool
    ) -> None:
        def start() -> Any:
            target = _find(session, cluster)
            configuration = target.configurationEx
            if needs_drs and not (configuration.drsConfig is not None and configuration.drsConfig.enabled):
                raise Refused(f"cluster {cluster}: DRS is off")
            change = vim.cluster.ConfigSpecEx(rulesSpec=[spec(configuration.rule)])
            return target.ReconfigureComputeResource_Task(change, True)  # modify: False would reset all else

        task = await session.call(start)
        try:
            async with asyncio.timeout(TASK_TIMEOUT):
                while True:
                    info = await session.call(lambda: task.info)
                    if info.state == vim.TaskInfo.State.success:
                        return
                    if info.state == vim.TaskInfo.State.error:
                        raise translated(session.address, info.error)
                    await asyncio.sleep(TASK_LOOK)
        except TimeoutError:
            raise Unreachable(f"cluster {cluster}: the change was not done within {TASK_TIMEOUT:.0f} s") from None
        except SessionLost as error:
            # The change may have happened: it must not be sent a second time by itself.
            raise Unreachable(str(error)) from error

    async def _verify(self, cluster: str, rule: DrsRule) -> None:
        for now in await self.rules(cluster):
            if now.name == rule.name:
                if (now.type, now.vms, now.mandatory) == (rule.type, sorted(rule.vms), rule.mandatory):
                    return
                raise Conflict(f"cluster {cluster}: rule {rule.name} is not as it was written")
        raise Conflict(f"cluster {cluster}: rule {rule.name} is not there after it was written")

    async def _read(self, session: Session, cluster: str) -> Sequence[DrsRule]:
        return await session.call(
            lambda: [rule_of(cluster, info) for info in _find(session, cluster).configurationEx.rule]
        )


def _own(infos: Sequence[Any], cluster: str, rule: DrsRule) -> Any:
    """The server's rule with this key, if it is still the same VM-VM rule."""
    for info in infos:
        if info.key == rule.key:
            now = rule_of(cluster, info)
            if now.name == rule.name and now.type == rule.type and now.type != OTHER:
                return info
    raise Gone(f"cluster {cluster}: rule {rule.name} with key {rule.key} is not there any more")


def _find(session: Session, cluster: str) -> Any:
    """The cluster with this name, or with the name that tells it from another one. Blocks."""
    content = session.content
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.ClusterComputeResource], True)
    try:
        found = [item for item in view.view if cluster in (item.name, cluster_name(item.name, item._GetMoId()))]
    finally:
        view.DestroyView()
    if len(found) != 1:
        count = "no cluster" if not found else f"{len(found)} clusters"
        raise Refused(f"vCenter {session.address}: {count} named {cluster}")
    return found[0]
