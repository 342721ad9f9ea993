"""Pods whose DoNotSchedule topology spread is broken: `violation` findings of PodTopologySpread.

In: the classes of pods to look at. Out: findings in the store: one for each pod on a node that lacks a key, one for the
pods that are too many in a domain. The verdict is the rule's. Pods of classes that count the same pods in one domain
refuse one another: they share a finding. A domain is named by its value, which stays while codes are given anew.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from underhost.agents.affinity.separation import connected
from underhost.agents.compiled.classes import Constraint, PodClass
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.marks import Concern
from underhost.agents.evaluate.store import FindingStore
from underhost.agents.evaluate.violations import group_finding, pod_finding, refusals
from underhost.agents.rules import pod_topology_spread as rule
from underhost.agents.site.places import named_host
from underhost.agents.site.selectors import Selector
from underhost.schemas.records import Domain, Finding

_OF_LABEL = "Pod {pod} runs on node {node}, which lacks a label that its topology spread counts by."
_Spot = tuple[str, str]  # a topologyKey and a domain's value
_Policy = tuple[tuple[str, ...], str, object, object]  # what decides which domains a constraint counts


class _Crowd:
    """Pods of one class that are too many in a domain, by one constraint with this selector; keys, sorted."""

    __slots__ = ("pods", "selector")

    def __init__(self, pods: list[str], selector: Selector | None) -> None:
        self.pods, self.selector = pods, selector


class Spread:
    """The crowded domains of a site, with the classes that are crowded there."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self._prepared: dict[int, rule.PodTopologySpread | None] = {}
        self._spots: dict[int, set[_Spot]] = {}
        self._crowds: defaultdict[_Spot, dict[int, list[_Crowd]]] = defaultdict(dict)
        self._formed: dict[_Spot, dict[tuple[_Crowd, ...], Finding]] = {}

    def forget(self, concern: Concern | None = None) -> None:
        """Prepare rules anew: all, as the state has forgotten its counters, or those that a new class concerns."""
        if concern is None:
            self._prepared.clear()
        for cls in concern.spread if concern is not None else ():
            self._prepared.pop(cls, None)

    def judge(
        self,
        case: Case,
        classes: Iterable[int],
        linked: Iterable[int] = (),
        is_used: Callable[[int], object] = lambda cls: True,
    ) -> None:
        """Look at these classes again, and join again the domains where those `linked` are crowded.

        `is_used` tells whether any pod is of a class: others are counted by nobody.
        """
        spots = {spot for cls in linked for spot in self._spots.get(cls, ())}
        for cls in classes:
            spots |= self._look(case, case.model.classes[cls])
        for spot in spots:
            self._form(case, spot, is_used)

    def _look(self, case: Case, cls: PodClass) -> set[_Spot]:
        """Keep where the class is crowded; the domains that were or are."""
        if cls.id not in self._prepared:
            self._prepared[cls.id] = rule.prepare_strict(case.state, cls)
        prepared = self._prepared[cls.id]
        missing: list[Finding] = []
        refused: list[int] = []
        for at, refusal in refusals(case, prepared, case.model.pods_of(cls.id)):
            if refusal.reasons[0] == rule.REASON_MISSING_LABEL:
                missing.append(pod_finding(case, at, rule.NAME, refusal.reasons, _OF_LABEL))
            else:
                refused.append(at)
        self._store.put(("missing", cls.id), missing)
        before = self._spots.pop(cls.id, set())
        for spot in before:
            del self._crowds[spot][cls.id]
        if prepared is None or not refused:
            return before
        crowds = _crowds(case, prepared, refused)
        self._spots[cls.id] = set(crowds)
        for spot, found in crowds.items():
            self._crowds[spot][cls.id] = found
        return before | self._spots[cls.id]

    def _form(self, case: Case, spot: _Spot, is_used: Callable[[int], object]) -> None:
        """The findings of a domain; a group that stands as it was keeps its own."""
        before = self._formed.pop(spot, {})
        groups = _groups(self._crowds[spot], is_used)
        now = {group: before.get(group) or _finding(case, *spot, group) for group in groups}
        if now:
            self._formed[spot] = now
        else:
            del self._crowds[spot]
        self._store.put(("spread", spot), list(now.values()))


def _crowds(case: Case, prepared: rule.PodTopologySpread, pods: list[int]) -> dict[_Spot, list[_Crowd]]:
    """Of pods of one class that are refused: by domain, those that each constraint refuses."""
    found: defaultdict[_Spot, list[_Crowd]] = defaultdict(list)
    at = np.array(pods, np.intp)
    nodes, keys = case.model.running.nodes[at], case.model.running.keys
    for constraint, refused in prepared.by_constraint(nodes):
        domains = case.model.topology.of(constraint.key)
        codes = domains.codes[nodes]
        for code in sorted(set(codes[refused].tolist())):
            here = sorted(keys[pod] for pod in at[refused & (codes == code)].tolist())
            found[constraint.key, domains.ids[code]].append(_Crowd(here, constraint.selector))
    return found


def _groups(crowds: dict[int, list[_Crowd]], is_used: Callable[[int], object]) -> list[tuple[_Crowd, ...]]:
    """The crowds of one domain, those together that count the same pods or share some."""
    every = [crowd for found in crowds.values() for crowd in found]
    first: dict[object, int] = {}
    links = []
    for at, crowd in enumerate(every):
        counted = tuple(filter(is_used, crowd.selector.classes)) if crowd.selector is not None else ()
        links.append((first.setdefault(counted, at), at))
        if len(every) > len(crowds):  # only crowds of one class, by several constraints, can share pods
            links += [(first.setdefault(pod, at), at) for pod in crowd.pods]
    return [tuple(every[at] for at in group) for group in connected(range(len(every)), links)]


def _finding(case: Case, key: str, value: str, crowds: Sequence[_Crowd]) -> Finding:
    """Pods that are too many in a domain of the key."""
    domains = case.model.topology.of(key)
    pods = sorted({pod for crowd in crowds for pod in crowd.pods})
    value = domains.values[domains.code_of[value]]
    where = named_host(case.snapshot, value) if case.model.topology.is_host_key(key) else f"{key} {value!r}"
    would = "would be refused" if len(pods) == 1 else "would each be refused"
    message = (
        f"Too many pods are in {where} for their topology spread: {f.listing(case.placed(pods))} {would} there now."
    )
    return group_finding(case, rule.NAME, rule.REASON_NOT_SPREAD, message, pods, Domain(key=key, value=value))


class EligibleDomains:
    """Which domains each DoNotSchedule constraint counts: nodes decide that, so a node may concern pods far from it.

    In: the site before and after its nodes change. Out: the classes that count other domains now. Constraints of equal
    keys and policies are asked once.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._classes: defaultdict[_Policy, list[int]] = defaultdict(list)
        self._example: dict[_Policy, tuple[PodClass, Constraint]] = {}
        self._known: dict[_Policy, set[str]] = {}

    def know(self, site: CompiledSite) -> None:
        """Nodes are about to change: what counts until then."""
        for cls in site.model.classes[self._seen :]:
            self._add(cls)
        self._seen = len(site.model.classes)
        for policy in self._example.keys() - self._known.keys():
            self._known[policy] = self._of(site, policy)

    def differing(self, site: CompiledSite) -> set[int]:
        """The classes whose domains are others than those known; these are known from now on."""
        found: set[int] = set()
        for policy, before in self._known.items():
            now = self._known[policy] = self._of(site, policy)
            if now != before:
                found.update(self._classes[policy])
        return found

    def _add(self, cls: PodClass) -> None:
        keys = tuple(sorted({one.key for one in cls.hard}))
        for one in cls.hard:
            chosen = one.honor_affinity and (cls.node_selector or cls.node_terms is not None)
            policy = keys, one.key, cls.node_key if chosen else None, cls.tolerations_key if one.honor_taints else None
            self._classes[policy].append(cls.id)
            self._example.setdefault(policy, (cls, one))

    def _of(self, site: CompiledSite, policy: _Policy) -> set[str]:
        """The values of the domains that count."""
        cls, constraint = self._example[policy]
        domains = site.model.topology.of(constraint.key)
        counted = rule.eligible(site.state, domains, *rule.mask_of(site.state, cls, policy[0], constraint))
        return {domains.ids[code] for code in counted.tolist()}
