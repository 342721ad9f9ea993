"""Nominated pods: a node that preemption has promised to a pod is judged twice for the others.

In: a state and the pending pods. Out: refusals of a node in the pass in which the pods nominated there, of at least the
same priority, count as if they ran. Upstream: `RunFilterPluginsWithNominatedPods`.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.occupants import Occupant, Occupants
from underhost.agents.compiled.reader import PendingPod
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import Refusal
from underhost.agents.schedule.prepared import Plan


class Nominations:
    """Who is nominated where. A gated pod's nomination is ignored."""

    def __init__(self, state: State, pods: Iterable[PendingPod]) -> None:
        self._state = state
        self._by_node: defaultdict[int, list[PendingPod]] = defaultdict(list)
        for pod in pods:
            node = state.model.nodes.index.get(pod.nominated, -1) if pod.nominated and not pod.gates else -1
            if node >= 0:
                self._by_node[node].append(pod)

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def drop(self, pod: PendingPod) -> None:
        """The pod was placed: its nomination counts no more."""
        for node, pods in list(self._by_node.items()):
            kept = [other for other in pods if other.uid != pod.uid]
            if kept:
                self._by_node[node] = kept
            else:
                del self._by_node[node]

    def rivals(self, uid: str, priority: int) -> dict[int, list[PendingPod]]:
        """By node, the nominated pods that another pod must yield to."""
        found = {}
        for node, pods in self._by_node.items():
            kept = [pod for pod in pods if pod.priority >= priority and pod.uid != uid]
            if kept:
                found[node] = kept
        return found

    def refusals(
        self, plan: Plan, request: int, node: int, rivals: list[PendingPod], there: Occupants | None = None
    ) -> dict[str, Refusal]:
        """What each rule says of the node while the rivals count as running there, in filter order.

        With `there`, the pods without the rivals, each says also what stands in the way.
        """
        state = self._state
        active = [named for named in plan.rules if not named.prepared.skips()]
        state.nominating = [(pod.cls, node) for pod in rivals]
        for pod in rivals:
            state.add(pod.cls, pod.request, node)
        try:
            joined = None if there is None else there.joined_by(Occupant(pod.key, pod.cls, node) for pod in rivals)
            return refusals_at(state, plan, request, node, [named.name for named in active], there=joined)
        finally:
            for pod in rivals:
                state.add(pod.cls, pod.request, node, -1)
            state.nominating = []


def refusals_at(
    state: State,
    plan: Plan,
    request: int,
    node: int,
    only: list[str] | None = None,
    there: Occupants | None = None,
) -> dict[str, Refusal]:
    """What each rule that refuses one node says, in filter order; with `there` also what stands in the way."""
    wanted, at = state.model.requests[request], np.array([node], np.intp)
    found = {}
    for named in plan.rules:
        if only is not None and named.name not in only:
            continue
        codes = named.prepared.refuse(wanted, at)
        if codes is not None and codes[0]:
            code = int(codes[0])
            found[named.name] = (
                named.prepared.explain(code, wanted, node)
                if there is None
                else named.prepared.explain_fully(code, wanted, node, there)
            )
    return found
