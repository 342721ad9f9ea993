"""Who may act next in a tiny cluster, and what the world is then.

In: a story and a world. Out: steps. The evictor, the binder and the writer of DRS rules are the real deciders, asked
anew in each world: what they remember only makes them slower, but for the loop guard's counts, which are part of the
world. The rest is a model of what others do: an evicted pod is gone and its owner has made another; the default
scheduler takes any node that no rule of the upstream scheduler refuses; DRS mends rules that are broken, one VM at a
time, in any way that breaks none. The evictor acts only while every pod runs, as it does where one eviction is under
way; whoever else may act acts first in one of the orders that `search.py` tries.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import msgspec
from trust.scope.world import (
    APPS,
    NAMESPACE,
    PENDING,
    SITE,
    Rule,
    Story,
    Tries,
    World,
    numbered,
    snapshot,
)

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.explain import explain
from underhost.agents.sinks.drs.decider import DrsDecider, NeededRules, Pacing
from underhost.agents.sinks.drs.sink import DesiredRule, split_target
from underhost.agents.sinks.evictions.cases import BrokenPods
from underhost.agents.sinks.evictions.decider import EvictionDecider, terms_of
from underhost.agents.sinks.evictions.drs_first import PATIENCE, DrsFirst
from underhost.agents.sinks.evictions.loop_guard import CaseHistory, CaseKey, LoopGuard
from underhost.agents.sinks.evictions.sink import DesiredEviction, PastCase
from underhost.agents.sinks.orders import order
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import EVICT
from underhost.schemas.records import Action, Finding
from underhost.schemas.severities import PHYSICAL, ROWS
from underhost.schemas.vsphere import AFFINITY, ANTI_AFFINITY
from underhost.streams.settings.sinks import EvictionSettings

NOW, AT = 1_767_268_800.0, "2026-01-01T12:00:00.000Z"
AT_ONCE = EvictionSettings(wait=0)
NO_PACE = Pacing(steady=0.0, edits=99)
SEVERITIES = [row.name for row in ROWS]
Badness = tuple[int, ...]


class Step(NamedTuple):
    """Somebody acts. `ours`: Underhost writes."""

    ours: bool
    what: str
    after: World


class Actors:
    """Everybody who acts in the worlds of one story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._evaluator = Evaluator(story.options)
        self._terms = terms_of(AT_ONCE, binds=True)
        self._needed = NeededRules(self._evaluator, story.options)

    def steps(self, world: World) -> list[Step]:
        """What may happen next, each outcome once."""
        shown = snapshot(self._story, world)
        rules = list(self._rules(world, shown)) if self._story.drs else []
        moves = list(_moves(self._story, world))
        found = [*rules, *moves]
        found += self._bindings(world, shown) if self._story.ours else self._scheduled(world, shown)
        if world.complete:
            found += self._evictions(world, shown, still=not found)
        steps = [step._replace(after=numbered(step.after)) for step in found]
        return list({(step.ours, step.after): step for step in steps}.values())

    def badness(self, world: World) -> Badness:
        """Pods that wait, then pairs of pods that break something together, by severity: the gravest first."""
        shown = snapshot(self._story, world)
        waiting = sum(nodes.count(PENDING) for nodes in world.pods)
        pairs: Counter[str] = Counter()
        for finding in self._evaluator.update(shown).findings:
            pods = [_pod_of(pod) for pod in (finding.pod, *finding.peers) if pod]
            pairs[finding.severity] += max(1, sum(self._meet(world, finding, pair) for pair in combinations(pods, 2)))
        return (waiting, *(pairs[severity] for severity in SEVERITIES))

    def _meet(self, world: World, finding: Finding, pair: tuple[tuple[int, int], ...]) -> bool:
        """Whether the finding is about these two, and not about a third pod that refuses each of them.

        Pods on one node are no matter of hosts: no VM is apart from itself.
        """
        (one, here), (other, there) = pair
        if one == other and not self._story.loads[one].rule.startswith(("apart by", "spread")):
            return False
        return finding.severity != PHYSICAL or world.pods[one][here] != world.pods[other][there]

    # -------------------------------------------------------------------------------------------------------- Underhost
    def _evictions(self, world: World, shown: Snapshot, *, still: bool) -> Iterator[Step]:
        """Each eviction that is ordered alone, the others being late, and all of them.

        Where nobody else can do anything (`still`) time passes until the evictor has waited for DRS for long enough.
        """
        drs_until = DrsFirst(SITE, self._needed).until if self._story.drs else None
        decider = EvictionDecider(
            AT_ONCE,
            self._terms,
            self._evaluator,
            drs_until=drs_until,
            earlier=_memory(world),
            now=NOW,
            clock=lambda: NOW,
        )
        decided = decider.decide(shown, NOW) or (decider.decide(shown, NOW + PATIENCE) if still else [])
        ordered = [action for action in decided if not action.desired.get("refuse")]
        for actions in [*([action] for action in ordered), *([ordered] if len(ordered) > 1 else [])]:
            after = world
            for action in actions:
                after = self._evicted(after, action)
            yield Step(True, "evict " + " and ".join(action.target for action in actions), after)

    def _evicted(self, world: World, action: Action) -> World:
        """The pod is leaving, and its owner has made another."""
        app, number = _pod_of(action.target.removeprefix("pod/"))
        # Positions of the world in which it was ordered: of several evictions each is of another workload.
        pods = [list(nodes) for nodes in world.pods]
        pods[app][number] = PENDING
        after = world._replace(pods=tuple(tuple(sorted(nodes)) for nodes in pods))
        return _counted(after, app, msgspec.convert(action.desired, DesiredEviction))

    def _bindings(self, world: World, shown: Snapshot) -> Iterator[Step]:
        decided = [each for each in self._evaluator.decide(shown) if each.node is not None]
        for each in decided:
            yield Step(True, f"bind {each.pod} to {each.node}", self._bound(world, [(each.pod, each.node or "")]))
        if len(decided) > 1:
            yield Step(True, "bind all", self._bound(world, [(each.pod, each.node or "") for each in decided]))

    def _rules(self, world: World, shown: Snapshot) -> Iterator[Step]:
        decider = DrsDecider(SITE, self._needed, pacing=NO_PACE)
        rules = {rule.name: rule for rule in world.rules}
        ordered = decider.decide(shown, NOW)
        for action in ordered:
            _, name = split_target(action.target)
            rules.pop(name, None)
            if action.desired:
                desired = msgspec.convert(action.desired, DesiredRule)
                rules[name] = Rule(name, desired.type, tuple(int(vm.removeprefix("vm-n")) for vm in desired.vms))
        if ordered:
            yield Step(True, "the DRS rules are written", world._replace(rules=tuple(rules.values())))

    # -------------------------------------------------------------------------------------------------------- the world
    def _scheduled(self, world: World, shown: Snapshot) -> Iterator[Step]:
        for app, nodes in enumerate(world.pods):
            if PENDING not in nodes:
                continue
            pod = f"{NAMESPACE}/{APPS[app]}-{nodes.index(PENDING)}"
            model = self._evaluator.state(shown).model
            verdict = explain(shown, self._story.options, [pod], model).pods[pod]
            for node, judged in verdict.nodes.items():
                if judged.feasible:
                    yield Step(False, f"{pod} is placed on {node}", self._bound(world, [(pod, node)]))

    def _bound(self, world: World, placed: list[tuple[str, str]]) -> World:
        pods = [list(nodes) for nodes in world.pods]
        for pod, node in placed:
            app, number = _pod_of(pod)
            pods[app][number] = int(node.removeprefix("n"))
        return self._settled(world._replace(pods=tuple(tuple(sorted(nodes)) for nodes in pods)))

    def _settled(self, world: World) -> World:
        """What the guard learns once every replica is there again."""
        if not any(one.before is not None for one in world.tries) or not world.complete:
            return world
        shown = snapshot(self._story, world)
        report = self._evaluator.update(shown)
        broken = BrokenPods(shown, (one for one in report.findings if one.severity in AT_ONCE.severities))
        kept = []
        for one in world.tries:
            if one.before is not None:
                guard = _guard(one)
                guard.ended(_key(one), one.before, broken.of(_key(one)))
                case = guard.cases[_key(one)]
                one = Tries(one.app, one.case, case.low, case.tries)
            kept.append(one)
        return world._replace(tries=tuple(kept))


def _moves(story: Story, world: World) -> Iterator[Step]:
    """DRS mends a rule that is broken; no move breaks one that holds."""
    for rule in world.rules:
        if _held(rule, world.hosts):
            continue
        for at in rule.nodes:
            for host in range(story.hosts):
                hosts = (*world.hosts[:at], host, *world.hosts[at + 1 :])
                if host != world.hosts[at] and _better(rule, world, hosts):
                    yield Step(False, f"DRS moves n{at} to h{host}", world._replace(hosts=hosts))


def _better(rule: Rule, world: World, hosts: tuple[int, ...]) -> bool:
    return _broken_pairs(rule, hosts) < _broken_pairs(rule, world.hosts) and all(
        _broken_pairs(other, hosts) <= _broken_pairs(other, world.hosts) for other in world.rules
    )


def _held(rule: Rule, hosts: tuple[int, ...]) -> bool:
    return _broken_pairs(rule, hosts) == 0


def _broken_pairs(rule: Rule, hosts: tuple[int, ...]) -> int:
    apart = {ANTI_AFFINITY: True, AFFINITY: False}[rule.type]
    return sum((hosts[one] == hosts[other]) is apart for one, other in combinations(rule.nodes, 2))


# ------------------------------------------------------------------------------------------------------ the loop guard
def _key(one: Tries) -> CaseKey:
    return CaseKey(f"ReplicaSet/{NAMESPACE}/{APPS[one.app]}", *one.case)


def _guard(one: Tries) -> LoopGuard:
    guard = LoopGuard(AT_ONCE.tries, AT_ONCE.pause)
    guard.cases[_key(one)] = CaseHistory(one.low, one.tries)
    return guard


def _counted(world: World, app: int, desired: DesiredEviction) -> World:
    """The guard counts the eviction."""
    case = (desired.severity, desired.rule, desired.source, desired.key)
    known = next((one for one in world.tries if (one.app, one.case) == (app, case)), Tries(app, case, desired.low, 0))
    guard = _guard(known)
    guard.evicted(_key(known), desired.broken, NOW)
    history = guard.cases[_key(known)]
    counted = Tries(app, case, history.low, history.tries, desired.broken)
    return world._replace(tries=tuple(sorted([one for one in world.tries if one[:2] != (app, case)] + [counted])))


def _memory(world: World) -> list[Action]:
    """The guard's counts, as the commands of an earlier run hold them; every pause is over."""
    found = []
    for app in sorted({one.app for one in world.tries}):
        first, *others = [one for one in world.tries if one.app == app]
        past = [PastCase(*one.case, low=one.low, number=one.tries) for one in others]
        severity, rule, source, key = first.case
        desired = DesiredEviction(
            uid="", at=AT, refuse="told before", owner=_key(first).owner, severity=severity, rule=rule, source=source,
            key=key, low=first.low, number=first.tries, others=past,
        )  # fmt: skip
        found.append(order(EVICT, f"pod/{NAMESPACE}/{APPS[app]}", msgspec.to_builtins(desired), "", {}))
    return found


def _pod_of(pod: str) -> tuple[int, int]:
    """(workload, position) of `shop/a-0`."""
    app, _, number = pod.removeprefix(f"{NAMESPACE}/").partition("-")
    return APPS.index(app), int(number)
