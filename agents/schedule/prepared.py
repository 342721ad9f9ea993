"""Everything that decides about one class of pods: its prepared rules, in upstream's order.

In: a state and a class. Out: a `Plan`, made once per class and state.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, IndexArray, Where
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.state import State
from underhost.agents.rules import REGISTRY
from underhost.agents.rules.rule import Prepared
from underhost.agents.site.requests import Request

ALL = slice(None)


class Named(NamedTuple):
    """A prepared rule with its name and the weight of its score."""

    name: str
    prepared: Prepared
    weight: int


class Plan:
    """The rules that have something to do for a class.

    Attributes:
        rules: in filter order. scored: those with a weight. whole: the one that refuses before any filter, or None.
        static_mask: bool[N], the nodes that no static rule refuses, or None for all. dynamic: rules that refuse more.
        local: the node-local rules, which the loop caches per request. own: the others.
        preferring: the rules that count conflicts. reserving: those that take something besides a node's load.
    """

    __slots__ = ("cls", "dynamic", "local", "own", "preferring", "reserving", "rules", "scored", "static_mask", "whole")

    def __init__(self, state: State, cls: PodClass) -> None:
        self.cls = cls
        self.rules = [
            Named(name, prepared, rule.WEIGHT)
            for name, rule in REGISTRY.items()
            if (prepared := rule.prepare(state, cls)) is not None
        ]
        self.local = [named for named in self.rules if named.prepared.node_local]
        self.own = [named for named in self.rules if not named.prepared.node_local]
        self.scored = [named for named in self.rules if named.weight]
        self.whole = next((named for named in self.rules if named.prepared.whole), None)
        self.dynamic = [
            named
            for named in self.rules
            if not (named.prepared.static or named.prepared.node_local)
            and type(named.prepared).refuse is not Prepared.refuse
        ]
        self.preferring = [named for named in self.rules if type(named.prepared).conflicts is not Prepared.conflicts]
        self.reserving = [named for named in self.rules if type(named.prepared).reserve is not Prepared.reserve]
        self.static_mask = self._static_mask(state)

    def _static_mask(self, state: State) -> BoolArray | None:
        mask: BoolArray | None = None
        nothing = Request({}, {}, (0, 0), (0, 0), (0, 0))
        for named in self.rules:
            if named.prepared.static:
                codes = named.prepared.refuse(nothing, ALL)
                if codes is not None:
                    mask = codes == 0 if mask is None else mask & (codes == 0)
        return None if mask is None or mask.all() else mask

    def conflicts(self, nodes: Where) -> IntArray | None:
        """int64[k], how many pods each node's physical host would bring too near; None where no rule counts them."""
        total: IntArray | None = None
        for named in self.preferring:
            counted = named.prepared.conflicts(nodes)
            if counted is not None:
                total = counted if total is None else total + counted
        return total

    def scores(self, request: Request, nodes: IndexArray) -> Iterator[tuple[str, int, "IntArray | int"]]:
        """(rule, weight, score) of every rule that scores these feasible nodes. Raises ScoringError."""
        for named in self.scored:
            score = named.prepared.score(request, nodes)
            if score is not None:
                yield named.name, named.weight, score

    def total(self, request: Request, nodes: IndexArray) -> IntArray:
        """int64[k], the weighted sum of the scores. Raises ScoringError."""
        total: IntArray = np.zeros(len(nodes), np.int64)
        for _, weight, score in self.scores(request, nodes):
            total += weight * score
        return total


class Plans:
    """The plans of a state, made on first use."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._plans: dict[int, Plan] = {}

    def of(self, cls: int) -> Plan:
        """The plan of a class."""
        plan = self._plans.get(cls)
        if plan is None:
            plan = self._plans[cls] = Plan(self.state, self.state.model.classes[cls])
        return plan
