"""NodeAffinity: nodeSelector and required node affinity select nodes; preferred terms score them.

Terms are ORed, expressions and fields inside a term ANDed, an empty term matches nothing. A required term that upstream
cannot parse (a Gt value that is no integer) matches nothing; a preferred one makes scoring fail.
"""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, IndexArray, Where
from underhost.agents.compiled.matching import affinity_mask, required_mask, term_mask
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import MAX_SCORE, UNRESOLVABLE, CodeArray, Prepared, Refusal, ScoringError, of_labels
from underhost.agents.site import terms
from underhost.agents.site.requests import Request
from underhost.agents.site.selectors import IN, written
from underhost.schemas.documents import Because

NAME = "NodeAffinity"
WEIGHT = 2
REASON_NOT_MATCHED = "node(s) didn't match Pod's node affinity/selector"
REASON_CONFLICT = "pod affinity terms conflict"
_NOT_MATCHED, _CONFLICT = 1, 2


class _NodeAffinity(Prepared):
    static = True
    refusals = (Refusal(UNRESOLVABLE, (REASON_NOT_MATCHED,)), Refusal(UNRESOLVABLE, (REASON_CONFLICT,)))

    def __init__(
        self,
        state: State,
        cls: PodClass,
        codes: CodeArray | None,
        whole: bool,
        weights: IntArray | None,
        fault: str,
    ) -> None:
        self._state, self._selector, self._terms = state, cls.node_selector, cls.node_terms
        self._codes, self.whole, self._weights, self._fault = codes, whole, weights, fault

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        return None if self._codes is None else self._codes[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """What is not met of the nodeSelector, and, where no term matches, of each term."""
        labels = self._state.model.nodes.labels[node]
        yield from of_labels(((key, IN, (value,)) for key, value in sorted(self._selector.items())), labels)
        if not any(mask is not None and mask[node] for mask in self._masks):
            yield from dict.fromkeys(one for term in self._terms or () for one in self._unmet(term, node))

    @cached_property
    def _masks(self) -> list[BoolArray | None]:
        return [required_mask(self._state, term) for term in self._terms or ()]

    def _unmet(self, term: terms.NodeSelectorTerm, node: int) -> Iterable[Because]:
        nodes, parsed = self._state.model.nodes, terms.node_requirements(term)
        labels = nodes.labels[node]
        if isinstance(parsed, str):  # it matches nothing, whatever the node has
            every = ((one.key, one.operator, tuple(one.values or ())) for one in term.match_expressions or ())
            yield from (Because(selector=written((one,)), has=labels.get(one[0])) for one in every)
        else:
            yield from of_labels(parsed[0], labels)
            yield from of_labels(parsed[1], {terms.NODE_NAME_FIELD: nodes.names[node]})

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        """100 · the weights of the matching preferred terms / the largest such sum."""
        if self._fault:
            raise ScoringError(f'running PreScore plugin "{NAME}": {self._fault}')
        if self._weights is None:
            return None
        weights = self._weights[nodes]
        most = int(weights.max())
        return 0 if most == 0 else MAX_SCORE * weights // most


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None for pods without nodeSelector and node affinity."""
    if not cls.node_selector and cls.node_terms is None and cls.preferred_node is None:
        return None
    return state.memo.remember((NAME, cls.node_key), Depends.NODES, lambda: _prepared(state, cls))


def _prepared(state: State, cls: PodClass) -> Prepared:
    mask = affinity_mask(state, cls)
    conflict = cls.node_terms is not None and _names_conflict(cls.node_terms)
    codes: CodeArray | None = None
    if conflict:
        codes = np.full(len(state.model.nodes), _CONFLICT, np.int8)
    elif mask is not None:
        codes = (~mask).astype(np.int8)
    return _NodeAffinity(state, cls, codes, conflict, *_preferred(state, cls))


def _names_conflict(node_terms: tuple[terms.NodeSelectorTerm, ...]) -> bool:
    """Every term demands node names, and none can be met."""
    if not node_terms:
        return False
    for term in node_terms:
        names: set[str] | None = None
        for field in term.match_fields or ():
            if field.key == terms.NODE_NAME_FIELD and field.operator == IN:
                values = set(field.values or ())
                names = values if names is None else names & values
        if names is None or names:
            return False
    return True


def _preferred(state: State, cls: PodClass) -> tuple[IntArray | None, str]:
    """int64[N], the sum of the matching terms' weights, and what upstream cannot parse."""
    if cls.preferred_node is None:
        return None, ""
    weights = np.zeros(len(state.model.nodes), np.int64)
    for at, preferred in enumerate(cls.preferred_node):
        if preferred.weight == 0 or preferred.preference.empty:
            continue
        mask = term_mask(state, preferred.preference)
        if mask is None:
            return None, f"[{at}].{terms.node_requirements(preferred.preference)}"
        weights += preferred.weight * mask
    return weights, ""
