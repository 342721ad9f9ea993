"""InterPodAffinity: pods that want others near, pods that want them apart, and pods that others want apart.

Required anti-affinity holds both ways: own terms against the pods that are there, and theirs against this one. Affinity
holds one way, and one single pod must match all its terms; where no pod anywhere matches them, a pod that matches its
own terms may be the first. All pods count, deleted ones too. A host key means the live ESXi host (see `domains.py`).
"""

from collections import defaultdict

import numpy as np

from underhost.agents.engine.classes import PodClass
from underhost.agents.engine.counters import Counter, Weights
from underhost.agents.engine.domains import BoolArray, IndexArray, Where
from underhost.agents.engine.nodes import IntArray
from underhost.agents.engine.requests import Request
from underhost.agents.engine.rule import (
    MAX_SCORE,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    CodeArray,
    Peers,
    Prepared,
    Refusal,
)
from underhost.agents.engine.state import State

NAME = "InterPodAffinity"
WEIGHT = 2
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
_AFFINITY, _ANTI, _EXISTING = 1, 2, 3
_HARD_AFFINITY_WEIGHT = 1  # what an existing pod's required affinity scores (hardPodAffinityWeight)


class _InterPodAffinity(Prepared):
    refusals = (
        Refusal(UNRESOLVABLE, (REASON_AFFINITY,)),
        Refusal(UNSCHEDULABLE, (REASON_ANTI_AFFINITY,)),
        Refusal(UNSCHEDULABLE, (REASON_EXISTING_ANTI_AFFINITY,)),
    )

    def __init__(self, state: State, cls: PodClass) -> None:
        self._state, self._cls = state, cls.id
        self._near = _affinity_counters(state, cls)
        self._first = bool(cls.required_affinity) and all(
            term.selector is not None and cls.id in term.selector.classes for term in cls.required_affinity
        )
        self._apart = _own_anti_counters(state, cls)
        self._existing = _existing_anti_counters(state, cls)
        self._own_terms = bool(cls.required_affinity or cls.required_anti)
        self._preferred = _preferred_counters(state, cls)

    @property
    def concerned(self) -> bool:
        """Whether any term concerns the class."""
        return bool(self._own_terms or self._apart or self._existing or self._preferred)

    def skips(self) -> bool:
        return not self._own_terms and not any(counter.any() for counter in self._existing)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        """Affinity first, then own anti-affinity, then that of the pods that are there."""
        codes: CodeArray | None = None
        for counters, code in ((self._existing, _EXISTING), (self._apart, _ANTI)):
            for counter in counters:
                if not counter.any():
                    continue
                refused = self._at(counter, nodes, out) > 0
                if codes is None:
                    codes = np.zeros(len(refused), np.int8)
                codes[refused] = code
        if self._near is not None:
            refused = ~self._affinity(self._near, nodes, out)
            if codes is None:
                codes = np.zeros(len(refused), np.int8)
            codes[refused] = _AFFINITY
        return codes

    def exclude(self, request: Request, mask: BoolArray) -> None:
        for counter in (*self._apart, *self._existing):
            if counter.sparse is None:
                mask &= counter.at(slice(None)) <= 0
            elif counter.sparse:
                mask[list(counter.sparse)] = False
        if self._near is not None:
            mask &= self._affinity(self._near, slice(None), False)

    def _at(self, counter: Counter, nodes: Where, out: bool) -> IntArray:
        counts = counter.at(nodes)
        return counts - counter.share(self._cls, nodes) if out else counts

    def _affinity(self, counters: list[Counter], nodes: Where, out: bool) -> BoolArray:
        """bool[k]: the node has every key, and a matching pod in each of its domains or no such pod is anywhere."""
        keys = np.logical_and.reduce([counter.domains.present[nodes] for counter in counters])
        found = np.logical_and.reduce([self._at(counter, nodes, out) > 0 for counter in counters])
        if self._first:
            anywhere = np.full(len(keys), sum(counter.total() for counter in counters), np.int64)
            if out:
                for counter in counters:
                    anywhere -= counter.share(self._cls, nodes)
            found |= anywhere == 0
        both: BoolArray = keys & found
        return both

    def peers(self, node: int) -> list[Peers]:
        found = []
        for counter in {id(one): one for one in (*self._apart, *self._existing)}.values():
            code = counter.domains.code_list[node]
            if code >= 0:
                pods = self._state.running_in(counter, node)
                found.append(Peers(counter.domains.key, counter.domains.values[code], pods, NAME))
        return found

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        """int(100 · ((sum of weights − min) / (max − min))), all in double precision as upstream."""
        counters = [counter for counter in self._preferred if counter.any()]
        if not counters:
            return None
        raw = counters[0].at(nodes)
        for counter in counters[1:]:
            raw = raw + counter.at(nodes)
        least = int(raw.min())
        spread = int(raw.max()) - least
        if spread <= 0:
            return 0
        scores: IntArray = (float(MAX_SCORE) * ((raw - least) / spread)).astype(np.int64)
        return scores


def _affinity_counters(state: State, cls: PodClass) -> list[Counter] | None:
    """Per key, the pods that match all terms; None where there is no term."""
    terms = cls.required_affinity
    if not terms:
        return None
    matching: set[int] = set(terms[0].selector.classes) if terms[0].selector is not None else set()
    for term in terms[1:]:
        matching &= set(term.selector.classes) if term.selector is not None else set()
    weights = _ones(matching)
    return [state.counter(state.model.topology.of(key), weights) for key in dict.fromkeys(t.key for t in terms)]


def _own_anti_counters(state: State, cls: PodClass) -> list[Counter]:
    by_key: defaultdict[str, set[int]] = defaultdict(set)
    for term in cls.required_anti:
        if term.selector is not None:
            by_key[term.key].update(term.selector.classes)
    return [state.counter(state.model.topology.of(key), _ones(classes)) for key, classes in by_key.items() if classes]


def _existing_anti_counters(state: State, cls: PodClass) -> list[Counter]:
    """Per key, the pods with an anti-affinity term that matches this class."""
    owners = _anti_owners(state)
    by_key: defaultdict[str, set[int]] = defaultdict(set)
    for selector in cls.selectors:
        for key, owner in owners.get(selector.id, ()):
            by_key[key].add(owner)
    return [state.counter(state.model.topology.of(key), _ones(classes)) for key, classes in by_key.items()]


def _preferred_counters(state: State, cls: PodClass) -> list[Counter]:
    """Per key, weights by class: own preferred terms, and what pods that are there prefer or require of this class."""
    owners = _preference_owners(state)
    by_key: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for term in cls.preferred:
        if term.selector is not None:
            weights = by_key[term.key]
            for other in term.selector.classes:
                weights[other] += term.weight
    for selector in cls.selectors:
        for key, owner, weight in owners.get(selector.id, ()):
            by_key[key][owner] += weight
    counters = []
    for key, weights in by_key.items():
        kept = tuple(sorted((other, weight) for other, weight in weights.items() if weight))
        if kept:
            counters.append(state.counter(state.model.topology.of(key), kept))
    return counters


def _anti_owners(state: State) -> dict[int, list[tuple[str, int]]]:
    """(key, class) of every required anti-affinity term, by selector."""
    found: dict[int, list[tuple[str, int]]] | None = state.memo.get((NAME, "anti"))
    if found is None:
        found = state.memo[(NAME, "anti")] = {}
        for cls in state.model.classes:
            for term in cls.required_anti:
                if term.selector is not None:
                    found.setdefault(term.selector.id, []).append((term.key, cls.id))
    return found


def _preference_owners(state: State) -> dict[int, list[tuple[str, int, int]]]:
    """(key, class, weight) of every preferred term and every required affinity term, by selector."""
    found: dict[int, list[tuple[str, int, int]]] | None = state.memo.get((NAME, "preferred"))
    if found is None:
        found = state.memo[(NAME, "preferred")] = {}
        for cls in state.model.classes:
            for weighted in cls.preferred:
                if weighted.selector is not None:
                    found.setdefault(weighted.selector.id, []).append((weighted.key, cls.id, weighted.weight))
            for term in cls.required_affinity:
                if term.selector is not None:
                    found.setdefault(term.selector.id, []).append((term.key, cls.id, _HARD_AFFINITY_WEIGHT))
    return found


def _ones(classes: set[int]) -> Weights:
    return tuple((cls, 1) for cls in sorted(classes))


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods that no term concerns, neither theirs nor another's."""
    prepared = _InterPodAffinity(state, cls)
    return prepared if prepared.concerned else None
