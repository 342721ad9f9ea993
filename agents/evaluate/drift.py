"""Preferences that another node would meet better by now: `drift` findings, only where they are asked for.

In: a case. Out: one finding for each pod and rule. A preference is a preferred term of the
pod's own, or a ScheduleAnyway constraint; the scheduler's own spreading is none, nor is what other pods prefer. The
scores are the rules': a pod is asked as if it were placed anew.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.rules import inter_pod_affinity, node_affinity, pod_topology_spread
from underhost.agents.rules.rule import Prepared, ScoringError
from underhost.agents.schedule.prepared import ALL, Named, Plan, Plans
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding
from underhost.schemas.severities import DRIFT

REASON = "another node would meet the preference better"
_CALLED = {
    node_affinity.NAME: "preferred node affinity",
    inter_pod_affinity.NAME: "preferred pod affinity and anti-affinity",
    pod_topology_spread.NAME: "ScheduleAnyway topology spread",
}


def preference_drift(case: Case) -> Iterator[Finding]:
    """Running pods with a preference that a feasible node meets strictly better than their own."""
    model, plans = case.model, Plans(case.state)
    alike: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    running = model.running
    rows = zip(running.classes.tolist(), running.requests.tolist(), running.nodes.tolist(), strict=True)
    for at, row in enumerate(rows):
        if model.classes[row[0]].live and _preferring(model.classes[row[0]]):
            alike[row].append(at)
    for (cls, request, node), pods in alike.items():
        for rule, best in _better(case, plans.of(cls), request, node):
            for at in pods:
                yield _finding(case.snapshot, running.keys[at], rule, model.nodes.names[node], model.nodes.names[best])


def _preferring(cls: PodClass) -> tuple[str, ...]:
    """The rules for which the pods have preferences of their own."""
    has = (
        (node_affinity.NAME, bool(cls.preferred_node)),
        (inter_pod_affinity.NAME, bool(cls.preferred)),
        (pod_topology_spread.NAME, bool(cls.soft) and not cls.system_default),
    )
    return tuple(name for name, some in has if some)


def _better(case: Case, plan: Plan, request: int, node: int) -> list[tuple[str, int]]:
    """(rule, best node) for each preference that a feasible node meets better, the pod being taken out meanwhile."""
    cls = plan.cls
    case.state.add(cls.id, request, node, -1)
    try:
        nodes = _feasible(case, plan, request, node)
        names = _preferring(cls)
        found = []
        for named in plan.rules:
            if named.name in names:
                best = _best(case, _wishes(case, named, cls), request, nodes, node)
                if best is not None:
                    found.append((named.name, best))
        return found
    finally:
        case.state.add(cls.id, request, node)


def _wishes(case: Case, named: Named, cls: PodClass) -> Prepared:
    """What scores the pods' own preferences of a rule: the scheduler's score heeds those of other pods, too."""
    own = named.name == inter_pod_affinity.NAME
    return inter_pod_affinity.prepare_own_preferences(case.state, cls) if own else named.prepared


def _feasible(case: Case, plan: Plan, request: int, node: int) -> IndexArray:
    """The nodes that no rule refuses, and the pod's own."""
    good = np.ones(len(case.model.nodes), bool)
    for named in plan.rules:
        codes = named.prepared.refuse(case.model.requests[request], ALL)
        if codes is not None:
            good &= codes == 0
    good[node] = True
    found: IndexArray = np.flatnonzero(good)
    return found


def _best(case: Case, prepared: Prepared, request: int, nodes: IndexArray, node: int) -> int | None:
    """The first node with the highest score where the pod's own has a lower one."""
    try:
        score = prepared.score(case.model.requests[request], nodes)
    except ScoringError:
        return None
    if score is None or isinstance(score, int):
        return None
    own = int(score[np.searchsorted(nodes, node)])
    return int(nodes[int(score.argmax())]) if own < int(score.max()) else None


def _finding(snapshot: Snapshot, key: str, rule: str, node: str, best: str) -> Finding:
    return Finding(
        id=f.finding_id(snapshot.site, DRIFT, rule, "preference", "", f.uid_of(key, snapshot.pods[key])),
        severity=DRIFT,
        rule=rule,
        reason=REASON,
        message=f"Pod {key} runs on node {node}; node {best} would meet its {_CALLED[rule]} better.",
        pod=key,
        node=node,
    )
