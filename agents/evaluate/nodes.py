"""Findings about nodes: absent ones that pods name, unknown hosts, nodes that would not take their pods now.

In: a snapshot and its model. Out: `unknown-node`, `unknown-host` and `drift` findings. What a NoExecute taint means for
a running pod is left to `violations.py`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from underhost.agents.compiled.model import Model
from underhost.agents.evaluate import findings as f
from underhost.agents.rules import node_name, node_unschedulable, taint_toleration
from underhost.agents.site import terms
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding

REASON_ABSENT = "the node is not in the input"
REASON_NO_VM = "no VM is known for the node"
REASON_NO_HOST = "the ESXi host of the node's VM is unknown"
PHYSICAL_HOST = "PhysicalHost"
CORDON_TAINT = "node.kubernetes.io/unschedulable"


def unknown_nodes(snapshot: Snapshot, model: Model) -> list[Finding]:
    """Pods bound to a node that the input lacks: no rule can be judged for them."""
    return f.in_order(unknown_node(snapshot, one.key) for one in model.unbound)


def unknown_node(snapshot: Snapshot, key: str) -> Finding:
    """A pod bound to a node that the input lacks."""
    pod = snapshot.pods[key]
    node = pod.spec.node_name
    return Finding(
        id=f.finding_id(snapshot.site, f.UNKNOWN_NODE, node_name.NAME, "", node, f.uid_of(key, pod)),
        severity=f.UNKNOWN_NODE,
        rule=node_name.NAME,
        reason=REASON_ABSENT,
        message=f"Pod {key} is bound to node {node}, which is not in the input.",
        pod=key,
        node=node,
    )


def unknown_hosts(snapshot: Snapshot, only: Iterable[str] | None = None) -> list[Finding]:
    """Nodes whose ESXi host is unknown, where the site has a vSphere side: an unknown host is never a domain.

    `only` are the names of the nodes to look at, all by default.
    """
    if not snapshot.vsphere:
        return []
    found = []
    for name in sorted(snapshot.nodes if only is None else only):
        node = snapshot.nodes[name]
        joined = snapshot.node_hosts.get(name)
        if joined is not None and joined.host:
            continue
        if joined is None:
            reason = REASON_NO_VM
            message = (
                f"Node {name} is joined to no VM: neither providerID, systemUUID, name nor hostname names exactly one. "
                "Its pods are judged by labels only."
            )
        else:
            reason = REASON_NO_HOST
            message = f"Node {name} is VM {joined.vm}, whose ESXi host is unknown. Its pods are judged by labels only."
        found.append(
            Finding(
                id=f.finding_id(snapshot.site, f.UNKNOWN_HOST, PHYSICAL_HOST, "node", name, node.metadata.uid),
                severity=f.UNKNOWN_HOST,
                rule=PHYSICAL_HOST,
                reason=reason,
                message=message,
                node=name,
            )
        )
    return found


def node_drift(snapshot: Snapshot, model: Model, on: Mapping[int, Iterable[int]] | None = None) -> list[Finding]:
    """Nodes that are cordoned, or carry a NoSchedule taint, while pods that would be refused run there.

    One finding for each node; pods that belong to their node (DaemonSets', mirror pods) never count. `on` are the nodes
    to look at, with the running pods of each; all by default.
    """
    cordoned, tainted = _refused(snapshot, model, on)
    found = []
    for node in sorted(cordoned.keys() | tainted.keys()):
        name = model.nodes.names[node]
        pods = sorted({*cordoned[node], *tainted[node]})
        if cordoned[node]:
            rule, reason, why = node_unschedulable.NAME, node_unschedulable.REASON_UNSCHEDULABLE, "is cordoned"
        else:
            taints = [
                f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                for taint in model.nodes.taints[int(model.nodes.taint_list[node])]
                if taint.effect == terms.NO_SCHEDULE
            ]
            rule, reason = taint_toleration.NAME, taint_toleration.REASON_UNTOLERATED
            why = f"has taint {f.listing(taints)}"
        count = (
            "1 pod that it would not take now runs" if len(pods) == 1 else f"{len(pods)} pods it would not take now run"
        )
        found.append(
            Finding(
                id=f.finding_id(snapshot.site, f.DRIFT, rule, "node", name, snapshot.nodes[name].metadata.uid),
                severity=f.DRIFT,
                rule=rule,
                reason=reason,
                message=f"Node {name} {why}, and {count} there: {f.listing(pods)}.",
                node=name,
                domain=Domain(key="node", value=name),
                pods=len(pods),
            )
        )
    return f.in_order(found)


def _refused(
    snapshot: Snapshot, model: Model, on: Mapping[int, Iterable[int]] | None
) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """The pods that a cordon, and those that a NoSchedule taint of their node would refuse, by node."""
    nodes, running = model.nodes, model.running
    cordoned: defaultdict[int, list[str]] = defaultdict(list)
    tainted: defaultdict[int, list[str]] = defaultdict(list)
    hard = [any(taint.effect == terms.NO_SCHEDULE for taint in taints) for taints in nodes.taints]
    closed, taint_list = nodes.unschedulable, nodes.taint_list
    suspect = {
        node for node in (range(len(nodes)) if on is None else on) if closed.item(node) or hard[taint_list.item(node)]
    }
    if not suspect:
        return cordoned, tainted
    memo: dict[tuple[bytes, int], bool] = {}
    pods = enumerate(running.nodes.tolist()) if on is None else ((at, node) for node in suspect for at in on[node])
    for at, node in pods:
        key = running.keys[at]
        if node not in suspect or pinned(snapshot.pods[key]):
            continue
        cls = model.classes[int(running.classes[at])]
        if nodes.unschedulable[node] and not terms.tolerates(cls.tolerations, CORDON_TAINT, "", terms.NO_SCHEDULE):
            cordoned[node].append(key)
        alike = (cls.tolerations_key, int(nodes.taint_list[node]))
        if alike not in memo:
            memo[alike] = any(
                taint.effect == terms.NO_SCHEDULE
                and not terms.tolerates(cls.tolerations, taint.key, taint.value or "", taint.effect)
                for taint in nodes.taints[alike[1]]
            )
        if memo[alike]:
            tainted[node].append(key)
    return cordoned, tainted
