"""Single pods, nodes and classes judged again: the rules that do not form groups of separations.

In: the pods, nodes and classes that changes have touched. Out: findings in the store, in the words of `violations.py`
and `node_findings.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.evaluate import violations as v
from underhost.agents.evaluate.judge import Judge
from underhost.agents.evaluate.nodes import node_drift, unknown_hosts
from underhost.agents.evaluate.relations import Concern
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.evaluate.sweep import Meeting
from underhost.agents.rules import inter_pod_affinity, node_resources_fit
from underhost.agents.rules import pod_topology_spread as spread
from underhost.agents.rules.rule import Prepared
from underhost.agents.rules.separation import Separation
from underhost.agents.site.selectors import Selector
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import NO_EXECUTE
from underhost.schemas.records import Finding

Spot = tuple[str, str]  # a topology key and a domain's value
Crowd = tuple[str, str, list[str], Selector | None]  # key, domain's value, pods, what counts them


class Singles:
    """Findings of one pod, one node or one class of pods."""

    def __init__(self, live: CompiledSite, store: FindingStore) -> None:
        self._live, self._store = live, store
        self._prepared: dict[tuple[str, int], Prepared | None] = {}
        self._crowds: dict[int, list[Crowd]] = {}
        self._in_place: defaultdict[Spot, set[int]] = defaultdict(set)
        self._formed: dict[Spot, dict[frozenset[int], Sequence[Finding]]] = {}

    def forget(self, only: Concern | None = None) -> None:
        """Rules are prepared anew: the state has forgotten its counters, or a new class is counted by `only` these."""
        if only is None:
            self._prepared.clear()
            return
        for rule, classes in ((spread.NAME, only.spread), (inter_pod_affinity.NAME, only.near)):
            for cls in classes:
                self._prepared.pop((rule, cls), None)

    # ------------------------------------------------------------------------------------------------ pods and nodes
    def judge_pods(self, snapshot: Snapshot, judge: Judge, keys: Iterable[str]) -> None:
        """What concerns a pod and its node alone: node affinity, NoExecute taints."""
        model = self._live.model
        evicting = any(taint.effect == NO_EXECUTE for taints in model.nodes.taints for taint in taints)
        found: dict[str, list[Finding]] = {key: [] for key in keys}
        choosy: defaultdict[int, list[int]] = defaultdict(list)
        for key, mine in found.items():
            at = model.running.at.get(key)
            if at is not None:
                cls = model.classes[model.running.class_at[at]]
                if cls.node_selector or cls.node_terms is not None:
                    choosy[cls.id].append(at)
                if evicting and judge.is_evicted(cls, model.running.node_at[at]):
                    mine.append(v.eviction_finding(snapshot, judge, at))
        for cls_id, pods in choosy.items():
            for finding in v.affinity_findings(snapshot, judge, model.classes[cls_id], pods):
                assert finding.pod is not None
                found[finding.pod].append(finding)
        for key, mine in found.items():
            self._store.put(("pod", key), mine)

    def judge_nodes(self, snapshot: Snapshot, judge: Judge, names: Iterable[str]) -> None:
        """What a node holds: room, host ports, pods that it would not take now, an unknown host."""
        model = self._live.model
        drifting = bool(model.nodes.unschedulable.any()) or len(model.nodes.taints) > 1 or any(model.nodes.taints)
        for name in names:
            node = model.nodes.index.get(name)
            found: list[Finding] = []
            if node is not None:
                found += self._crowded_node(snapshot, judge, node)
                if drifting:
                    found += node_drift(snapshot, model, {node: model.running.on_node[node]})
            self._store.put(("node", name), found)

    def judge_hosts(self, snapshot: Snapshot, names: Iterable[str]) -> None:
        """Nodes whose host is unknown."""
        for name in names:
            known = name in snapshot.nodes
            self._store.put(("host", name), unknown_hosts(snapshot, [name]) if known else NOTHING)

    def _crowded_node(self, snapshot: Snapshot, judge: Judge, node: int) -> list[Finding]:
        model, found = self._live.model, []
        by_request: defaultdict[int, list[int]] = defaultdict(list)
        with_ports: defaultdict[int, list[int]] = defaultdict(list)
        for at in model.running.on_node[node]:
            by_request[model.running.request_at[at]].append(at)
            if model.classes[model.running.class_at[at]].ports:
                with_ports[model.running.class_at[at]].append(at)
        here = np.array([node], np.intp)
        for request, pods in by_request.items():
            prepared = node_resources_fit.prepare(self._live.state, model.classes[0])
            if prepared.refuse(model.requests[request], here, True) is not None:
                found += v.fit_findings(snapshot, judge, pods, request)
        for cls, pods in with_ports.items():
            found += v.port_findings(snapshot, judge, model.classes[cls], pods)
        return found

    # ------------------------------------------------------------------------------------------------------ classes
    def judge_near(self, snapshot: Snapshot, judge: Judge, classes: Iterable[int]) -> None:
        """Classes whose required affinity may have lost, or found, the pods it wants."""
        for cls_id in classes:
            cls = self._live.model.classes[cls_id]
            prepared = self._prepare(inter_pod_affinity.NAME, cls)
            self._store.put(("near", cls_id), v.lonely_findings(snapshot, judge, cls, prepared))

    def judge_spread(self, snapshot: Snapshot, judge: Judge, classes: Collection[int]) -> None:
        """Classes whose hard spread may count otherwise now."""
        places: set[tuple[str, str]] = set()
        for cls_id in classes:
            cls = self._live.model.classes[cls_id]
            missing, crowded = v.spread_refusals(snapshot, judge, cls, self._prepare(spread.NAME, cls))
            self._store.put(("missing", cls_id), missing)
            places |= self._crowd(cls_id, v.crowded(judge, cls, crowded) if crowded else [])
        self._form(snapshot, judge, places, frozenset(classes))

    def link(self, snapshot: Snapshot, judge: Judge, classes: Collection[int]) -> None:
        """Who counts the same pods as these classes may have changed: form their places again."""
        crowds = [crowd for cls in classes for crowd in self._crowds.get(cls, ())]
        self._form(snapshot, judge, {crowd[:2] for crowd in crowds}, classes)

    def _crowd(self, cls: int, found: list[tuple[str, Meeting]]) -> set[tuple[str, str]]:
        """Remember where the class is crowded; the places that were or are."""
        model, crowds = self._live.model, []
        touched = set()
        for key, at, _, _ in self._crowds.pop(cls, ()):
            touched.add((key, at))
            self._in_place[key, at].discard(cls)
        for key, meeting in found:
            value = self._live.value_of(key, model.running.node_at[meeting.pods[0]])
            assert value is not None
            pods = [model.running.keys[at] for at in meeting.pods]
            crowds.append((key, value, pods, _selector(model.classes[cls], meeting)))
            touched.add((key, value))
            self._in_place[key, value].add(cls)
        if crowds:
            self._crowds[cls] = crowds
        return touched

    def _form(self, snapshot: Snapshot, judge: Judge, places: Iterable[Spot], dirty: Collection[int]) -> None:
        """Form the groups of these places; those without a dirty class stand as they are."""
        for place in places:
            before, now = self._formed.pop(place, {}), dict[frozenset[int], Sequence[Finding]]()
            for knot in self._knots(place):
                kept = before.get(knot) if knot.isdisjoint(dirty) else None
                now[knot] = self._knot_findings(snapshot, judge, place, knot) if kept is None else kept
            if now:
                self._formed[place] = now
            else:
                self._in_place.pop(place, None)
            self._store.put(("spread", place), [finding for found in now.values() for finding in found])

    def _knots(self, place: Spot) -> list[frozenset[int]]:
        """The classes that are crowded in the place; those that count the same pods are one."""
        joined: dict[tuple[int, ...], set[int]] = {}
        for cls in self._in_place.get(place, ()):
            counted = {self._counted(crowd) for crowd in self._crowds[cls] if crowd[:2] == place}
            knot = {cls}.union(*(joined[one] for one in counted if one in joined))
            counted.update(one for one, others in joined.items() if not knot.isdisjoint(others)) if len(
                knot
            ) > 1 else ()
            for one in counted:
                joined[one] = knot
        return list({frozenset(knot) for knot in joined.values()})

    def _counted(self, crowd: Crowd) -> tuple[int, ...]:
        """The classes that are counted, those in use: as if the site were compiled now."""
        selector, uses = crowd[3], self._live.uses
        return () if selector is None else tuple([one for one in selector.classes if uses[one]])

    def _knot_findings(self, snapshot: Snapshot, judge: Judge, place: Spot, knot: Iterable[int]) -> list[Finding]:
        model, (key, value) = self._live.model, place
        code = model.topology.of(key).code_of[value]
        met = [
            Meeting(
                code,
                Separation(spread.NAME, key, (), self._counted(crowd)),
                [model.running.at[pod] for pod in crowd[2]],
            )
            for cls in sorted(knot)
            for crowd in self._crowds[cls]
            if crowd[:2] == place
        ]
        return v.crowd_findings(snapshot, judge, key, met)

    def _prepare(self, rule: str, cls: PodClass) -> Prepared | None:
        at = (rule, cls.id)
        if at not in self._prepared:
            module = spread if rule == spread.NAME else inter_pod_affinity
            self._prepared[at] = module.prepare(self._live.state, cls)
        return self._prepared[at]


def _selector(cls: PodClass, meeting: Meeting) -> Selector | None:
    """The selector of the constraint that a meeting stems from; equal ones count the same pods."""
    for one in cls.hard:
        same = one.key == meeting.separation.key
        if same and one.selector is not None and one.selector.classes == meeting.separation.matched:
            return one.selector
    return None
