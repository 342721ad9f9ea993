"""The interface that every rule of `agents/rules` implements, and the values it speaks in.

A rule is a module with a `NAME` (the upstream plugin's), `REASON_…` constants, a `WEIGHT` for its score (0: none) and

    prepare(state: State, cls: PodClass) -> Prepared | None      # None: nothing to do for such pods (upstream skips)

`Prepared` answers for all pods of one class against the state as it is now, and as it becomes: it looks counters up and
keeps no copy of what changes. The sequential loop, explain and the checks read the same object. It never sees another
rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from underhost.agents.compiled.domains import BoolArray, IndexArray, Where
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupant, Occupants, first
from underhost.agents.site.selectors import Requirement, matches_value, written
from underhost.schemas.documents import Because

if TYPE_CHECKING:
    from underhost.agents.compiled.classes import PodClass
    from underhost.agents.compiled.state import State
    from underhost.agents.site.requests import Request

UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
MAX_SCORE = 100

CodeArray = npt.NDArray[np.int8]


class Refusal(NamedTuple):
    """Why a rule refuses a node: upstream's code and its reasons; what stands in the way, where somebody asked."""

    code: str
    reasons: tuple[str, ...]
    because: tuple[Because, ...] = ()


class ScoringError(Exception):
    """Upstream's scoring fails for the pod; the text is upstream's."""


class Prepared:
    """One rule for one class of pods. Subclasses override what they have to say; the defaults refuse and score nothing.

    Attributes:
        static: the refusals never change while pods are placed.
        node_local: refusals and scores read only the request and the node's own load, whatever the class: they are
            cached per request, and computed anew for the nodes whose load changed.
        whole: the refusal holds for all nodes at once and is found before any filter runs (upstream's PreFilter).
        refusals: what the codes mean, from code 1 on.
    """

    static = False
    node_local = False
    whole = False
    refusals: tuple[Refusal, ...] = ()

    def refuse(self, request: "Request", nodes: Where, out: bool = False) -> CodeArray | None:
        """int8[k]: 0 where the node is good, else a code; None where all are good.

        With `out` each node is judged as if one pod of this class and request, which runs there, were taken out first.
        """
        return None

    def exclude(self, request: "Request", mask: BoolArray) -> None:
        """Clear in bool[N] the nodes that `refuse` refuses: the same answer, for the loop's sake."""
        codes = self.refuse(request, slice(None))
        if codes is not None:
            mask &= codes == 0

    def at(self, request: "Request", node: int) -> tuple[bool, int]:
        """(good, score) of one node, for node-local rules only: what `refuse` and `score` say, without arrays."""
        where = np.array([node], np.intp)
        codes, score = self.refuse(request, where), self.score(request, where)
        one = score if isinstance(score, int) else 0 if score is None else int(score[0])
        return codes is None or not codes[0], one

    def explain(self, code: int, request: "Request", node: int, out: bool = False) -> Refusal:
        """What a code means on a node."""
        return self.refusals[code - 1]

    def because(self, code: int, request: "Request", node: int, there: Occupants) -> Iterable[Because]:
        """What stands in the way on a node with this code, from the same figures as `refuse`; nothing where none can be
        named. `there` names the pods of the state as it is. Asked by people only: no placement waits for it."""
        return ()

    def explain_fully(self, code: int, request: "Request", node: int, there: Occupants) -> Refusal:
        """As `explain`, with what stands in the way."""
        code_, reasons, _ = self.explain(code, request, node)
        return Refusal(code_, reasons, tuple(self.because(code, request, node, there)))

    def tally(self, codes: CodeArray, request: "Request", nodes: IndexArray) -> dict[str, int]:
        """How many nodes each reason refuses; every code in `codes` is a refusal."""
        found: dict[str, int] = {}
        for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
            for reason in self.refusals[int(code) - 1].reasons:
                found[reason] = found.get(reason, 0) + int(count)
        return found

    def reserve(self, node: int) -> None:
        """A pod of this class was placed on the node: what it takes besides its load (volumes) is taken from now on."""

    def skips(self) -> bool:
        """Upstream's PreFilter finds nothing to do now, so that nominated pods do not count for the rule either."""
        return False

    def conflicts(self, nodes: Where) -> IntArray | None:
        """int64[k], the pods whose separation from this one a shared host undoes; nodes with fewer come first."""
        return None

    def score(self, request: "Request", nodes: IndexArray) -> IntArray | int | None:
        """int64[k], normalised 0-100 over exactly these nodes, the feasible ones; None where upstream skips.

        One number stands for the same on every node. Raises ScoringError.
        """
        return None


NODE = "node"
"""What stands for a topologyKey where the domain is the node itself."""


def of_pods(pods: Iterable[Occupant], key: str, value: str) -> Iterator[Because]:
    """Pods in the way that are in one domain."""
    return (_of_pod(one.pod, key, value) for one in first(pods))


@lru_cache(maxsize=1 << 12)
def _of_pod(pod: str, key: str, value: str) -> Because:
    """All nodes of a domain name the same pods."""
    return Because(pod=pod, key=key, value=value)


def of_labels(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> Iterator[Because]:
    """The requirements that labels do not meet."""
    for one in requirements:
        value = labels.get(one[0])
        if not matches_value(one, value):
            yield Because(selector=written((one,)), has=value)


class Rule(Protocol):
    """A module of `agents/rules`."""

    NAME: str
    WEIGHT: int

    def prepare(self, state: "State", cls: "PodClass") -> Prepared | None:
        """The rule for the class, or None where it has nothing to do."""


def as_rule(module: ModuleType) -> Rule:
    """The module as what it implements."""
    return cast(Rule, module)
