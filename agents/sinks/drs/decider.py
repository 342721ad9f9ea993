"""DRS rules: which are missing.

In: snapshots with the rules as vCenter holds them, and the VM-VM rules that the pods need (`agents/drs/cover.py`). Out:
`drs-rule` commands. Only rules that the site owns by their name (`underhost-SITE-...`) are ever ordered, and a VM-Host
rule never, whatever its name.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.drs.names import owns
from underhost.agents.drs.shares import LeftOut, tenant_of
from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.sinks.drs.sink import split_target
from underhost.agents.sinks.orders import DRY_RUN, FAILED, NOOP, REFUSED, order
from underhost.agents.sinks.ports import Decider
from underhost.agents.sinks.rates import HOUR, MINUTE, Rate
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.commands import DRS_RULE
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import ANTI_AFFINITY, VM_RULES, DrsRule

UNNEEDED = "no two of its VMs need the rule any more"


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
        tenant_edits: orders per hour and cluster that are one namespace's.
    """

    steady: float = 2.0
    edits: int = 2
    lost: float = 90.0
    settle: float = 120.0
    failed: float = 60.0
    refused: float = 600.0
    tenant_edits: int = 60


_Place = tuple[str, str]  # a vSphere cluster, and a namespace whose rules are in it


@dataclass
class _OrderedRule:
    """The last order for one rule: what was wanted, when it may be ordered again, and whether it is under way."""

    id: str
    desired: Mapping[str, object]
    again: float
    under_way: bool = True


class NeededRules:
    """The rules that a site needs, from the evaluator's compiled site."""

    def __init__(self, evaluator: SiteEvaluator, options: Options) -> None:
        self._evaluator, self._rules = evaluator, RulesByCluster(options)

    def __call__(self, snapshot: Snapshot) -> list[DrsRule]:
        """Raises BadObjectError."""
        quorums = self._evaluator.quorums(snapshot)
        return self._rules.of(snapshot, self._evaluator.state(snapshot).model, quorums)

    def left_out(self) -> list[LeftOut]:
        """What was beyond somebody's share when it was last asked."""
        return self._rules.left_out


class DrsDecider(Decider):
    """Compares the rules that are needed with those that are there.

    Orders nothing twice while it is under way. What exceeds the pace waits for a later call: namespaces take turns, and
    of each removals come first, as an old rule may be in the way of a new one. What is beyond somebody's share is
    ordered, too, for the sink to refuse it with the reason.

    Attributes:
        due: when the next order may be given, monotonic seconds; None if nothing waits.
    """

    kind = DRS_RULE

    def __init__(
        self,
        site: str,
        needed: Callable[[Snapshot], list[DrsRule]],
        held_until: Callable[[str], float] = lambda target: 0.0,
        *,
        pacing: Pacing | None = None,
        mandatory: bool = False,
        left_out: Callable[[], list[LeftOut]] = list,
    ) -> None:
        """`held_until` see `DeciderParts`, for the target of a rule. `left_out`: what `needed` has left out."""
        self._left_out = left_out
        self._site, self._needed, self._held_until = site, needed, held_until
        self._pacing, self._mandatory = pacing or Pacing(), mandatory
        self._ordered: dict[str, _OrderedRule] = {}
        self._edits: defaultdict[str, Rate] = defaultdict(lambda: Rate(self._pacing.edits, MINUTE))
        self._shares: defaultdict[_Place, Rate] = defaultdict(lambda: Rate(self._pacing.tenant_edits, HOUR))
        self._last: tuple[Snapshot, list[Action]] | None = None
        self._wanted: dict[str, tuple[Mapping[str, object], float]] = {}
        self._compared: dict[str, _Compared] = {}

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
        return self._in_turn([action for action in missing if self._is_steady(action, now)], now)

    def observe(self, outcome: Outcome, now: float) -> None:
        """See `Decider.observe`. What was not written does not count against the pace."""
        last = self._ordered.get(outcome.target)
        if last is None or last.id != outcome.id:
            return
        pauses = {FAILED: self._pacing.failed, REFUSED: self._pacing.refused, DRY_RUN: float("inf")}
        last.under_way, last.again = False, now + pauses.get(outcome.result, self._pacing.settle)
        if outcome.result in (DRY_RUN, NOOP, REFUSED):
            for edits in self._rates_of(outcome.target):
                edits.give_back(outcome.id)

    def _rates_of(self, target: str) -> tuple[Rate, Rate]:
        """The edits of its cluster, and those of the namespace in it."""
        place = self._place(target)
        return self._edits[place[0]], self._shares[place]

    def _place(self, target: str) -> "_Place":
        """Whose edit in which cluster it is."""
        cluster, name = split_target(target)
        return cluster, tenant_of(self._site, name).namespace

    def _in_turn(self, actions: list[Action], now: float) -> list[Action]:
        """What is ordered now: the next of the namespace that was served longest ago, again and again."""
        waiting: defaultdict[_Place, deque[Action]] = defaultdict(deque)
        for action in actions:
            waiting[self._place(action.target)].append(action)
        chosen = set[str]()
        while waiting:
            place = min(waiting, key=lambda place: self._shares[place].last)
            action = waiting[place].popleft()
            if not waiting[place]:
                del waiting[place]
            if self._orders(action, now):
                chosen.add(action.id)
        return [action for action in actions if action.id in chosen]

    def _wanted_since(self, action: Action, now: float) -> float:
        desired, since = self._wanted.get(action.target, (None, now))
        return since if desired == action.desired else now

    def _is_steady(self, action: Action, now: float) -> bool:
        steady_at = self._wanted[action.target][1] + self._pacing.steady
        if now < steady_at:
            self.wait_until(steady_at)
        return now >= steady_at

    def _orders(self, action: Action, now: float) -> bool:
        """Whether this is the time for the action; remembers it if so."""
        last = self._ordered.get(action.target)
        waits = last is not None and (last.under_way or last.desired == action.desired)
        again = max(last.again if last is not None and waits else now, self._held_until(action.target))
        if now < again:
            self.wait_until(again)
            return False
        if not action.desired.get("refuse") and not self._has_room(action, now):
            return False
        self._ordered[action.target] = _OrderedRule(action.id, action.desired, now + self._pacing.lost)
        return True

    def _has_room(self, action: Action, now: float) -> bool:
        """Whether the cluster, and the namespace in it, has an edit left; it is taken."""
        rates = self._rates_of(action.target)
        for edits in rates:
            at = edits.room_at(now)
            if at > now:
                self.wait_until(at)
                return False
        for edits in rates:
            edits.add(now, action.id)
        return True

    def _missing(self, snapshot: Snapshot) -> list[Action]:
        """What differs: removals, then changes, then new rules, each by cluster and name.

        Only clusters are compared anew whose rules are others, and in them only the rules that are.
        """
        needed, there = _by_cluster(self._needed(snapshot)), _by_cluster(snapshot.rules.values())
        before, self._compared = self._compared, {}
        for cluster in sorted(needed.keys() | there.keys()):
            given = needed.get(cluster, []), there.get(cluster, [])
            known = before.get(cluster, _NEVER)
            self._compared[cluster] = known if known.given == given else self._compare(*given, known)
        compared = self._compared.items()
        return [
            *(
                order(DRS_RULE, f"{DRS_RULE}/{cluster}/{name}", {}, UNNEEDED, snapshot.offsets)
                for cluster, one in compared
                for name in one.removals
            ),
            *(self._set(snapshot, rule) for _, one in compared for rule in one.changes),
            *(self._set(snapshot, rule) for _, one in compared for rule in one.additions),
            *(_refusal(snapshot, one) for one in self._left_out()),
        ]

    def _compare(self, needed: list[DrsRule], there: list[DrsRule], known: "_Compared") -> "_Compared":
        """The rules of one cluster; `known` is how they were before."""
        ours = _ours(needed, known.needed, self._wanted_rule), _ours(there, known.there, self._our_rule)
        wanted, held = ({name: one for name, one in side.items() if one.rule is not None} for side in ours)
        both = sorted(wanted.keys() & held.keys())
        changes = [name for name in both if held[name].members != wanted[name].members]
        # A rule that has the members already counts, whatever it is called: the name follows the smallest application.
        members = {one.members for one in held.values()}
        fresh = [name for name in wanted.keys() - held.keys() if wanted[name].members not in members]
        served = {wanted[name].members for name in wanted.keys() - held.keys()}
        gone = [name for name in held.keys() - wanted.keys() if held[name].members not in served]
        rules = ([rule for name in names if (rule := wanted[name].rule)] for names in (changes, sorted(fresh)))
        return _Compared((needed, there), *ours, sorted(gone), *rules)

    def _our_rule(self, rule: DrsRule) -> DrsRule | None:
        return rule if owns(self._site, rule.name) and rule.type in VM_RULES else None

    def _wanted_rule(self, rule: DrsRule) -> DrsRule | None:
        ours = self._our_rule(rule) if len(set(rule.vms)) > 1 else None
        return None if ours is None else msgspec.structs.replace(ours, mandatory=self._mandatory)

    def _set(self, snapshot: Snapshot, rule: DrsRule) -> Action:
        vms = sorted(set(rule.vms))
        names = [snapshot.vms[vm].name if vm in snapshot.vms else vm for vm in vms]
        told = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        how = "on different hosts" if rule.type == ANTI_AFFINITY else "on one host"
        desired = {"cluster": rule.cluster, "type": rule.type, "vms": vms, "mandatory": rule.mandatory}
        target = f"{DRS_RULE}/{rule.cluster}/{rule.name}"
        return order(DRS_RULE, target, desired, f"pods on VMs {told} must be {how}", snapshot.offsets)


def _refusal(snapshot: Snapshot, one: LeftOut) -> Action:
    """An order for the sink to refuse: it is nobody's edit."""
    said = str(one.capped)
    desired = {"cluster": one.cluster, "refuse": said}
    return order(DRS_RULE, f"{DRS_RULE}/{one.cluster}/{one.rule}", desired, said, snapshot.offsets)


class _Ours(NamedTuple):
    """A rule as it is given, as it is compared (None: it is no concern of ours), and what it says."""

    given: DrsRule
    rule: DrsRule | None
    members: "_Members"


class _Compared(NamedTuple):
    """The rules of one cluster, needed and there, by name; what is to be removed (names), changed and added."""

    given: tuple[list[DrsRule], list[DrsRule]]
    needed: dict[str, _Ours]
    there: dict[str, _Ours]
    removals: list[str]
    changes: list[DrsRule]
    additions: list[DrsRule]


_Members = tuple[str, str, tuple[str, ...], bool]
_NEVER = _Compared(([], []), {}, {}, [], [], [])


def _by_cluster(rules: Iterable[DrsRule]) -> dict[str, list[DrsRule]]:
    found: defaultdict[str, list[DrsRule]] = defaultdict(list)
    for rule in rules:
        found[rule.cluster].append(rule)
    return found


def _ours(
    rules: Iterable[DrsRule], known: Mapping[str, _Ours], ours: Callable[[DrsRule], DrsRule | None]
) -> dict[str, _Ours]:
    """The rules by name; those that were `known` are not thought through again."""
    found = {}
    for given in rules:
        one = known.get(given.name)
        if one is None or one.given is not given:
            rule = ours(given)
            one = _Ours(given, rule, _members(rule or given))
        found[given.name] = one
    return found


def _members(rule: DrsRule) -> _Members:
    """What a rule says, without its name and whether it is disabled (see the sink)."""
    return rule.cluster, rule.type, tuple(sorted(set(rule.vms))), rule.mandatory
