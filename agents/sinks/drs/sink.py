"""DRS rules: carrying one out.

In: `drs-rule` commands. Out: what became of them. Only rules that the site owns by their name (`underhost-SITE-...`)
are ever written, of VMs that nodes of the site run on; a VM-Host rule never, whatever its name.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable

import msgspec

from underhost.agents.drs.names import owns
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, desired_of, outcome
from underhost.agents.sinks.own_vms import VmsAsked, require_own
from underhost.agents.sinks.ports import DrsWriter, Sink
from underhost.schemas.commands import DRS_RULE
from underhost.schemas.errors import Gone, InputError, Refused, UnderhostError
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import VM_RULES, DrsRule

DISABLED = "it is disabled: by vCenter, for a conflict with an older rule, or by a person"


class DesiredRule(msgspec.Struct, forbid_unknown_fields=True):
    """`Action.desired` of a rule that shall exist; `refuse` says why it shall not, though somebody asks for it."""

    cluster: str
    type: str = ""
    vms: list[str] = []
    mandatory: bool = False
    refuse: str = ""


class DrsSink(Sink):
    """Writes rules. `enabled` false is a dry run.

    One action at a time per cluster. `refresh` is called after each attempt to write: vCenter does not announce rules,
    so the watcher has to read them again.
    """

    kind = DRS_RULE

    def __init__(
        self,
        writer: DrsWriter,
        site: str,
        *,
        enabled: bool,
        vms: VmsAsked,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._writer, self._site, self._enabled, self._refresh = writer, site, enabled, refresh
        self._vms = vms
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def apply(self, action: Action) -> Outcome:
        """Read the live rules, make the one change that is missing, and say what happened."""
        try:
            cluster, name = split_target(action.target)
            if not owns(self._site, name):
                raise Refused(f"rule {name} is not one of site {self._site}'s own")
            wanted = _wanted(action, cluster) if action.desired else None
            if wanted is not None:
                require_own(self._vms, wanted.vms, self._site)
            async with self._busy[cluster]:
                return outcome(action, *await self._apply(cluster, name, wanted))
        except (Refused, InputError) as error:
            return outcome(action, REFUSED, str(error))
        except UnderhostError as error:
            return outcome(action, FAILED, str(error))

    async def _apply(self, cluster: str, name: str, wanted: DesiredRule | None) -> tuple[str, str]:
        """(result, reason)."""
        there = await self._live(cluster, name)
        if there is not None and (there.type not in VM_RULES or (wanted is not None and there.type != wanted.type)):
            raise Refused(f"the name {name} is taken by a rule of type {there.type}")
        if wanted is not None:
            return await self._write(cluster, name, wanted, there)
        if there is None:
            return NOOP, "the rule is not there"
        if not self._enabled:
            return DRY_RUN, f"would remove the rule of {len(there.vms)} VMs"
        try:
            await self._writer.remove_rule(cluster, there)
        except Gone:
            return NOOP, "the rule is not there"
        finally:
            self._refresh()
        return APPLIED, "removed the rule"

    async def _write(self, cluster: str, name: str, wanted: DesiredRule, there: DrsRule | None) -> tuple[str, str]:
        if there is not None and (there.vms, there.mandatory) == (wanted.vms, wanted.mandatory):
            return NOOP, "the rule is as it should be" if there.enabled else f"the rule is there, but {DISABLED}"
        if not self._enabled:
            return DRY_RUN, f"would {'add' if there is None else 'change'} the rule of VMs {', '.join(wanted.vms)}"
        # What a person has disabled stays so: a rule is switched off while a cluster is too small for it.
        rule = DrsRule(
            name=name,
            type=wanted.type,
            vms=wanted.vms,
            enabled=there is None or there.enabled,
            mandatory=wanted.mandatory,
            cluster=cluster,
            key=there.key if there is not None else 0,
        )
        try:
            if there is None:
                await self._writer.add_rule(cluster, rule)
            else:
                await self._writer.edit_rule(cluster, rule)
        finally:
            self._refresh()
        now = await self._live(cluster, name)
        if now is None:
            return FAILED, "the rule is not there after it was written"
        done = "added the rule" if there is None else "changed the rule"
        return APPLIED, done if now.enabled else f"{done}, but {DISABLED}"

    async def _live(self, cluster: str, name: str) -> DrsRule | None:
        return next((rule for rule in await self._writer.rules(cluster) if rule.name == name), None)


def split_target(target: str) -> tuple[str, str]:
    """(cluster, rule) of `drs-rule/CLUSTER/RULE`. Raises Refused for anything else."""
    kind, _, rest = target.partition("/")
    cluster, _, name = rest.rpartition("/")
    if kind != DRS_RULE or not cluster or not name:
        raise Refused(f"{target} is not the target of a DRS rule")
    return cluster, name


def _wanted(action: Action, cluster: str) -> DesiredRule:
    wanted = desired_of(action, DesiredRule, "a DRS rule command")
    if wanted.refuse:
        raise Refused(wanted.refuse)
    wanted.vms = sorted(set(wanted.vms))
    if wanted.type not in VM_RULES:
        raise Refused(f"a rule of type {wanted.type} is not ours to write")
    if wanted.cluster != cluster:
        raise Refused(f"the command names two clusters, {cluster} and {wanted.cluster}")
    if len(wanted.vms) < 2:
        raise Refused("a VM-VM rule needs at least two VMs")
    return wanted
