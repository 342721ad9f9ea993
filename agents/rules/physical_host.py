"""PhysicalHost, ours: a required separation that holds by label is undone where both pods end up on one ESXi host.

Which pods a separation keeps apart, and when a host undoes that, is decided in `affinity/separation.py`. Terms on a
host key are judged by the live host itself, in the rules they belong to. Nodes with fewer conflicting pods are
preferred before any score; with `physical_host="required"` a conflict refuses. Without hosts the rule has nothing to
do.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.reach import TermReach
from underhost.agents.affinity.separation import across_domains, in_different_domains, sides_of
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.counters import Weights
from underhost.agents.compiled.domains import Domains, IndexArray, Where
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.occupants import Occupant, Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNSCHEDULABLE, CodeArray, Prepared, Refusal, of_pods
from underhost.agents.site.requests import Request
from underhost.schemas.documents import Because

NAME = "PhysicalHost"
WEIGHT = 0
REASON_SHARED_HOST = "node(s) were on a physical host that runs a pod to be kept apart"
REQUIRED = "required"
HOST = "host"


Separations = Mapping[tuple[str, str], Collection[int]]
"""The classes kept apart from one, in either direction, by (rule, topologyKey)."""


class _Group(NamedTuple):
    """Classes kept apart from this one by the same keys."""

    keys: tuple[str, ...]
    classes: tuple[int, ...]
    weights: Weights


class _PhysicalHost(Prepared):
    refusals = (Refusal(UNSCHEDULABLE, (REASON_SHARED_HOST,)),)

    def __init__(self, state: State, hosts: Domains, separations: Separations) -> None:
        self._state, self._hosts, self._separations = state, hosts, separations
        keys_of: defaultdict[int, set[str]] = defaultdict(set)
        for (_, key), classes in separations.items():
            for cls in classes:
                keys_of[cls].add(key)
        grouped: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for cls, keys in sorted(keys_of.items()):
            grouped[tuple(sorted(keys))].append(cls)
        self._groups = [
            _Group(keys, tuple(classes), state.weights(dict.fromkeys(classes, 1))) for keys, classes in grouped.items()
        ]

    def conflicts(self, nodes: Where) -> IntArray | None:
        """A pod never conflicts with itself, whether it is there or not."""
        total: IntArray | None = None
        for group in self._groups:
            counted = self._by_key(group, nodes) if len(group.keys) == 1 else self._by_keys(group, nodes)
            if counted is not None:
                total = counted if total is None else total + counted
        return total

    def _by_key(self, group: _Group, nodes: Where) -> IntArray | None:
        """Pods on the node's host whose node has the key, without those in the node's own domain of it."""
        key = group.keys[0]
        topology, weights = self._state.model.topology, group.weights
        present = topology.of(key).present
        on_host = self._state.counter(self._hosts, weights, present, (NAME, key))
        if not on_host.any():
            return None
        inside = self._state.counter(topology.within_host(key), weights)
        return across_domains(on_host.at(nodes), inside.at(nodes), present[nodes])

    def _by_keys(self, group: _Group, nodes: Where) -> IntArray | None:
        """Each pod once, though several keys keep it apart."""
        topology, weights = self._state.model.topology, group.weights
        counter = self._state.counter(topology.each_node, weights)
        if not counter.any():
            return None
        if any(domains.unique and not domains.missing for domains in map(topology.of, group.keys)):
            on_host = self._state.counter(self._hosts, weights)  # of these, all but the node's own are apart from it
            return (on_host.at(nodes) - counter.at(nodes)) * self._hosts.present[nodes]
        counts = counter.values()
        there: IndexArray = np.flatnonzero(counts)
        of, here = self._hosts.neighbours(there)
        apart = np.zeros(len(of), bool)
        for key in group.keys:
            codes = topology.of(key).codes
            apart |= in_different_domains(codes[here], codes[there[of]])
        conflicts: IntArray = np.zeros(len(counts), np.int64)
        np.add.at(conflicts, here[apart], counts[there[of[apart]]])
        return conflicts[nodes]

    def because(self, code: int, request: Request, node: int, there: Occupants) -> Iterable[Because]:
        """The pods on the node's host that it would bring together with this one; `value` is the host's name."""
        found = {one for group in self._groups for one in self._conflicting(group, node, there)}
        return of_pods(sorted(found), HOST, self._hosts.values[self._hosts.code_list[node]]) if found else ()

    def _conflicting(self, group: _Group, node: int, there: Occupants) -> Iterable[Occupant]:
        pods = there.of(group.classes, self._hosts, node)
        others: IndexArray = np.array([one.node for one in pods], np.intp)
        apart = np.zeros(len(pods), bool)
        for key in group.keys:
            codes = self._state.model.topology.of(key).codes
            apart |= in_different_domains(codes[np.full(len(pods), node)], codes[others])
        return (pods[at] for at in np.flatnonzero(apart).tolist())

    def refuse(self, request: Request, nodes: Where, out: bool = False) -> CodeArray | None:
        if self._state.model.options.physical_host != REQUIRED:
            return None
        counted = self.conflicts(nodes)
        return None if counted is None else (counted > 0).astype(np.int8)


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """None where no host is known, or nothing keeps these pods apart from any other."""
    hosts = state.model.topology.hosts
    if hosts is None:
        return None
    return prepare_apart(state, hosts, separations(state.model, cls))


def prepare_apart(state: State, hosts: Domains, separations: Separations) -> Prepared | None:
    """The rule for pods that these separations keep apart from the classes named; for who knows them already."""
    return _PhysicalHost(state, hosts, separations) if separations else None


def separations(model: Model, cls: PodClass) -> Separations:
    """The classes that a shared host must not bring together with this one, by (rule, key), in either direction.

    A term of theirs counts as far as it reaches (`reach.py`): nobody closes a host to another namespace's pods.
    """
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    topology, reach = model.topology, TermReach(model.classes, model.options)
    for side in sides_of(cls):
        if topology.hosts is not None and not topology.is_host_key(side.key):
            found[(side.rule, side.key)].update(side.mine, reach.theirs(cls, side))
    return {by: classes for by, classes in found.items() if classes}
