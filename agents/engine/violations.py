"""Running pods that the scheduler would refuse on their own nodes today: `violation` findings.

In: a snapshot and a judge of its model. Out: findings, pods that refuse one another in one. Called by `check.py`. The
verdicts are the rules' own (`judge.py`); here they become findings. Cordons and NoSchedule taints are left to
`node_findings.py`, shared hosts to `physical.py`.
"""

import copy
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from underhost.agents.engine import findings as f
from underhost.agents.engine.judge import Judge
from underhost.agents.engine.rule import Refusal
from underhost.agents.engine.separations import INTER_POD_AFFINITY, Separation, separations
from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.engine.sweep import Group, Meeting, broken, merge
from underhost.agents.rules import (
    inter_pod_affinity,
    node_affinity,
    node_name,
    node_ports,
    node_resources_fit,
    pod_topology_spread,
    taint_toleration,
)
from underhost.schemas.records import Domain, Finding

ALONE = (node_name.NAME, node_affinity.NAME, node_ports.NAME, node_resources_fit.NAME)
REASON_EVICTED = "the node has an untolerated NoExecute taint"
_NO_BOUND = 1 << 40  # a maxSkew that nothing exceeds


def violation_findings(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """Every violation, worst first as `findings.in_order` sorts."""
    refusals = judge.refusals()
    found = [
        *_alone(snapshot, judge, refusals),
        *_affinity(snapshot, judge, refusals),
        *_anti_affinity(snapshot, judge),
        *_spread(snapshot, judge, refusals),
        *_evicted(snapshot, judge),
    ]
    return f.in_order(found)


def _alone(snapshot: Snapshot, judge: Judge, refusals: list[Mapping[str, Refusal]]) -> list[Finding]:
    """Rules that concern a pod and its node: one finding for each pod and rule."""
    say = {
        node_name.NAME: "Pod {pod} is not meant for node {node} on which it runs: {reason}.",
        node_affinity.NAME: "Pod {pod} runs on node {node}, which its nodeSelector or required node affinity excludes.",
        node_ports.NAME: "Pod {pod} asks for a host port that another pod on node {node} holds.",
        node_resources_fit.NAME: "Pod {pod} would no longer fit on node {node}, where it runs: {reason}.",
    }
    found = []
    for at, refused in enumerate(refusals):
        for rule in ALONE:
            if rule in refused:
                found.append(_of_pod(snapshot, judge, at, rule, ", ".join(refused[rule].reasons), say[rule]))
    return found


def _affinity(snapshot: Snapshot, judge: Judge, refusals: list[Mapping[str, Refusal]]) -> list[Finding]:
    """Required affinity that nobody meets any more: the pods it wanted near have left."""
    say = "Pod {pod} on node {node} no longer has the pods near it that its required affinity asks for."
    rule, reason = inter_pod_affinity.NAME, inter_pod_affinity.REASON_AFFINITY
    return [
        _of_pod(snapshot, judge, at, rule, reason, say)
        for at, refused in enumerate(refusals)
        if rule in refused and reason in refused[rule].reasons
    ]


def _evicted(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """Untolerated NoExecute taints. A toleration for a time is none: the taint manager will see to it."""
    say = "Pod {pod} runs on node {node}, which has a NoExecute taint that it does not tolerate: it is to be evicted."
    return [_of_pod(snapshot, judge, at, taint_toleration.NAME, REASON_EVICTED, say) for at in judge.evicted().tolist()]


def _anti_affinity(snapshot: Snapshot, judge: Judge) -> list[Finding]:
    """Pods that required anti-affinity keeps apart, in one domain of its key; the live host where the key means it."""
    model = judge.model
    by_key: defaultdict[str, list[Separation]] = defaultdict(list)
    for one in separations(model.classes):
        if one.rule == INTER_POD_AFFINITY:
            by_key[one.key].append(one)
    found = []
    for key, apart in sorted(by_key.items()):
        domains = model.topology.of(key)
        for group in merge(model, broken(model, domains, apart)):
            found.append(_apart(snapshot, judge, key, domains.values[group.domain], group))
    return found


def _apart(snapshot: Snapshot, judge: Judge, key: str, value: str, group: Group) -> Finding:
    model = judge.model
    first = int(model.running.classes[group.pods[0]])
    owner = any(first in one.owners for one in group.separations)
    pods = [model.running.keys[at] for at in group.pods]
    where = f"on ESXi host {value}" if model.topology.is_host_key(key) else f"in {key} {value!r}"
    message = (
        f"{_placed(snapshot, pods)} are {'both' if len(pods) == 2 else 'all'} {where}, "
        "where required anti-affinity keeps them apart."
    )
    reason = inter_pod_affinity.REASON_ANTI_AFFINITY if owner else inter_pod_affinity.REASON_EXISTING_ANTI_AFFINITY
    return _of_group(snapshot, inter_pod_affinity.NAME, reason, message, pods, Domain(key=key, value=value))


def _spread(snapshot: Snapshot, judge: Judge, refusals: list[Mapping[str, Refusal]]) -> list[Finding]:
    """DoNotSchedule spread: the pods of a domain that holds too many, or on nodes that lack a key."""
    rule, model = pod_topology_spread.NAME, judge.model
    say = "Pod {pod} runs on node {node}, which lacks a label that its topology spread counts by."
    found = []
    by_class: defaultdict[int, list[int]] = defaultdict(list)
    for at, refused in enumerate(refusals):
        if rule in refused:
            if pod_topology_spread.REASON_NOT_SPREAD in refused[rule].reasons:
                by_class[int(model.running.classes[at])].append(at)
            else:
                found.append(_of_pod(snapshot, judge, at, rule, pod_topology_spread.REASON_MISSING_LABEL, say))
    meetings: defaultdict[str, list[Meeting]] = defaultdict(list)
    for cls, pods in by_class.items():
        for key, meeting in _crowded(judge, cls, pods):
            meetings[key].append(meeting)
    for key, met in sorted(meetings.items()):
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


def _crowded(judge: Judge, cls: int, pods: list[int]) -> list[tuple[str, Meeting]]:
    """(key, the class's refused pods in one domain) for each constraint that refuses them, asked one by one."""
    model = judge.model
    one_class = model.classes[cls]
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
        for code in np.unique(codes_of[refused]).tolist():
            met = at[refused & (codes_of == code)].tolist()
            found.append((constraint.key, Meeting(code, separation, met)))
    return found


def _linked(meetings: list[Meeting]) -> list[Meeting]:
    """Classes that count the same pods in one domain refuse one another: their meetings are one."""
    joined: defaultdict[tuple[int, Separation], list[int]] = defaultdict(list)
    for meeting in meetings:
        joined[(meeting.domain, meeting.separation)] += meeting.pods
    return [Meeting(domain, separation, pods) for (domain, separation), pods in joined.items()]


def _placed(snapshot: Snapshot, pods: list[str]) -> str:
    return f.listing([f"{pod} (node {snapshot.pods[pod].spec.node_name})" for pod in pods])


def _of_pod(snapshot: Snapshot, judge: Judge, at: int, rule: str, reason: str, say: str) -> Finding:
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
