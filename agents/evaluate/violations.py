"""Running pods that the scheduler would refuse on their own nodes today: `violation` findings.

In: a case, and the pods, nodes, classes or places to look at (None: all). Out: findings in the store, slot by slot. The
verdicts are the rules' own; each rule is asked only of the pods that it can concern. Topology spread is left to
`spread.py`, cordons and NoSchedule taints to `nodes.py`, shared hosts to `hosts/physical.py`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np

from underhost.agents.affinity.separation import SeparationId
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Domains, IndexArray, Topology
from underhost.agents.compiled.matching import untolerated_mask
from underhost.agents.compiled.running import Running
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.marks import Concern
from underhost.agents.evaluate.meetings import Group, Meetings
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.rules import (
    inter_pod_affinity,
    node_affinity,
    node_ports,
    node_resources_fit,
    taint_toleration,
)
from underhost.agents.rules.rule import Prepared, Refusal
from underhost.agents.site.places import named_host
from underhost.agents.site.terms import NO_EXECUTE
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import VIOLATION

REASON_EVICTED = "the node has an untolerated NoExecute taint"
_OF_NODE = "Pod {pod} runs on node {node}, which its nodeSelector or required node affinity excludes."
_OF_PORTS = "Pod {pod} asks for a host port that another pod on node {node} holds."
_OF_FIT = "Pod {pod} would no longer fit on node {node}, where it runs: {reason}."
_OF_AFFINITY = "Pod {pod} on node {node} no longer has the pods near it that its required affinity asks for."
_OF_TAINT = "Pod {pod} runs on node {node}, which has a NoExecute taint that it does not tolerate: it is to be evicted."


class Violations:
    """The violations of single pods."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self._prepared: dict[int, Prepared | None] = {}

    def forget(self, concern: Concern | None = None) -> None:
        """Prepare rules anew: all, as the state has forgotten its counters, or those that a new class concerns."""
        if concern is None:
            self._prepared.clear()
        for cls in concern.near if concern is not None else ():
            self._prepared.pop(cls, None)

    def judge_pods(self, case: Case, pods: Mapping[str, int | None] | None = None) -> None:
        """What concerns a pod and its node alone: node affinity, NoExecute taints.

        `pods` are the keys to look at, with the position of each that runs.
        """
        chosen = None if pods is None else [at for at in pods.values() if at is not None]
        found: defaultdict[str | None, list[Finding]] = defaultdict(list)
        for finding in chain(_excluded(case, chosen), _evicted(case, chosen)):
            found[finding.pod].append(finding)
        for key in found if pods is None else pods:
            self._store.put(("pod", key), found.get(key, NOTHING))

    def judge_nodes(self, case: Case, nodes: Mapping[str, Collection[int]] | None = None) -> None:
        """What a node holds: room and host ports. `nodes` are the names to look at, with the pods that run there."""
        chosen = None if nodes is None else list(chain.from_iterable(nodes.values()))
        found: defaultdict[str | None, list[Finding]] = defaultdict(list)
        for finding in chain(_crowded_out(case, nodes), _without_port(case, chosen)):
            found[finding.node].append(finding)
        for name in found if nodes is None else nodes:
            self._store.put(("node", name), found.get(name, NOTHING))

    def judge_near(self, case: Case, classes: Iterable[int]) -> None:
        """Required affinity that nobody meets any more: the pods that the class wants near have left."""
        rule, reasons = inter_pod_affinity.NAME, (inter_pod_affinity.REASON_AFFINITY,)
        for cls in classes:
            if cls not in self._prepared:
                self._prepared[cls] = inter_pod_affinity.prepare(case.state, case.model.classes[cls])
            refused = refusals(case, self._prepared[cls], case.model.pods_of(cls))
            lonely = [
                pod_finding(case, at, rule, reasons, _OF_AFFINITY, reasons[0])
                for at, refusal in refused
                if refusal.reasons == reasons
            ]
            self._store.put(("near", cls), lonely)


def _excluded(case: Case, pods: Collection[int] | None) -> Iterator[Finding]:
    """Pods on nodes that their node affinity excludes."""
    for cls, mine in _by_class(case, pods, lambda cls: cls.node_selector or cls.node_terms is not None):
        for at, refusal in refusals(case, node_affinity.prepare(case.state, cls), mine):
            yield pod_finding(case, at, node_affinity.NAME, refusal.reasons, _OF_NODE)


def _evicted(case: Case, pods: Collection[int] | None) -> Iterator[Finding]:
    """Untolerated NoExecute taints. A toleration for a time counts: the taint manager will see to it."""
    if not any(taint.effect == NO_EXECUTE for taints in case.model.nodes.taints for taint in taints):
        return
    for cls, mine in _by_class(case, pods, lambda cls: untolerated_mask(case.state, cls, (NO_EXECUTE,)) is not None):
        mask = untolerated_mask(case.state, cls, (NO_EXECUTE,))
        assert mask is not None
        for at in mine[mask[case.model.running.nodes[mine]]].tolist():
            yield pod_finding(case, at, taint_toleration.NAME, (REASON_EVICTED,), _OF_TAINT)


def _crowded_out(case: Case, nodes: Mapping[str, Collection[int]] | None) -> Iterator[Finding]:
    """Pods that would no longer fit on their nodes: room is the same question for every class."""
    if not case.model.classes:
        return
    prepared = node_resources_fit.prepare(case.state, case.model.classes[0])
    for request, mine in _by_request(case.model.running) if nodes is None else _without_room(case, prepared, nodes):
        for at, refusal in refusals(case, prepared, mine, request):
            yield pod_finding(case, at, node_resources_fit.NAME, refusal.reasons, _OF_FIT)


def _without_room(
    case: Case, prepared: node_resources_fit.NodeResourcesFit, nodes: Mapping[str, Collection[int]]
) -> Iterator[tuple[int, IndexArray]]:
    """Of these nodes, the pods of each request that no longer has room there: most have."""
    requests, request_at, index = case.model.requests, case.model.running.request_at, case.model.nodes.index
    for name, pods in nodes.items():
        for request in {request_at[at] for at in pods}:
            if not prepared.has_room(requests[request], index[name], out=True):
                yield request, np.array([at for at in pods if request_at[at] == request], np.intp)


def _without_port(case: Case, pods: Collection[int] | None) -> Iterator[Finding]:
    """Pods whose host ports another pod of the node holds as well."""
    class_at, holding = case.model.running.class_at, case.model.classifier.with_ports
    if not holding:
        return
    chosen = None if pods is None else [at for at in pods if class_at[at] in holding]
    for cls, mine in _by_class(case, chosen, lambda cls: cls.ports):
        for at, refusal in refusals(case, node_ports.prepare(case.state, cls), mine):
            yield pod_finding(case, at, node_ports.NAME, refusal.reasons, _OF_PORTS)


def _by_class(
    case: Case, pods: Collection[int] | None, is_wanted: Callable[[PodClass], object]
) -> Iterator[tuple[PodClass, IndexArray]]:
    """The running pods, or those chosen, class by class; of the classes that are wanted."""
    model = case.model
    if pods is None:
        return ((cls, model.pods_of(cls.id)) for cls in model.classes if is_wanted(cls))
    found = _grouped(model.running.class_at, pods).items()
    return ((model.classes[cls], np.array(mine, np.intp)) for cls, mine in found if is_wanted(model.classes[cls]))


def _by_request(running: Running) -> Iterator[tuple[int, IndexArray]]:
    """The running pods, request by request."""
    order: IndexArray = np.argsort(running.requests, kind="stable")
    ordered = running.requests[order]
    every = np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1) if len(order) else []
    return ((running.request_at[mine[0]], mine) for mine in every)


def _grouped(numbers: Sequence[int], pods: Iterable[int]) -> dict[int, list[int]]:
    """The pods by their number. For a few pods this is quicker than sorting them in an array."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for at in pods:
        found[numbers[at]].append(at)
    return found


def refusals(
    case: Case, prepared: Prepared | None, pods: IndexArray, request: int | None = None
) -> Iterator[tuple[int, Refusal]]:
    """The pods that a rule refuses on their own nodes, each taken out first, and why.

    `request` is that of all of them; None for a rule that does not look at it.
    """
    if prepared is None or not len(pods):
        return
    running = case.model.running
    wanted = case.model.requests[int(running.requests[pods[0]]) if request is None else request]
    nodes = running.nodes[pods]
    codes = prepared.refuse(wanted, nodes, True)
    for at in () if codes is None else np.flatnonzero(codes).tolist():
        assert codes is not None
        yield int(pods[at]), prepared.explain(int(codes[at]), wanted, int(nodes[at]), True)


class AntiAffinity(Meetings):
    """Pods that required anti-affinity keeps apart, in one domain of its key; the live host where the key means it."""

    across = False

    def concerns(self, topology: Topology, at: SeparationId) -> bool:
        """Spread is judged by counts."""
        return at.rule == inter_pod_affinity.NAME

    def domains(self, topology: Topology, at: SeparationId) -> Domains:
        """Those of the term's key."""
        return topology.of(at.key)

    def together(self, at: SeparationId) -> str:
        """One finding for one key and domain."""
        return at.key

    def finding(self, case: Case, key: str, value: str, group: Group) -> Finding:
        """Pods that anti-affinity keeps apart, in one domain of its key."""
        pods = group.pods
        owner = any(_holds(one.owners, group.cls) for one in group.separations)
        where = (
            f"on {named_host(case.snapshot, value)}" if case.model.topology.is_host_key(key) else f"in {key} {value!r}"
        )
        message = (
            f"{f.listing(case.placed(pods))} are {'both' if len(pods) == 2 else 'all'} {where}, "
            "where required anti-affinity keeps them apart."
        )
        reason = inter_pod_affinity.REASON_ANTI_AFFINITY if owner else inter_pod_affinity.REASON_EXISTING_ANTI_AFFINITY
        domain = Domain(key=key, value=value)
        found = group_finding(case, inter_pod_affinity.NAME, reason, message, pods, domain, group.stranger)
        return msgspec.structs.replace(found, object=group.whose) if group.whose else found


def _holds(classes: tuple[int, ...], cls: int) -> bool:
    at = bisect_left(classes, cls)
    return at < len(classes) and classes[at] == cls


# ------------------------------------------------------------------------------------------------------------- words
def pod_finding(case: Case, at: int, rule: str, reasons: tuple[str, ...], say: str, about: str = "") -> Finding:
    """A violation of one pod, by its position; `about` tells violations of one rule apart."""
    reason = ", ".join(reasons)
    key = case.model.running.keys[at]
    node = case.model.nodes.names[int(case.model.running.nodes[at])]
    return Finding(
        id=f.finding_id(case.snapshot.site, VIOLATION, rule, about, "", f.uid_of(key, case.snapshot.pods[key])),
        severity=VIOLATION,
        rule=rule,
        reason=reason,
        message=say.format(pod=key, node=node, reason=reason),
        pod=key,
        node=node,
    )


def group_finding(
    case: Case, rule: str, reason: str, message: str, pods: list[str], domain: Domain, stranger: str = ""
) -> Finding:
    """A violation of several pods in one domain, sorted by name; `stranger`: whose rule it is, if not the first's."""
    first = case.snapshot.pods[pods[0]]
    uid = f.uid_of(pods[0], first)
    return Finding(
        id=f.finding_id(case.snapshot.site, VIOLATION, rule, domain.key, domain.value + stranger, uid),
        severity=VIOLATION,
        rule=rule,
        reason=reason,
        message=message,
        pod=pods[0],
        node=first.spec.node_name,
        peers=pods[1:],
        domain=domain,
    )
