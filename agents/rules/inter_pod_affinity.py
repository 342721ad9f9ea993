"""InterPodAffinity: pods that want others near, pods that want them apart, and pods that others want apart.

Required anti-affinity holds both ways: own terms against the pods that are there, and theirs against this one. Affinity
holds one way, and one single pod must match all its terms; where no pod anywhere matches them, a pod that matches its
own terms may be the first. All pods count, deleted ones too. A host key means the live ESXi host (see
`compiled/domains.py`).
"""

from collections.abc import Container, Iterable
from functools import partial
from itertools import groupby

import numpy as np

from underhost.agents.affinity.gathering import mates_of
from underhost.agents.affinity.reach import TermReach
from underhost.agents.affinity.separation import Side, sides_of
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.counters import Counter, Weights
from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray, Where
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupant, Occupants, first
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import (
    MAX_SCORE,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    CodeArray,
    Prepared,
    Refusal,
    of_labels,
    of_pods,
)
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import EXISTS, Selector, written
from underhost.schemas.documents import Because

NAME = "InterPodAffinity"
WEIGHT = 2
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
_AFFINITY, _ANTI, _EXISTING = 1, 2, 3
_Preferred = list[tuple[Domains, list[tuple[Counter, int]]]]
_HARD_AFFINITY_WEIGHT = 1  # what an existing pod's required affinity scores (hardPodAffinityWeight)


class _Preferences(Prepared):
    """Terms that are preferred: it scores by counters with a factor, per topology, and refuses nothing."""

    def __init__(self, preferred: _Preferred) -> None:
        self._preferred = preferred

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        """int(100 · ((sum of weights − min) / (max − min))), all in double precision as upstream."""
        raw: IntArray | None = None
        for domains, counters in self._preferred:
            counted = [(counter, factor) for counter, factor in counters if counter.any()]
            if counted:
                per_domain: IntArray = np.zeros(domains.size, np.int64)
                for counter, factor in counted:
                    per_domain += counter.values() * factor
                codes = domains.codes[nodes]
                here: IntArray = per_domain[codes]
                if domains.missing:
                    here[codes < 0] = 0
                raw = here if raw is None else raw + here
        if raw is None:
            return None
        least = int(raw.min())
        spread = int(raw.max()) - least
        if spread <= 0:
            return 0
        scores: IntArray = (float(MAX_SCORE) * ((raw - least) / spread)).astype(np.int64)
        return scores


class _InterPodAffinity(_Preferences):
    refusals = (
        Refusal(UNRESOLVABLE, (REASON_AFFINITY,)),
        Refusal(UNSCHEDULABLE, (REASON_ANTI_AFFINITY,)),
        Refusal(UNSCHEDULABLE, (REASON_EXISTING_ANTI_AFFINITY,)),
    )

    def __init__(
        self, state: State, cls: PodClass, only: Container[str] | None = None, near: State | None = None
    ) -> None:
        """`only`: the topologyKeys that count, None for all. `near`: the state to ask affinity of, if another."""
        self._cls, self._of, self._topology = cls.id, cls, state.model.topology
        mates = mates_of(cls)
        self._near = _affinity_counters(near or state, cls, mates, only)
        self._first = cls.id in mates
        sides = [side for side in sides_of(cls) if side.rule == NAME and (only is None or side.key in only)]
        of = state.model.topology.of
        self._apart = _distinct(state.counter(of(one.key), state.selected(one.selector)) for one in sides if one.mine)
        # Upstream follows every term; what we add to it by the live host follows terms as far as they reach.
        reach = None if only is None else TermReach(state.model.classes, state.model.options)
        self._existing = _distinct(
            state.counter(of(one.key), _carriers(state, one) if reach is None else _reaching(state, cls, one, reach))
            for one in sides
            if one.selected
        )
        self._refusing = _distinct((*self._apart, *self._existing))
        self._own_terms = bool(cls.required_affinity or cls.required_anti)
        super().__init__(_preferred_counters(state, cls, cls.selectors) if only is None else [])

    @property
    def concerned(self) -> bool:
        """Whether any term concerns the class."""
        return bool(self._own_terms or self._existing or self._preferred)

    def skips(self) -> bool:
        return not self._own_terms and not any(counter.any() for counter in self._existing)

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        """Affinity first, then own anti-affinity, then that of the pods that are there."""
        codes: CodeArray | None = None
        for counters, code in ((self._existing, _EXISTING), (self._apart, _ANTI)):
            for counter in counters:
                # pods of one class keep each other apart by one counter: what `_ANTI` will say of it is the last word
                if code == _EXISTING and any(counter is one for one in self._apart):
                    continue
                # where no domain holds more than the pod itself, taking it out leaves nobody
                if not counter.exceeds(counter.weight.get(self._cls, 0) if out and counter.mask is None else 0):
                    continue
                refused = self._at(counter, nodes, out) > 0
                if codes is None:
                    codes = np.zeros(len(refused), np.int8)
                codes[refused] = code
        if self._near:
            refused = ~self._affinity(self._near, nodes, out)
            if codes is None:
                codes = np.zeros(len(refused), np.int8)
            codes[refused] = _AFFINITY
        return codes

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """All that refuses, though the code is of one thing: the pods to be kept apart, and what nobody near meets."""
        yield from self._nobody_near(node)
        found: set[tuple[str, str, Occupant]] = set()
        for counter in (*self._apart, *self._existing):
            if counter.at_node(node) > 0:
                key, domains = self._key_of(counter.domains), counter.domains
                value = domains.values[domains.code_list[node]]
                found.update((key, value, one) for one in first(there.counted(counter, node)))
        for (key, value), pods in groupby(sorted(found), key=lambda one: one[:2]):
            yield from of_pods((one for _, _, one in pods), key, value)

    def _nobody_near(self, node: int) -> Iterable[Because]:
        where = np.array([node], np.intp)
        if not self._near or self._affinity(self._near, where, False)[0]:
            return
        for counter in self._near:
            if not counter.domains.present[node]:
                yield from of_labels(((self._key_of(counter.domains), EXISTS, ()),), {})
            elif not counter.at_node(node):
                selectors = (term.selector for term in self._of.required_affinity if term.selector is not None)
                asked = dict.fromkeys(one for selector in selectors for one in selector.requirements)
                if asked:
                    yield Because(selector=written(asked), has=None)

    def _key_of(self, domains: Domains) -> str:
        """The topologyKey of a term; where hosts are the domain, the first of the keys that mean them."""
        if domains is not self._topology.hosts:
            return domains.key
        keys = (*(side.key for side in sides_of(self._of)), *(term.key for term in self._of.required_affinity))
        return min(key for key in keys if self._topology.is_host_key(key))

    def exclude(self, request: Request, mask: BoolArray) -> None:
        for counter in self._refusing:
            if counter.sparse is None:
                mask &= counter.at(slice(None)) <= 0
            elif counter.sparse:
                mask[np.fromiter(counter.sparse, np.intp, len(counter.sparse))] = False
        if self._near:
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


def _affinity_counters(
    state: State, cls: PodClass, mates: frozenset[int], only: Container[str] | None
) -> list[Counter]:
    """Per topologyKey of required affinity, the pods that match all terms."""
    keys = dict.fromkeys(term.key for term in cls.required_affinity if only is None or term.key in only)
    weights = state.weights(dict.fromkeys(mates, 1))
    return [state.counter(state.model.topology.of(key), weights) for key in keys]


def _carriers(state: State, side: Side) -> Weights:
    """The pods that carry the term of a separation."""
    memo = (NAME, "anti", side.selector.id, side.key, side.namespace)
    return state.memo.remember(memo, Depends.CLASSES, lambda: state.weights(dict.fromkeys(side.theirs, 1)))


def _reaching(state: State, cls: PodClass, side: Side, reach: TermReach) -> Weights:
    """Of the pods that carry the term, those whose term reaches pods of the class."""
    return state.weights(dict.fromkeys(reach.theirs(cls, side), 1))


def _distinct(counters: Iterable[Counter]) -> list[Counter]:
    return list({id(counter): counter for counter in counters}.values())


def _preferred_counters(state: State, cls: PodClass, selectors: Iterable[Selector]) -> _Preferred:
    """Per topology, counters with a factor: own preferred terms, and what pods that are there prefer of this class.

    `selectors`: those whose terms count of the latter.
    """
    of = state.model.topology.of
    factors: dict[int, tuple[Counter, int]] = {}

    def count(counter: Counter, factor: int) -> None:
        factors[id(counter)] = (counter, factors.get(id(counter), (counter, 0))[1] + factor)

    for term in cls.preferred:
        if term.selector is not None and term.selector.classes and term.weight:
            count(state.counter(of(term.key), state.selected(term.selector)), term.weight)
    for selector in selectors:
        for key in {**selector.preferred, **selector.near}:
            memo = (NAME, "preferred", selector.id, key)
            weights, factor = state.memo.remember(memo, Depends.CLASSES, partial(_factored, state, selector, key))
            count(state.counter(of(key), weights), factor)
    by_topology: dict[int, tuple[Domains, list[tuple[Counter, int]]]] = {}
    for counter, factor in factors.values():
        if factor:
            by_topology.setdefault(id(counter.domains), (counter.domains, []))[1].append((counter, factor))
    return list(by_topology.values())


def _factored(state: State, selector: Selector, key: str) -> tuple[Weights, int]:
    """Equal weights as weight 1 and a factor, so that the counter is shared with whoever counts the same pods."""
    kept = {cls: weight for cls, weight in _preferring(selector, key).items() if weight}
    values = set(kept.values())
    if len(values) == 1:
        return state.weights(dict.fromkeys(kept, 1)), values.pop()
    return state.weights(kept), 1


def _preferring(selector: Selector, key: str) -> dict[int, int]:
    """The weight by class of every preferred term and every required affinity term of the selector."""
    weights = dict(selector.preferred.get(key, {}))
    for cls in selector.near.get(key, ()):
        weights[cls] = weights.get(cls, 0) + _HARD_AFFINITY_WEIGHT
    return weights


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods that no term concerns, neither theirs nor another's."""
    prepared = _InterPodAffinity(state, cls)
    return prepared if prepared.concerned else None


def prepare_only(state: State, cls: PodClass, keys: Container[str], near: State) -> Prepared | None:
    """The required terms of these keys alone; required affinity is asked of the state `near`."""
    prepared = _InterPodAffinity(state, cls, keys, near)
    return prepared if prepared.concerned else None


def prepare_own_preferences(state: State, cls: PodClass) -> Prepared:
    """The preferred terms of the class alone: others' are no wish of its own, though they count for its placement."""
    return _Preferences(_preferred_counters(state, cls, ()))
