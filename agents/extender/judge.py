"""What the host rules say of a pod on every node: PhysicalHost, and the terms on the host key by the live host.

In: a compiled picture, what it says of the pod's class, pods that are on their way, pods to be thought away. Out: a
`Verdict`, arrays over the picture's nodes. The rules are those of `agents/rules`; here is only which of them, and in
what order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.gathering import mates_of
from underhost.agents.affinity.separation import across_domains, in_domain_of
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.overlay import Moved, Overlay
from underhost.agents.compiled.state import State
from underhost.agents.extender.picture import Apart, HostPicture
from underhost.agents.rules import inter_pod_affinity as pods
from underhost.agents.rules import physical_host
from underhost.agents.rules import pod_topology_spread as spread
from underhost.agents.rules.rule import CodeArray, Prepared
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options

ALL = slice(None)
REASON_MAY_SHARE = "node(s) were on a physical host where a pod to be kept apart may be about to run"


class HostRefusal(NamedTuple):
    """Why a node is refused; `resolvable`: evicting pods of the node itself could help."""

    rule: str
    reason: str
    resolvable: bool


_SPREAD, _MISSING, _NEAR, _OWN, _EXISTING, _SHARED, _MAY_SHARE = range(1, 8)
REFUSALS = {
    _SPREAD: HostRefusal(spread.NAME, spread.REASON_NOT_SPREAD, True),
    _MISSING: HostRefusal(spread.NAME, spread.REASON_MISSING_LABEL, False),
    _NEAR: HostRefusal(pods.NAME, pods.REASON_AFFINITY, False),
    _OWN: HostRefusal(pods.NAME, pods.REASON_ANTI_AFFINITY, True),
    _EXISTING: HostRefusal(pods.NAME, pods.REASON_EXISTING_ANTI_AFFINITY, True),
    # The pods in the way run on other nodes of the host: no eviction from this node removes one.
    _SHARED: HostRefusal(physical_host.NAME, physical_host.REASON_SHARED_HOST, False),
    _MAY_SHARE: HostRefusal(physical_host.NAME, REASON_MAY_SHARE, False),
}

_CODES = {(one.rule, one.reason): code for code, one in REFUSALS.items()}


@dataclass
class Coming:
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
        rules: what has refused, by name, good until the picture changes.
    """

    codes: CodeArray
    conflicts: IntArray
    possible: BoolArray
    refusing: BoolArray
    rules: Mapping[str, Prepared]

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
        return Verdict(codes, conflicts, possible, refusing, {})
    required = options.physical_host == physical_host.REQUIRED
    shared = physical_host.prepare_apart(state, hosts, apart.separations)
    counted = shared.conflicts(ALL) if shared is not None else None
    conflicts = conflicts if counted is None else counted
    keys, near = options.host_keys, Overlay(state, _places_of_mates(hosts, apart.cls, unsure))
    rules: dict[str, Prepared] = {}
    for rule, prepared in (
        (physical_host.NAME, shared),
        (pods.NAME, pods.prepare_only(state, apart.cls, keys, near)),
        (spread.NAME, spread.prepare_strict(state, apart.cls, keys)),
    ):
        if prepared is not None:
            rules[rule] = prepared
            _take(codes, rule, prepared, request)
    for one in unsure:
        meets = in_domain_of(hosts, one.places) if one.cls in apart.by_host else np.zeros(size, bool)
        shares = _may_share(picture, hosts, apart, one)
        possible |= shares | meets
        refusing |= (shares | meets) if required else meets
    return Verdict(codes, conflicts, possible, refusing, rules)


def _take(codes: CodeArray, rule: str, prepared: Prepared, request: Request) -> None:
    """What the rule refuses, over what the rules before it have refused."""
    refused = prepared.refuse(request, ALL)
    if refused is not None:
        found = np.array([0, *(_CODES[rule, one.reasons[0]] for one in prepared.refusals)], np.int8)[refused]
        codes[found > 0] = found[found > 0]


def _places_of_mates(hosts: Domains, cls: PodClass, unsure: Sequence[Coming]) -> list[Moved]:
    """Pods on their way that required affinity wants near, one on each host that they may be on.

    kube-scheduler, which knows where they are, has asked the same by label.
    """
    mates, found = mates_of(cls), []
    for one in unsure:
        if one.cls in mates:
            known = one.places[hosts.codes[one.places] >= 0]
            _, first = np.unique(hosts.codes[known], return_index=True)
            found += [Moved(one.cls, node) for node in known[first].tolist()]
    return found


def unseen(picture: HostPicture, apart: Apart, coming: Sequence[Coming], verdict: Verdict) -> Verdict:
    """The verdict with pods on their way of which the scheduler that asks cannot know: another scheduler's.

    Required anti-affinity refuses every domain that they go to, the very node among them, by label as upstream does.
    """
    met = np.zeros(len(picture.names), bool)
    for one in coming:
        for key in apart.keys.get(one.cls, ()):
            met |= in_domain_of(picture.topology.of(key), one.places[:1])
    return verdict._replace(codes=np.where((verdict.codes == 0) & met, _EXISTING, verdict.codes).astype(np.int8))


def _may_share(picture: HostPicture, hosts: Domains, apart: Apart, one: Coming) -> BoolArray:
    """bool[N]: one of its places is another domain of a key on the node's host."""
    found = np.zeros(len(picture.names), bool)
    for (_, key), classes in apart.separations.items():
        if one.cls not in classes:
            continue
        within = picture.topology.within_host(key)
        places = one.places[within.codes[one.places] >= 0]
        on_host = np.bincount(hosts.codes[places], minlength=hosts.size)
        inside = np.bincount(within.codes[places], minlength=within.size)
        both = np.flatnonzero(within.codes >= 0)
        there = across_domains(on_host[hosts.codes[both]], inside[within.codes[both]], within.present[both])
        found[both[there > 0]] = True
    return found
