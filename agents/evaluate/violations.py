"""Running pods that the scheduler would refuse on their own nodes today: `violation` findings.

In: a snapshot and a judge of its model. Out: findings, pods that refuse one another in one. The verdicts are the rules'
own; each rule is asked only of the pods that it can concern. Cordons and NoSchedule taints are left to
`node_findings.py`, shared hosts to `physical.py`.
"""

import copy
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.judge import Judge
from underhost.agents.evaluate.sweep import Group, Meeting, meetings, merge
from underhost.agents.rules import (
    inter_pod_affinity,
    node_affinity,
    node_ports,
    node_resources_fit,
    pod_topology_spread,
    taint_toleration,
)
from underhost.agents.rules.rule import Prepared, Refusal
from underhost.agents.rules.separation import INTER_POD_AFFINITY, Separation, separations
from underhost.agents.site import terms
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding

REASON_EVICTED = "the node has an untolerated NoExecute taint"
_NO_BOUND = 1 << 40  # a maxSkew that nothing exceeds
_OF_NODE = "Pod {pod} runs on node {node}, which its nodeSelector or required node affinity excludes."
_OF_PORTS = "Pod {pod} asks for a host port that another pod on node {node} holds."
_OF_FIT = "Pod {pod} would no longer fit on node {node}, where it runs: {reason}."
_OF_AFFINITY = "Pod {pod} on node {node} no longer has the pods near it that its required affinity asks for."
_OF_LABEL = "Pod {pod} runs on node {node}, which lacks a label that its topology spread counts by."
_OF_TAINT = "Pod {pod} runs on node {node}, which has a NoExecute taint that it does not tolerate: it is to be evicted."


def violation_findings(snapshot: Snapshot, judge: Judge, apart: Sequence[Separation] | None = None) -> list[Finding]:
    """Every violation, sorted as `findings.in_order` does. `apart` are the model's separations, where known already."""
    found = [
        *alone_findings(snapshot, judge),
        *_affinity(snapshot, judge),
        *_anti_affinity(snapshot, judge, separations(judge.model.selectors) if apart is None else apart),
        *_spread(snapshot, judge),
        *eviction_findings(snapshot, judge),
    ]
    return f.in_order(found)


def _refused(
    judge: Judge, cls: PodClass, prepared: Prepared | None, only: Sequence[int] | None = None
) -> Iterator[tuple[int, Refusal]]:
    """The running pods of a class that a rule, which does not look at requests, refuses on their own nodes."""
    pods = judge.model.pods_of(cls.id) if only is None else np.array(only, np.intp)
    if prepared is not None and len(pods):
        yield from _codes(judge, pods, prepared, int(judge.model.running.requests[pods[0]]))


def _codes(judge: Judge, pods: IndexArray, prepared: Prepared, request_id: int) -> Iterator[tuple[int, Refusal]]:
    request, nodes = judge.model.requests[request_id], judge.model.running.nodes[pods]
    codes = prepared.refuse(request, nodes, True)
    if codes is not None:
        for at in np.flatnonzero(codes).tolist():
            yield int(pods[at]), prepared.explain(int(codes[at]), request, int(nodes[at]), True)


def alone_findings(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """Rules that concern a pod and its node: one finding for each pod and rule."""
    model = judge.model
    found: list[Finding] = []
    for cls in model.classes:
        if cls.node_selector or cls.node_terms is not None:
            found += affinity_findings(snapshot, judge, cls)
        if cls.ports:
            found += port_findings(snapshot, judge, cls)
    if model.classes:  # room on a node is the same question for every class
        for request in range(len(model.requests)):
            found += fit_findings(snapshot, judge, np.flatnonzero(model.running.requests == request), request)
    return found


def affinity_findings(
    snapshot: Snapshot, judge: Judge, cls: PodClass, pods: Sequence[int] | None = None
) -> list[Finding]:
    """Pods of a class (None: all that run) on nodes that node affinity excludes."""
    prepared, rule = node_affinity.prepare(judge.state, cls), node_affinity.NAME
    return [
        _of_pod(snapshot, judge, at, rule, refusal.reasons, _OF_NODE)
        for at, refusal in _refused(judge, cls, prepared, pods)
    ]


def port_findings(snapshot: Snapshot, judge: Judge, cls: PodClass, pods: Sequence[int] | None = None) -> list[Finding]:
    """Pods of a class (None: all that run) whose host ports another pod of the node holds, too."""
    prepared, rule = node_ports.prepare(judge.state, cls), node_ports.NAME
    return [
        _of_pod(snapshot, judge, at, rule, refusal.reasons, _OF_PORTS)
        for at, refusal in _refused(judge, cls, prepared, pods)
    ]


def fit_findings(snapshot: Snapshot, judge: Judge, pods: "IndexArray | Sequence[int]", request: int) -> list[Finding]:
    """Pods of one request that would no longer fit on their nodes."""
    prepared, rule = node_resources_fit.prepare(judge.state, judge.model.classes[0]), node_resources_fit.NAME
    return [
        _of_pod(snapshot, judge, at, rule, refusal.reasons, _OF_FIT)
        for at, refusal in _codes(judge, np.array(pods, np.intp), prepared, request)
    ]


def _affinity(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """Required affinity that nobody meets any more: the pods it wanted near have left."""
    return [
        finding
        for cls in judge.model.classes
        if cls.required_affinity
        for finding in lonely_findings(snapshot, judge, cls, inter_pod_affinity.prepare(judge.state, cls))
    ]


def lonely_findings(snapshot: Snapshot, judge: Judge, cls: PodClass, prepared: Prepared | None) -> list[Finding]:
    """The pods of a class whose required affinity nobody meets; `prepared` is InterPodAffinity for the class."""
    rule, reasons = inter_pod_affinity.NAME, (inter_pod_affinity.REASON_AFFINITY,)
    return [
        _of_pod(snapshot, judge, at, rule, reasons, _OF_AFFINITY)
        for at, refusal in _refused(judge, cls, prepared)
        if refusal.reasons == reasons
    ]


def eviction_findings(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """Untolerated NoExecute taints. A toleration for a time is none: the taint manager will see to it."""
    if not any(taint.effect == terms.NO_EXECUTE for taints in judge.model.nodes.taints for taint in taints):
        return []
    return [eviction_finding(snapshot, judge, at) for at in judge.evicted().tolist()]


def eviction_finding(snapshot: Snapshot, judge: Judge, at: int) -> Finding:
    """A pod on a node with a NoExecute taint that it does not tolerate."""
    return _of_pod(snapshot, judge, at, taint_toleration.NAME, (REASON_EVICTED,), _OF_TAINT)


def _anti_affinity(snapshot: Snapshot, judge: Judge, every: Sequence[Separation]) -> list[Finding]:
    """Pods that required anti-affinity keeps apart, in one domain of its key; the live host where the key means it."""
    model = judge.model
    by_key: defaultdict[str, list[Separation]] = defaultdict(list)
    for one in every:
        if one.rule == INTER_POD_AFFINITY:
            by_key[one.key].append(one)
    found = []
    for key, apart in sorted(by_key.items()):
        domains = model.topology.of(key)
        for group in merge(model, meetings(model, domains, None, apart)):
            found.append(apart_finding(snapshot, judge, key, domains.values[group.domain], group))
    return found


def _holds(classes: tuple[int, ...], cls: int) -> bool:
    at = bisect_left(classes, cls)
    return at < len(classes) and classes[at] == cls


def apart_finding(snapshot: Snapshot, judge: Judge, key: str, value: str, group: Group) -> Finding:
    """Pods that anti-affinity keeps apart, in one domain of its key."""
    model = judge.model
    first = int(model.running.classes[group.pods[0]])
    owner = any(_holds(one.owners, first) for one in group.separations)
    pods = [model.running.keys[at] for at in group.pods]
    where = f"on ESXi host {value}" if model.topology.is_host_key(key) else f"in {key} {value!r}"
    message = (
        f"{_placed(snapshot, pods)} are {'both' if len(pods) == 2 else 'all'} {where}, "
        "where required anti-affinity keeps them apart."
    )
    reason = inter_pod_affinity.REASON_ANTI_AFFINITY if owner else inter_pod_affinity.REASON_EXISTING_ANTI_AFFINITY
    return _of_group(snapshot, inter_pod_affinity.NAME, reason, message, pods, Domain(key=key, value=value))


def _spread(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """DoNotSchedule spread: the pods of a domain that holds too many, or on nodes that lack a key."""
    found: list[Finding] = []
    by_key: defaultdict[str, list[Meeting]] = defaultdict(list)
    for cls in judge.model.classes:
        if cls.hard:
            missing, refused = spread_refusals(snapshot, judge, cls, pod_topology_spread.prepare(judge.state, cls))
            found += missing
            for key, meeting in crowded(judge, cls, refused) if refused else ():
                by_key[key].append(meeting)
    for key, met in sorted(by_key.items()):
        found += crowd_findings(snapshot, judge, key, met)
    return found


def spread_refusals(
    snapshot: Snapshot, judge: Judge, cls: PodClass, prepared: Prepared | None
) -> tuple[list[Finding], list[int]]:
    """Pods of a class on nodes that lack a key of its spread, as findings; and those in domains that hold too many."""
    rule, missing = pod_topology_spread.NAME, (pod_topology_spread.REASON_MISSING_LABEL,)
    found, refused = [], []
    for at, refusal in _refused(judge, cls, prepared):
        if refusal.reasons == missing:
            found.append(_of_pod(snapshot, judge, at, rule, missing, _OF_LABEL))
        else:
            refused.append(at)
    return found, refused


def crowd_findings(snapshot: Snapshot, judge: Judge, key: str, met: list[Meeting]) -> list[Finding]:
    """Pods that are too many in a domain of the key, those that count the same pods together."""
    model, rule, found = judge.model, pod_topology_spread.NAME, []
    values = model.topology.of(key).values
    for group in merge(model, _linked(met)):
        names = [model.running.keys[at] for at in group.pods]
        value = values[group.domain]
        where = f"ESXi host {value}" if model.topology.is_host_key(key) else f"{key} {value!r}"
        would = "would be refused" if len(names) == 1 else "would each be refused"
        message = (
            f"Too many pods are in {where} for their topology spread: {_placed(snapshot, names)} {would} there now."
        )
        reason = pod_topology_spread.REASON_NOT_SPREAD
        found.append(_of_group(snapshot, rule, reason, message, names, Domain(key=key, value=value)))
    return found


def crowded(judge: Judge, one_class: PodClass, pods: list[int]) -> list[tuple[str, Meeting]]:
    """(key, the class's refused pods in one domain) for each constraint that refuses them, asked one by one."""
    model = judge.model
    at = np.array(pods, np.intp)
    nodes = model.running.nodes[at]
    found = []
    for constraint in one_class.hard:
        refused = np.ones(len(at), bool)
        if len(one_class.hard) > 1:
            alone = copy.copy(one_class)
            alone.hard = tuple(
                other if other is constraint else other._replace(max_skew=_NO_BOUND) for other in one_class.hard
            )
            prepared = pod_topology_spread.prepare(judge.state, alone)
            codes = None if prepared is None else prepared.refuse(model.requests[0], nodes, True)
            refused = np.zeros(len(at), bool) if codes is None else codes != 0
        codes_of = model.topology.of(constraint.key).codes[nodes]
        counted = constraint.selector.classes if constraint.selector is not None else ()
        separation = Separation(pod_topology_spread.NAME, constraint.key, (), counted)
        refused &= codes_of >= 0  # a pod whose node lacks this key is in no domain of it
        for code in sorted(set(codes_of[refused].tolist())):
            met = at[refused & (codes_of == code)].tolist()
            found.append((constraint.key, Meeting(code, separation, met)))
    return found


def _linked(met: list[Meeting]) -> list[Meeting]:
    """Classes that count the same pods in one domain refuse one another: their meetings are one."""
    joined: defaultdict[tuple[int, Separation], list[int]] = defaultdict(list)
    for meeting in met:
        joined[(meeting.domain, meeting.separation)] += meeting.pods
    return [Meeting(domain, separation, pods) for (domain, separation), pods in joined.items()]


def _placed(snapshot: Snapshot, pods: list[str]) -> str:
    return f.listing([f"{pod} (node {snapshot.pods[pod].spec.node_name})" for pod in pods])


def _of_pod(snapshot: Snapshot, judge: Judge, at: int, rule: str, reasons: tuple[str, ...], say: str) -> Finding:
    reason = ", ".join(reasons)
    key = judge.model.running.keys[at]
    node = judge.model.nodes.names[int(judge.model.running.nodes[at])]
    uid = f.uid_of(key, snapshot.pods[key])
    about = reason if rule == inter_pod_affinity.NAME else ""
    return Finding(
        id=f.finding_id(snapshot.site, f.VIOLATION, rule, about, "", uid),
        severity=f.VIOLATION,
        rule=rule,
        reason=reason,
        message=say.format(pod=key, node=node, reason=reason),
        pod=key,
        node=node,
    )


def _of_group(snapshot: Snapshot, rule: str, reason: str, message: str, pods: list[str], domain: Domain) -> Finding:
    first = snapshot.pods[pods[0]]
    return Finding(
        id=f.finding_id(snapshot.site, f.VIOLATION, rule, domain.key, domain.value, f.uid_of(pods[0], first)),
        severity=f.VIOLATION,
        rule=rule,
        reason=reason,
        message=message,
        pod=pods[0],
        node=first.spec.node_name,
        peers=pods[1:],
        domain=domain,
    )
