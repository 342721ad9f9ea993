"""Which nodes a class of pods may use by labels and taints alone: masks that more than one rule reads.

In: a state and a class. Out: bool[N] masks, computed once for equal node affinity or equal tolerations.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.state import State
from underhost.agents.site import terms
from underhost.agents.site.selectors import IN, NOT_IN, Requirement, matches_value


def requirement_mask(state: State, requirement: Requirement) -> BoolArray:
    """bool[N]: the nodes whose label meets the requirement."""
    return state.memo.remember(("requirement", requirement), Depends.NODES, lambda: _meeting(state, requirement))


def _meeting(state: State, requirement: Requirement) -> BoolArray:
    name, operator, values = requirement
    domains = state.model.topology.labels(name)
    # one entry per value of the label, and a last one for nodes that lack it (their code is -1)
    if operator in (IN, NOT_IN):
        table = np.full(domains.size + 1, operator == NOT_IN)
        for value in values:
            if value in domains.code_of:
                table[domains.code_of[value]] = operator == IN
    else:
        met = [matches_value(requirement, value) for value in (*domains.values, None)]
        table = np.array(met, bool)
    mask: BoolArray = table[domains.codes]
    return mask


def term_mask(state: State, term: terms.NodeSelectorTerm) -> BoolArray | None:
    """bool[N]: the nodes that match a term of node affinity; None for a term that upstream cannot parse."""
    parsed = terms.node_requirements(term)
    if isinstance(parsed, str):
        return None
    expressions, fields = parsed
    mask = np.ones(len(state.model.nodes), bool)
    for requirement in expressions:
        mask &= requirement_mask(state, requirement)
    for name, operator, values in fields:
        same = np.zeros(len(mask), bool)
        at = state.model.nodes.index.get(values[0]) if name == terms.NODE_NAME_FIELD else None
        if at is not None:
            same[at] = True
        mask &= same if operator == IN else ~same
    return mask


def required_mask(state: State, term: terms.NodeSelectorTerm) -> BoolArray | None:
    """bool[N]: the nodes that match a term of required node affinity; None for one that matches nothing, as empty."""
    return None if term.empty else term_mask(state, term)


def affinity_mask(state: State, cls: PodClass) -> BoolArray | None:
    """bool[N]: the nodes that nodeSelector and required node affinity allow; None where the class has neither."""
    if not cls.node_selector and cls.node_terms is None:
        return None
    return state.memo.remember(("affinity", cls.node_key), Depends.NODES, lambda: _allowed(state, cls))


def _allowed(state: State, cls: PodClass) -> BoolArray:
    mask = np.ones(len(state.model.nodes), bool)
    for name, value in cls.node_selector.items():
        mask &= requirement_mask(state, (name, IN, (value,)))
    if cls.node_terms is not None:
        some = np.zeros(len(mask), bool)
        for term in cls.node_terms:
            matched = required_mask(state, term)
            if matched is not None:
                some |= matched
        mask &= some
    return mask


HARD = (terms.NO_SCHEDULE, terms.NO_EXECUTE)


def untolerated(
    tolerations: tuple[terms.Toleration, ...], taints: Iterable[terms.Taint], effects: tuple[str, ...] = HARD
) -> list[terms.Taint]:
    """The taints of these effects that are not tolerated."""
    return [
        taint
        for taint in taints
        if taint.effect in effects and not terms.tolerates(tolerations, taint.key, taint.value or "", taint.effect)
    ]


def untolerated_mask(state: State, cls: PodClass, effects: tuple[str, ...] = HARD) -> BoolArray | None:
    """bool[N]: the nodes with a taint of these effects that the class does not tolerate; None for no node."""

    def make() -> BoolArray | None:
        nodes = state.model.nodes
        refused = [bool(untolerated(cls.tolerations, taints, effects)) for taints in nodes.taints]
        return np.array(refused, bool)[nodes.taint_list] if any(refused) else None

    return state.memo.remember(("taints", effects, cls.tolerations_key), Depends.NODES, make)


def shut_out_mask(state: State, cls: PodClass) -> BoolArray | None:
    """bool[N]: the nodes that keep the class away by a taint that lasts; None for no node. A cordon passes."""

    def make() -> BoolArray | None:
        nodes = state.model.nodes
        lasting = [[one for one in taints if not one.key.startswith(terms.PASSING_TAINTS)] for taints in nodes.taints]
        refused = [bool(untolerated(cls.tolerations, taints)) for taints in lasting]
        return np.array(refused, bool)[nodes.taint_list] if any(refused) else None

    return state.memo.remember(("lasting taints", cls.tolerations_key), Depends.NODES, make)
