"""DRS rules: which are missing (decider), and carrying one out (sink).

In: snapshots with the rules as vCenter holds them, and the VM-VM rules that the pods need (`engine.drs_cover`). Out:
actions `drs-rule`, and their outcomes. Only rules that the site owns by their name (`underhost-SITE-...`) are ever
ordered or written, and a VM-Host rule never, whatever its name.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from underhost.agents.drs.cover import desired_rules, owns
from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, order, outcome
from underhost.agents.sinks.ports import Decider, DrsWriter, Sink
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.commands import DRS_RULE
from underhost.schemas.errors import Gone, InputError, Refused, UnderhostError
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import DrsRule

VM_RULES = ("anti-affinity", "affinity")
MINUTE = 60.0
DISABLED = "it is disabled: by vCenter, for a conflict with an older rule, or by a person"


@dataclass(frozen=True)
class Pacing:
    """Pauses in seconds.

    Attributes:
        steady: so long a change must have been wanted unchanged: while pods are being bound, every evaluation wants
            another one, and each that is ordered counts as an edit.
        edits: orders per minute and cluster: every changed rule may move VMs.
        lost: an order without an outcome is repeated after this.
        settle: so long the watcher has to show an applied change before it is ordered again.
        failed: after a failure. refused: after a refusal, which a repetition will hardly change.
    """

    steady: float = 2.0
    edits: int = 2
    lost: float = 90.0
    settle: float = 120.0
    failed: float = 60.0
    refused: float = 600.0


@dataclass
class _Ordered:
    """The last order for one rule: what was wanted, when it may be ordered again, and whether it is under way."""

    id: str
    desired: Mapping[str, object]
    again: float
    under_way: bool = True


class NeededRules:
    """The rules that a site needs, from the evaluator's compiled site."""

    def __init__(self, evaluator: SiteEvaluator, options: Options) -> None:
        self._evaluator, self._options = evaluator, options

    def __call__(self, snapshot: Snapshot) -> list[DrsRule]:
        """Raises BadObjectError."""
        rules, _ = desired_rules(snapshot, self._options, self._evaluator.state(snapshot).model)
        return rules


class DrsDecider(Decider):
    """Compares the rules that are needed with those that are there.

    Orders nothing twice while it is under way. What exceeds the pace waits for a later call; removals come first, as
    an old rule may be in the way of a new one.

    Attributes:
        due: when the next order may be given, monotonic seconds; None if nothing waits.
    """

    kind = DRS_RULE

    def __init__(
        self,
        site: str,
        needed: Callable[[Snapshot], list[DrsRule]],
        *,
        pacing: Pacing | None = None,
        mandatory: bool = False,
    ) -> None:
        self._site, self._needed, self._pacing, self._mandatory = site, needed, pacing or Pacing(), mandatory
        self._ordered: dict[str, _Ordered] = {}
        self._edits: defaultdict[str, deque[tuple[float, str]]] = defaultdict(deque)
        self._last: tuple[Snapshot, list[Action]] | None = None
        self._wanted: dict[str, tuple[Mapping[str, object], float]] = {}
        self.due: float | None = None

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """See `Decider.decide`: of each cluster at most as many actions as the pace allows."""
        self.due = None
        if not snapshot.vsphere:
            return []
        if self._last is None or self._last[0] is not snapshot:  # deciders are asked again for the same picture
            self._last = snapshot, self._missing(snapshot)
        missing = self._last[1]
        for target in self._ordered.keys() - {action.target for action in missing}:
            del self._ordered[target]  # it is as it should be
        self._wanted = {action.target: (action.desired, self._wanted_since(action, now)) for action in missing}
        return [action for action in missing if self._is_steady(action, now) and self._orders(action, now)]

    def observe(self, outcome: Outcome, now: float) -> None:
        """See `Decider.observe`. What was not written does not count against the pace."""
        last = self._ordered.get(outcome.target)
        if last is None or last.id != outcome.id:
            return
        pauses = {FAILED: self._pacing.failed, REFUSED: self._pacing.refused, DRY_RUN: float("inf")}
        last.under_way, last.again = False, now + pauses.get(outcome.result, self._pacing.settle)
        if outcome.result in (DRY_RUN, NOOP, REFUSED):
            cluster, _ = split_target(outcome.target)
            self._edits[cluster] = deque(edit for edit in self._edits[cluster] if edit[1] != outcome.id)

    def _wanted_since(self, action: Action, now: float) -> float:
        desired, since = self._wanted.get(action.target, (None, now))
        return since if desired == action.desired else now

    def _is_steady(self, action: Action, now: float) -> bool:
        steady_at = self._wanted[action.target][1] + self._pacing.steady
        if now < steady_at:
            self._wait_until(steady_at)
        return now >= steady_at

    def _orders(self, action: Action, now: float) -> bool:
        """Whether this is the time for the action; remembers it if so."""
        last = self._ordered.get(action.target)
        if last is not None and now < last.again and (last.under_way or last.desired == action.desired):
            self._wait_until(last.again)
            return False
        edits = self._edits[split_target(action.target)[0]]
        while edits and edits[0][0] <= now - MINUTE:
            edits.popleft()
        if len(edits) >= self._pacing.edits:
            self._wait_until(edits[0][0] + MINUTE)
            return False
        edits.append((now, action.id))
        self._ordered[action.target] = _Ordered(action.id, action.desired, now + self._pacing.lost)
        return True

    def _wait_until(self, when: float) -> None:
        if when < float("inf"):
            self.due = when if self.due is None else min(self.due, when)

    def _missing(self, snapshot: Snapshot) -> list[Action]:
        """What differs: removals, then changes, then new rules, each by cluster and name."""
        needed = self._needed(snapshot)
        wanted = {
            (rule.cluster, rule.name): msgspec.structs.replace(rule, mandatory=self._mandatory)
            for rule in needed
            if owns(self._site, rule.name) and rule.type in VM_RULES and len(set(rule.vms)) > 1
        }
        there = {
            place: rule
            for place, rule in snapshot.rules.items()
            if owns(self._site, rule.name) and rule.type in VM_RULES
        }
        # A rule that has the members already counts, whatever it is called: the name follows the smallest application.
        held = {_members(rule) for rule in there.values()}
        served = {_members(rule) for place, rule in wanted.items() if place not in there} & held
        wanted = {place: rule for place, rule in wanted.items() if place in there or _members(rule) not in served}
        there = {place: rule for place, rule in there.items() if place in wanted or _members(rule) not in served}
        removals = [
            order(
                DRS_RULE,
                f"{DRS_RULE}/{cluster}/{name}",
                {},
                "no two of its VMs need the rule any more",
                snapshot.offsets,
            )
            for cluster, name in sorted(there.keys() - wanted.keys())
        ]
        changes = [rule for place, rule in sorted(wanted.items()) if place in there and _differ(there[place], rule)]
        additions = [rule for place, rule in sorted(wanted.items()) if place not in there]
        return [*removals, *(self._set(snapshot, rule) for rule in (*changes, *additions))]

    def _set(self, snapshot: Snapshot, rule: DrsRule) -> Action:
        vms = sorted(set(rule.vms))
        names = [snapshot.vms[vm].name if vm in snapshot.vms else vm for vm in vms]
        told = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        how = "on different hosts" if rule.type == "anti-affinity" else "on one host"
        desired = {"cluster": rule.cluster, "type": rule.type, "vms": vms, "mandatory": rule.mandatory}
        target = f"{DRS_RULE}/{rule.cluster}/{rule.name}"
        return order(DRS_RULE, target, desired, f"pods on VMs {told} must be {how}", snapshot.offsets)


class _Desired(msgspec.Struct, forbid_unknown_fields=True):
    """`Action.desired` of a rule that shall exist."""

    cluster: str
    type: str
    vms: list[str]
    mandatory: bool = False


class DrsSink(Sink):
    """Writes rules. `enabled` false is a dry run.

    One action at a time per cluster. `refresh` is called after each attempt to write: vCenter does not announce
    rules, so the watcher has to read them again.
    """

    kind = DRS_RULE

    def __init__(
        self, writer: DrsWriter, site: str, *, enabled: bool, refresh: Callable[[], None] = lambda: None
    ) -> None:
        self._writer, self._site, self._enabled, self._refresh = writer, site, enabled, refresh
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def apply(self, action: Action) -> Outcome:
        """Read the live rules, make the one change that is missing, and say what happened."""
        try:
            cluster, name = split_target(action.target)
            if not owns(self._site, name):
                raise Refused(f"rule {name} is not one of site {self._site}'s own")
            wanted = _wanted(action.desired, cluster) if action.desired else None
            async with self._busy[cluster]:
                return outcome(action, *await self._apply(cluster, name, wanted))
        except (Refused, InputError) as error:
            return outcome(action, REFUSED, str(error))
        except UnderhostError as error:
            return outcome(action, FAILED, str(error))

    async def _apply(self, cluster: str, name: str, wanted: _Desired | None) -> tuple[str, str]:
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

    async def _write(self, cluster: str, name: str, wanted: _Desired, there: DrsRule | None) -> tuple[str, str]:
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


def _wanted(desired: Mapping[str, object], cluster: str) -> _Desired:
    try:
        wanted = msgspec.convert(desired, _Desired)
    except msgspec.ValidationError as error:
        raise Refused(f"not a DRS rule command: {error}") from error
    wanted.vms = sorted(set(wanted.vms))
    if wanted.type not in VM_RULES:
        raise Refused(f"a rule of type {wanted.type} is not ours to write")
    if wanted.cluster != cluster:
        raise Refused(f"the command names two clusters, {cluster} and {wanted.cluster}")
    if len(wanted.vms) < 2:
        raise Refused("a VM-VM rule needs at least two VMs")
    return wanted


def _members(rule: DrsRule) -> tuple[str, str, tuple[str, ...], bool]:
    """What a rule says, without its name."""
    return rule.cluster, rule.type, tuple(sorted(set(rule.vms))), rule.mandatory


def _differ(there: DrsRule, wanted: DrsRule) -> bool:
    """Whether a rule has to be changed. Not for being disabled: see the sink."""
    return (there.type, sorted(set(there.vms)), there.mandatory) != (
        wanted.type,
        sorted(set(wanted.vms)),
        wanted.mandatory,
    )
