"""What the host rules say of a pod on every node: PhysicalHost, and the terms on the host key by the live host.

In: a compiled picture, what it says of the pod's class, pods that are on their way, pods to be thought away. Out: a
`Verdict`, arrays over the picture's nodes. The rules are those of `agents/rules`; here is only which of them, and in
what order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.overlay import Moved, Overlay
from underhost.agents.compiled.state import State
from underhost.agents.extender.picture import Apart, HostPicture
from underhost.agents.rules import inter_pod_affinity as pods
from underhost.agents.rules import physical_host
from underhost.agents.rules import pod_topology_spread as spread
from underhost.agents.rules.rule import CodeArray
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options

ALL = slice(None)
REASON_MAY_SHARE = "node(s) were on a physical host where a pod to be kept apart may be about to run"


class Refusal(NamedTuple):
    """Why a node is refused; `resolvable`: evicting pods of the node itself could help."""

    rule: str
    reason: str
    resolvable: bool


_SPREAD, _MISSING, _NEAR, _OWN, _EXISTING, _SHARED, _MAY_SHARE = range(1, 8)
REFUSALS = {
    _SPREAD: Refusal(spread.NAME, spread.REASON_NOT_SPREAD, True),
    _MISSING: Refusal(spread.NAME, spread.REASON_MISSING_LABEL, False),
    _NEAR: Refusal(pods.NAME, pods.REASON_AFFINITY, False),
    _OWN: Refusal(pods.NAME, pods.REASON_ANTI_AFFINITY, True),
    _EXISTING: Refusal(pods.NAME, pods.REASON_EXISTING_ANTI_AFFINITY, True),
    # The pods in the way run on other nodes of the host: no eviction from this node removes one.
    _SHARED: Refusal(physical_host.NAME, physical_host.REASON_SHARED_HOST, False),
    _MAY_SHARE: Refusal(physical_host.NAME, REASON_MAY_SHARE, False),
}


class Coming(NamedTuple):
    """A pod on its way: of one class, to one of these nodes."""

    cls: int
    places: IndexArray


class Verdict(NamedTuple):
    """N nodes.

    Attributes:
        codes: int8[N], 0 where the node is good, else a key of REFUSALS: the first rule that refuses, as upstream.
        conflicts: int64[N], the pods that a shared host would bring together with this one.
        possible: bool[N], pods on their way, of whom more than one place is known, may be brought together with it.
        refusing: bool[N], of those, where the pod must not be if they are.
    """

    codes: CodeArray
    conflicts: IntArray
    possible: BoolArray
    refusing: BoolArray

    @property
    def free(self) -> BoolArray:
        """bool[N], the nodes that nothing speaks against."""
        found: BoolArray = (self.codes == 0) & (self.conflicts == 0) & ~self.possible
        return found

    @property
    def torn(self) -> BoolArray:
        """bool[N], the nodes that nothing but a pod on its way may speak against."""
        found: BoolArray = (self.codes == 0) & (self.conflicts == 0) & self.possible
        return found

    def settled(self) -> CodeArray:
        """int8[N], as `codes`, and what may be in the way refuses as if it were."""
        return np.where((self.codes == 0) & self.refusing, _MAY_SHARE, self.codes).astype(np.int8)


def judge(
    picture: HostPicture,
    options: Options,
    apart: Apart,
    request: Request,
    coming: Sequence[Coming] = (),
    gone: Sequence[Moved] = (),
) -> Verdict:
    """The verdict for a pod of the class, given pods on their way and pods to be thought away."""
    sure = [Moved(one.cls, int(one.places[0])) for one in coming if len(one.places) == 1]
    state: State = Overlay(picture.state, (*sure, *gone)) if sure or gone else picture.state
    unsure = [one for one in coming if len(one.places) > 1]
    hosts, size = picture.topology.hosts, len(picture.names)
    codes, conflicts = np.zeros(size, np.int8), np.zeros(size, np.int64)
    possible, refusing = np.zeros(size, bool), np.zeros(size, bool)
    if hosts is None or not apart.matters:
        return Verdict(codes, conflicts, possible, refusing)
    required = options.physical_host == physical_host.REQUIRED
    prepared = physical_host.prepare_apart(state, hosts, apart.separations)
    counted = prepared.conflicts(ALL) if prepared is not None else None
    if counted is not None:
        conflicts = counted
        if required:
            codes[conflicts > 0] = _SHARED
    for classes, code in ((apart.existing, _EXISTING), (apart.own, _OWN)):
        if classes:
            codes[_on_hosts(state, hosts, classes) > 0] = code
    if apart.near:
        codes[~_near(state, hosts, apart.cls, unsure)] = _NEAR
    if apart.spread:
        _refuse_spread(state, options, apart, request, codes)
    for one in unsure:
        shared, same = _may_share(picture, hosts, apart, one), _may_meet(hosts, apart, one)
        possible |= shared | same
        refusing |= (shared | same) if required else same
    return Verdict(codes, conflicts, possible, refusing)


def unseen(picture: HostPicture, apart: Apart, coming: Sequence[Coming], verdict: Verdict) -> Verdict:
    """The verdict with pods on their way of which the scheduler that asks cannot know: another scheduler's.

    Required anti-affinity refuses every domain that they go to, the very node among them, by label as upstream does.
    """
    met = np.zeros(len(picture.names), bool)
    for one in coming:
        for key in apart.keys.get(one.cls, ()):
            codes = picture.topology.of(key).codes
            met |= (codes >= 0) & (codes == codes[one.places[0]])
    return verdict._replace(codes=np.where((verdict.codes == 0) & met, _EXISTING, verdict.codes).astype(np.int8))


def _on_hosts(state: State, hosts: Domains, classes: frozenset[int]) -> IntArray:
    return state.counter(hosts, state.weights(dict.fromkeys(classes, 1))).at(ALL)


def _near(state: State, hosts: Domains, cls: PodClass, unsure: Sequence[Coming]) -> BoolArray:
    """bool[N]: a pod that matches all terms of the class's required affinity is on the host, or no such pod is at all.

    A pod on its way may be wherever it may be: kube-scheduler, which knows where, has asked the same by label.
    """
    selectors = [term.selector for term in cls.required_affinity]
    every = [frozenset(one.classes) if one is not None else frozenset[int]() for one in selectors]
    matching = frozenset.intersection(*every)
    there = _on_hosts(state, hosts, matching) > 0
    for one in unsure:
        if one.cls in matching:
            there |= _hosting(hosts, one.places)
    if cls.id in matching and not there.any():
        return hosts.present
    return there & hosts.present


def _refuse_spread(state: State, options: Options, apart: Apart, request: Request, codes: CodeArray) -> None:
    prepared = spread.prepare_only(state, apart.cls, options.host_keys)
    refused = prepared.refuse(request, ALL) if prepared is not None else None
    if refused is not None and prepared is not None:
        meaning = [
            0,
            *(_MISSING if one.reasons[0] == spread.REASON_MISSING_LABEL else _SPREAD for one in prepared.refusals),
        ]
        found = np.array(meaning, np.int8)[refused]
        codes[found > 0] = found[found > 0]


def _may_share(picture: HostPicture, hosts: Domains, apart: Apart, one: Coming) -> BoolArray:
    """bool[N]: one of its places is another domain of a key on the node's host."""
    found = np.zeros(len(picture.names), bool)
    for (_, key), classes in apart.separations.items():
        if one.cls not in classes:
            continue
        codes, within = picture.topology.of(key).codes, picture.topology.within_host(key)
        places = one.places[within.codes[one.places] >= 0]
        on_host = np.bincount(hosts.codes[places], minlength=hosts.size)
        inside = np.bincount(within.codes[places], minlength=within.size)
        nodes = np.flatnonzero((hosts.codes >= 0) & (codes >= 0))
        found[nodes[on_host[hosts.codes[nodes]] > inside[within.codes[nodes]]]] = True
    return found


def _may_meet(hosts: Domains, apart: Apart, one: Coming) -> BoolArray:
    """bool[N]: a host key keeps the pod apart from this one, and one of its places is on the node's host."""
    if one.cls not in apart.own and one.cls not in apart.existing:
        return np.zeros(len(hosts.codes), bool)
    return _hosting(hosts, one.places)


def _hosting(hosts: Domains, nodes: IndexArray) -> BoolArray:
    """bool[N]: the nodes on the hosts of these nodes."""
    met = np.zeros(hosts.size + 1, bool)  # the last entry stands for an unknown host, which nobody shares
    met[hosts.codes[nodes]] = True
    met[-1] = False
    found: BoolArray = met[hosts.codes]
    return found
