"""PodTopologySpread: matching pods are spread over the domains of a key, strictly (refuses) or loosely (scores).

Only pods of the same namespace that are not being deleted count. Nodes that lack any of the pod's keys, or that its
inclusion policies leave out, count for nothing. Pods without constraints get the scheduler's own, from Services and
owners.
"""

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from underhost.agents.compiled.classes import HOSTNAME_KEY, Constraint, PodClass
from underhost.agents.compiled.counters import Counter
from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray, Where
from underhost.agents.compiled.matching import affinity_mask, untolerated_mask
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupants
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
from underhost.agents.site import golog
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import EXISTS
from underhost.schemas.documents import Because

NAME = "PodTopologySpread"
WEIGHT = 2
REASON_NOT_SPREAD = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
_MISSING, _NOT_SPREAD = 1, 2
FloatArray = npt.NDArray[np.float64]


class _Hard(NamedTuple):
    constraint: Constraint
    domains: Domains
    counter: Counter | None
    eligible: IndexArray  # the domains with a node that counts
    mask: BoolArray | None


class _Soft(NamedTuple):
    constraint: Constraint
    domains: Domains
    counter: Counter | None
    present: BoolArray
    per_node: bool
    everywhere: bool  # every node has the key


class PodTopologySpread(Prepared):
    """The constraints of a class; where `strict`, its DoNotSchedule constraints alone, `only` those of these keys."""

    refusals = (Refusal(UNRESOLVABLE, (REASON_MISSING_LABEL,)), Refusal(UNSCHEDULABLE, (REASON_NOT_SPREAD,)))

    def __init__(
        self, state: State, cls: PodClass, *, strict: bool = False, only: Container[str] | None = None
    ) -> None:
        self._state, self._cls = state, cls
        self._hard = [_hard(state, cls, one) for one in cls.hard if only is None or one.key in only]
        self._soft = [] if strict else [_soft(state, cls, one) for one in cls.soft]
        required = [] if cls.system_default else [one.present for one in self._soft]
        everywhere = np.logical_and.reduce(required) if required else None
        self._ignored: BoolArray | None = None if everywhere is None or everywhere.all() else ~everywhere

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        """matching pods in the domain + 1 if the pod matches itself − the least of all domains ≤ maxSkew"""
        if not self._hard:
            return None
        codes: CodeArray | None = None
        for hard in self._hard:
            one = self._judge(hard, nodes, out)
            if one is not None:
                codes = one if codes is None else np.where(codes == 0, one, codes).astype(np.int8)
        return codes

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """Of each constraint that refuses, the pods that it counts in the node's domain, or the key that is missing."""
        for hard in self._hard:
            codes = self._judge(hard, np.array([node], np.intp), False)
            if codes is None or not codes[0]:
                continue
            key, domains = hard.constraint.key, hard.domains
            if codes[0] == _MISSING:
                yield from of_labels(((key, EXISTS, ()),), {})
            elif hard.counter is not None:
                value = domains.values[domains.code_list[node]]
                yield from of_pods(there.counted(hard.counter, node), key, value)

    def by_constraint(self, nodes: IndexArray) -> Iterator[tuple[Constraint, BoolArray]]:
        """For each DoNotSchedule constraint, bool[k]: whether it alone refuses pods of the class on their own nodes."""
        for hard in self._hard:
            codes = self._judge(hard, nodes, True)
            yield hard.constraint, np.zeros(len(nodes), bool) if codes is None else codes == _NOT_SPREAD

    def _judge(self, hard: _Hard, nodes: Where, out: bool) -> CodeArray | None:
        constraint, domains = hard.constraint, hard.domains
        counts: IntArray = np.zeros(domains.size, np.int64) if hard.counter is None else hard.counter.values()
        if self._state.nominating:
            counts = self._with_nominated(hard, counts)
        enough = len(hard.eligible) >= constraint.min_domains
        least = int(counts[hard.eligible].min()) if enough and len(hard.eligible) else 0
        if not domains.missing and int(counts.max(initial=0)) + constraint.self_match - least <= constraint.max_skew:
            return None  # the fullest domain is within the skew
        codes, more = domains.codes[nodes], counts + (int(constraint.self_match) - least)
        if out and hard.counter is not None:
            # a pod that leaves may lower the least to what its own domain has left; it is then within any skew there
            over = more[codes] - hard.counter.share(self._cls.id, nodes) > constraint.max_skew
        else:
            over = (more > constraint.max_skew)[codes]
        found: CodeArray = over.view(np.int8) * np.int8(_NOT_SPREAD)
        if domains.missing:
            found[codes < 0] = _MISSING
        return found if found.any() else None

    def _with_nominated(self, hard: _Hard, counts: IntArray) -> IntArray:
        """Upstream adds nominated pods without its two exceptions: deleted pods, and the selector that is empty."""
        counts = counts.copy()
        classes, constraint = self._state.model.classes, hard.constraint
        for cls, node in self._state.nominating:
            other = classes[cls]
            code = hard.domains.code_list[node]
            if other.namespace != self._cls.namespace or code < 0 or (hard.mask is not None and not hard.mask[node]):
                continue
            if constraint.selector is None:
                counts[code] += constraint.self_match
            elif not other.live and cls in constraint.selector.classes:
                counts[code] += 1
        return counts

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        """Σ matching pods · ln(domains + 2) + maxSkew − 1, rounded; then 100 · (max + min − it) / max."""
        if not self._soft:
            return None
        ignored = None if self._ignored is None else self._ignored[nodes]
        if ignored is not None and not ignored.any():
            ignored = None
        kinds, raw = self._kinds(nodes, ignored)
        whole = np.floor(raw)
        scores: IntArray = (whole + (raw - whole >= 0.5)).astype(np.int64)  # half away from zero, as math.Round
        counted = scores[_met(len(raw), kinds, ignored)]
        if not len(counted):
            return 0
        most, least = int(counted.max()), int(counted.min())
        scores = MAX_SCORE * (most + least - scores) // most if most else np.full(len(raw), MAX_SCORE, np.int64)
        scores = scores[kinds]
        if ignored is not None:
            scores[ignored] = 0
        return scores

    def _kinds(self, nodes: IndexArray, ignored: BoolArray | None) -> tuple[IntArray, FloatArray]:
        """int64[k], of which kind each node is, and what the constraints sum up to for each kind: few nodes differ."""
        kinds, raw = np.zeros(len(nodes), np.int64), np.zeros(1, np.float64)
        for soft in self._soft:
            values, weighed = self._weighed(soft, nodes, ignored)
            if len(weighed) == 1:
                raw = raw + weighed
            elif len(raw) == 1:
                kinds, raw = values, raw + weighed
            elif len(raw) * len(weighed) <= len(nodes):
                kinds, raw = kinds * len(weighed) + values, np.add.outer(raw, weighed).ravel()
            else:
                kinds, raw = np.arange(len(nodes)), raw[kinds] + weighed[values]
        return kinds, raw

    def _weighed(self, soft: _Soft, nodes: IndexArray, ignored: BoolArray | None) -> tuple[IntArray, FloatArray]:
        """A value of each node, and what the constraint adds to nodes of each value; if it is the same, of one."""
        values, counts, size = np.zeros(1, np.int64), np.zeros(1, np.int64), 0
        if soft.counter is not None and soft.counter.any():
            if soft.per_node:
                values = soft.counter.at(nodes)
                counts = np.arange(int(values.max()) + 1)
                size = len(nodes) if ignored is None else len(nodes) - int(ignored.sum())
            else:
                values, counts = soft.domains.codes[nodes], soft.counter.values()
                size = int(np.count_nonzero(_met(len(counts), values, ignored)))
        weighed = np.asarray(counts * golog.log(size + 2.0) + float(soft.constraint.max_skew - 1), np.float64)
        if soft.everywhere:
            return values, weighed
        return np.where(soft.present[nodes], values, len(weighed)), np.append(weighed, 0.0)


def _met(size: int, values: IntArray, ignored: BoolArray | None) -> BoolArray:
    """bool[size]: the values that some node has which is not ignored."""
    met = np.zeros(size, bool)
    met[values if ignored is None else values[~ignored]] = True
    return met


def mask_of(state: State, cls: PodClass, keys: tuple[str, ...], one: Constraint) -> tuple[BoolArray | None, object]:
    """The nodes that count for a constraint, None for all; and what tells masks apart."""
    key = (
        NAME,
        keys,
        cls.node_key if one.honor_affinity and (cls.node_selector or cls.node_terms is not None) else None,
        cls.tolerations_key if one.honor_taints else None,
    )
    mask = state.memo.remember(key, Depends.NODES, lambda: _mask(state, cls, keys, one))
    return mask, None if mask is None else key


def _mask(state: State, cls: PodClass, keys: tuple[str, ...], one: Constraint) -> BoolArray | None:
    mask = np.ones(len(state.model.nodes), bool)
    for name in keys:
        mask &= state.model.topology.of(name).present
    if one.honor_affinity and (allowed := affinity_mask(state, cls)) is not None:
        mask &= allowed
    if one.honor_taints and (untolerated := untolerated_mask(state, cls)) is not None:
        mask &= ~untolerated
    return None if mask.all() else mask


def _hard(state: State, cls: PodClass, one: Constraint) -> _Hard:
    mask, mask_key = mask_of(state, cls, tuple(sorted({other.key for other in cls.hard})), one)
    domains = state.model.topology.of(one.key)
    counter = None
    if one.selector is not None:
        counter = state.counter(domains, state.selected(one.selector, live=True), mask, mask_key)
    return _Hard(one, domains, counter, eligible(state, domains, mask, mask_key), mask)


def eligible(state: State, domains: Domains, mask: BoolArray | None, mask_key: object) -> IndexArray:
    """The domains with a node that counts."""

    def make() -> IndexArray:
        codes = domains.codes if mask is None else domains.codes[mask]
        met = np.zeros(domains.size, bool)
        met[codes[codes >= 0] if domains.missing else codes] = True
        return np.flatnonzero(met)

    # the domains live as long as the nodes are as they are
    return state.memo.remember((NAME, "eligible", id(domains), mask_key), Depends.NODES, make)


def _soft(state: State, cls: PodClass, one: Constraint) -> _Soft:
    topology = state.model.topology
    present = topology.of(one.key).present
    if one.key == HOSTNAME_KEY:  # counted on the node itself, and over all nodes
        counter = (
            None if one.selector is None else state.counter(topology.each_node, state.selected(one.selector, live=True))
        )
        return _Soft(one, topology.each_node, counter, present, True, bool(present.all()))
    if cls.system_default:  # a node without the key is in a domain with the empty value
        keys: tuple[str, ...] = ()
        domains = topology.filled(one.key)
    else:
        keys = tuple(sorted({other.key for other in cls.soft}))
        domains = topology.of(one.key)
    counter = None
    if one.selector is not None:
        counter = state.counter(domains, state.selected(one.selector, live=True), *mask_of(state, cls, keys, one))
    return _Soft(one, domains, counter, present, False, bool(present.all()))


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without constraints, own or the scheduler's."""
    return PodTopologySpread(state, cls) if cls.hard or cls.soft else None


def prepare_strict(state: State, cls: PodClass, only: Container[str] | None = None) -> PodTopologySpread | None:
    """The DoNotSchedule constraints, with `only` those of these keys; None where there is none.

    Which nodes count is what all of the pod's constraints say.
    """
    wanted = any(only is None or one.key in only for one in cls.hard)
    return PodTopologySpread(state, cls, strict=True, only=only) if wanted else None
