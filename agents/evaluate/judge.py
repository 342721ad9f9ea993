"""May this running pod, taken out, be on its own node? The same rules as for placement, asked of the pods that run.

In: a model. Out: per running pod, the rules that refuse it and why; on request, the pods it is refused with. Which
refusal is a violation, a drift or nothing is left to them: here every rule speaks (an untolerated NoSchedule taint is
TaintToleration's refusal as well).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.matching import untolerated_mask
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.state import State
from underhost.agents.rules import REGISTRY
from underhost.agents.rules.prepared import Named, Plans
from underhost.agents.rules.rule import Peers, Refusal
from underhost.agents.site import terms
from underhost.agents.site.requests import Request

NOTHING: Mapping[str, Refusal] = {}


class _Alike(NamedTuple):
    """Equal pods: their places among the chosen ones, their nodes, the class and the request of the first."""

    places: IndexArray
    nodes: IndexArray
    cls: int
    request: Request


class Judge:
    """Judges the running pods of one model. Counters are built on first use and kept."""

    def __init__(self, model: Model, state: State | None = None) -> None:
        """`state` is the model's, where the caller has one."""
        self.model = model
        self.state = State(model) if state is None else state
        self._plans = Plans(self.state)

    def refusals(self, pods: Iterable[int] | None = None) -> list[Mapping[str, Refusal]]:
        """For each of these running pods (positions in `model.running`; None: all), refusals by rule."""
        running = self.model.running
        chosen: IndexArray = np.arange(len(running.keys)) if pods is None else np.array(list(pods), np.intp)
        found: dict[int, dict[str, Refusal]] = {}
        for alike in self._alike(running.classes[chosen], chosen):
            self._ask(self._plans.of(alike.cls).own, alike, found)
        for alike in self._alike(running.requests[chosen], chosen):  # whatever the class
            self._ask(self._plans.of(alike.cls).local, alike, found)
        refusals = [NOTHING] * len(chosen)
        for at, refused in found.items():
            refusals[at] = _in_order(refused)
        return refusals

    def _alike(self, values: IndexArray, chosen: IndexArray) -> "Iterator[_Alike]":
        """The chosen pods of equal values; class and request are those of the first."""
        order: IndexArray = np.argsort(values, kind="stable")
        if not len(order):
            return
        running, pods, values = self.model.running, chosen[order], values[order]
        nodes, begins = running.nodes[pods], np.flatnonzero(np.diff(values, prepend=values[0] - 1))
        first = pods[begins]
        ends = [*begins[1:].tolist(), len(order)]
        columns = (begins.tolist(), ends, running.classes[first].tolist(), running.requests[first].tolist())
        for begin, end, cls, request in zip(*columns, strict=True):
            yield _Alike(order[begin:end], nodes[begin:end], cls, self.model.requests[request])

    def _ask(self, rules: list[Named], alike: "_Alike", found: dict[int, dict[str, Refusal]]) -> None:
        """Ask rules of pods that are equal in their eyes."""
        for named in rules:
            codes = named.prepared.refuse(alike.request, alike.nodes, True)
            if codes is not None:
                for at in codes.nonzero()[0].tolist():
                    refusal = named.prepared.explain(int(codes[at]), alike.request, int(alike.nodes[at]), True)
                    found.setdefault(int(alike.places[at]), {})[named.name] = refusal

    def conflicts(self) -> IntArray:
        """int64[P]: for every running pod, the pods kept apart from it that share its ESXi host."""
        running = self.model.running
        total: IntArray = np.zeros(len(running.keys), np.int64)
        if self.model.has_hosts:
            for pods in _grouped(running.classes):
                counted = self._plans.of(int(running.classes[pods[0]])).conflicts(running.nodes[pods])
                if counted is not None:
                    total[pods] = counted
        return total

    def peers(self, pod: int, rule: str) -> list[Peers]:
        """The groups of running pods that the rule holds against a pod on its node, the pod itself left out.

        For PodTopologySpread these are the pods counted in the domain; for PhysicalHost `Peers.rule` tells the rule
        that the separation stems from, and the value is the host's name.
        """
        running = self.model.running
        plan = self._plans.of(int(running.classes[pod]))
        found = []
        for named in plan.rules:
            if named.name == rule:
                for group in named.prepared.peers(int(running.nodes[pod])):
                    others = group.pods[group.pods != pod]
                    if len(others):
                        found.append(group._replace(pods=others))
        return found

    def is_evicted(self, cls: PodClass, node: int) -> bool:
        """Whether a pod of the class is in `evicted` on this node."""
        mask = untolerated_mask(self.state, cls, (terms.NO_EXECUTE,))
        return mask is not None and bool(mask[node])

    def evicted(self) -> IntArray:
        """The running pods on nodes with a NoExecute taint that no toleration of theirs covers, even for a time."""
        running = self.model.running
        found = []
        for pods in _grouped(running.classes):
            cls = self.model.classes[int(running.classes[pods[0]])]
            mask = untolerated_mask(self.state, cls, (terms.NO_EXECUTE,))
            if mask is not None:
                found.append(pods[mask[running.nodes[pods]]])
        evicted: IndexArray = np.sort(np.concatenate(found)) if found else np.zeros(0, np.intp)
        return evicted


def judge(model: Model, pods: Iterable[int] | None = None) -> list[Mapping[str, Refusal]]:
    """For each running pod (positions in `model.running`; None: all), the rules that refuse it on its own node."""
    return Judge(model).refusals(pods)


def _in_order(refusals: dict[str, Refusal]) -> dict[str, Refusal]:
    """The refusals in filter order."""
    return refusals if len(refusals) == 1 else {name: refusals[name] for name in REGISTRY if name in refusals}


def _grouped(values: IndexArray) -> list[IndexArray]:
    """The positions of equal values, one array per value."""
    order: IndexArray = np.argsort(values, kind="stable")
    if not len(order):
        return []
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1)
