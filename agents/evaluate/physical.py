"""Separations that a shared ESXi host undoes: `physical` findings.

In: a snapshot and its model. Out: one finding for each source rule, host and connected group of pods. Terms on the host
key are not judged here: for those the live host is the topology itself, so they are violations of their own rule. Which
two pods conflict is the rule's definition (`rules/physical_host.py`).
"""

from collections import defaultdict
from collections.abc import Sequence

from underhost.agents.compiled.model import Model
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.sweep import Group, Meeting, meetings, merge
from underhost.agents.rules.separation import INTER_POD_AFFINITY, Separation, separations
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding

RULE = "PhysicalHost"
REASON = "pods that a rule keeps apart share an ESXi host"
HOST = "host"


def physical_findings(snapshot: Snapshot, model: Model, apart: Sequence[Separation] | None = None) -> list[Finding]:
    """Pods on one host that a required anti-affinity or a DoNotSchedule spread keeps apart by label.

    `apart` are the model's separations, where the caller has them.
    """
    hosts = model.topology.hosts
    if hosts is None:
        return []
    by_key: defaultdict[tuple[str, str], list[Separation]] = defaultdict(list)
    for one in separations(model.selectors) if apart is None else apart:
        if not model.topology.is_host_key(one.key):
            by_key[(one.rule, one.key)].append(one)
    by_source: defaultdict[str, list[Meeting]] = defaultdict(list)
    for (source, key), ours in by_key.items():
        by_source[source] += meetings(model, hosts, model.topology.of(key), ours)
    found = []
    for source, met in sorted(by_source.items()):
        for group in merge(model, met):
            found.append(physical_finding(snapshot, model, source, group, hosts.values[group.domain]))
    return f.in_order(found)


def physical_finding(snapshot: Snapshot, model: Model, source: str, group: Group, host_name: str) -> Finding:
    """Pods on one host that the source rule keeps apart by label."""
    pods = [model.running.keys[at] for at in group.pods]
    first = snapshot.pods[pods[0]]
    node = first.spec.node_name
    host = snapshot.node_hosts[node].host
    return Finding(
        id=f.finding_id(snapshot.site, f.PHYSICAL, RULE, source, host, f.uid_of(pods[0], first)),
        severity=f.PHYSICAL,
        rule=RULE,
        reason=REASON,
        message=_message(snapshot, source, group, pods, host_name),
        pod=pods[0],
        node=node,
        peers=pods[1:],
        domain=Domain(key=HOST, value=host_name),
        source=source,
    )


def _message(snapshot: Snapshot, source: str, group: Group, pods: list[str], host_name: str) -> str:
    keys = sorted({one.key for one in group.separations})
    term = "required anti-affinity" if source == INTER_POD_AFFINITY else "DoNotSchedule spread"
    placed = [f"{pod} (node {snapshot.pods[pod].spec.node_name})" for pod in pods]
    every = "both" if len(pods) == 2 else "all"
    return (
        f"{f.listing(placed)} {every} run on ESXi host {host_name}, though a {term} by {f.listing(keys, len(keys))} "
        "keeps them apart: one host failure takes them together."
    )
