"""Findings about nodes: absent ones that pods name, unknown hosts, nodes that would not take their pods now.

In: a case, and the nodes and pods to look at. Out: `unknown-node`, `unknown-host` and `drift` findings in the store.
What a NoExecute taint means for a running pod is left to `violations.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from underhost.agents.compiled.model import Model
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.rules import node_name, node_unschedulable, taint_toleration
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site import terms
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import DRIFT, UNKNOWN_HOST, UNKNOWN_NODE
from underhost.schemas.uuids import vm_uuids

REASON_ABSENT = "the node is not in the input"
REASON_NO_VM = "no VM is known for the node"
REASON_CLAIMED = "another node is the VM that the node claims"
REASON_NO_HOST = "the ESXi host of the node's VM is unknown"
CORDON_TAINT = "node.kubernetes.io/unschedulable"


class NodeFindings:
    """The findings about nodes, and about the pods on absent ones."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store

    def judge_all(self, case: Case) -> None:
        """Look at every node, and at every pod that is bound to none of them."""
        for pod in case.model.unbound:
            self.judge_pod(case.snapshot, pod.key, True)
        self.judge_hosts(case.snapshot, case.snapshot.nodes)
        self._put(case, None, case.model.nodes.names)

    def judge_pod(self, snapshot: Snapshot, key: str, is_unbound: bool) -> None:
        """Whether a pod is bound to a node that the input lacks: no rule can be judged for it."""
        self._store.put(("unbound", key), [_unknown_node(snapshot, key)] if is_unbound else NOTHING)

    def judge_hosts(self, snapshot: Snapshot, names: Iterable[str]) -> None:
        """Nodes whose ESXi host may be known or unknown by now."""
        for name in names:
            finding = _unknown_host(snapshot, name) if snapshot.vsphere and name in snapshot.nodes else None
            self._store.put(("host", name), [finding] if finding else NOTHING)

    def judge(self, case: Case, nodes: Mapping[str, Collection[int]]) -> None:
        """Whether these nodes, with the pods that run there, would take them now; absent ones have no pods."""
        index = case.model.nodes.index
        self._put(case, {index[name]: pods for name, pods in nodes.items() if name in index}, nodes)

    def _put(self, case: Case, on: Mapping[int, Collection[int]] | None, names: Iterable[str]) -> None:
        found = {finding.node: finding for finding in _drift(case, on)}
        for name in names:
            self._store.put((DRIFT, name), [found[name]] if name in found else NOTHING)


def _unknown_node(snapshot: Snapshot, key: str) -> Finding:
    """A pod bound to a node that the input lacks."""
    pod = snapshot.pods[key]
    node = pod.spec.node_name
    return Finding(
        id=f.finding_id(snapshot.site, UNKNOWN_NODE, node_name.NAME, "", node, f.uid_of(key, pod)),
        severity=UNKNOWN_NODE,
        rule=node_name.NAME,
        reason=REASON_ABSENT,
        message=f"Pod {key} is bound to node {node}, which is not in the input.",
        pod=key,
        node=node,
    )


def _unknown_host(snapshot: Snapshot, name: str) -> Finding | None:
    """The node where its ESXi host is unknown: an unknown host is never a domain."""
    joined = snapshot.node_hosts.get(name)
    if joined is not None and joined.host:
        return None
    rival = snapshot.rivals.get(name)
    if rival is not None:
        reason = REASON_CLAIMED
        message = (
            f"Node {name} claims the VM that node {rival} is, and one VM is one node. "
            f"The pods of {name} are judged by labels only."
        )
    elif joined is None:
        reason = REASON_NO_VM
        said = vm_uuids(snapshot.nodes[name])
        if said is not None:
            why = f"not exactly one VM has the uuid of its {said[0]}"
        elif snapshot.joining.by_name:
            why = "no uuid and no name is exactly one VM's"
        else:
            why = "it has no uuid, and names are not asked (vsphere.joinByName)"
        message = f"Node {name} is joined to no VM: {why}. Its pods are judged by labels only."
    else:
        reason = REASON_NO_HOST
        message = f"Node {name} is VM {joined.vm}, whose ESXi host is unknown. Its pods are judged by labels only."
    uid = snapshot.nodes[name].metadata.uid
    return Finding(
        id=f.finding_id(snapshot.site, UNKNOWN_HOST, PHYSICAL_HOST, "node", name, uid),
        severity=UNKNOWN_HOST,
        rule=PHYSICAL_HOST,
        reason=reason,
        message=message,
        node=name,
    )


def _drift(case: Case, on: Mapping[int, Collection[int]] | None) -> Iterator[Finding]:
    """Nodes that are cordoned, or carry a NoSchedule taint, while pods that would be refused run there.

    One finding for each node; pods that belong to their node (DaemonSets', mirror pods) never count. `on` are the nodes
    to look at, with the running pods of each; None: all.
    """
    snapshot, model, _ = case
    cordoned, tainted = _refused(snapshot, model, on)
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
        yield Finding(
            id=f.finding_id(snapshot.site, DRIFT, rule, "node", name, snapshot.nodes[name].metadata.uid),
            severity=DRIFT,
            rule=rule,
            reason=reason,
            message=f"Node {name} {why}, and {count} there: {f.listing(pods)}.",
            node=name,
            domain=Domain(key="node", value=name),
            pods=len(pods),
        )


def _refused(
    snapshot: Snapshot, model: Model, on: Mapping[int, Collection[int]] | None
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
