"""What an answer says nothing about, and why: hosts that are not known, pods that wait, a site that is not there.

In: a snapshot, or figures of one. Out: what every document and the page show beside their findings: without findings,
all is well only where this is empty.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice

from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import NotJudged
from underhost.schemas.kubernetes import DEFAULT_SCHEDULER, Pod
from underhost.schemas.vsphere import DISCONNECTED

PHYSICAL_HOST = "PhysicalHost"
NO_INVENTORY, NO_HOST, UNKNOWN = "no inventory", "the inventory holds no host", "their hosts are not known"
AWAY = "vCenter has lost their hosts"
"""Where their VMs run is what vCenter knew last: HA may have started them elsewhere, and does within seconds."""
BY_NAMESPACE, NO_NAMESPACES = "InterPodAffinity by namespaceSelector", "there are no namespaces"
NO_LABELS = "their labels are not known"
PENDING, NO_NODE, NONE, ANOTHER_SCHEDULER = "pending", "no node", "there are none", "of another scheduler"


def not_judged(snapshot: Snapshot, has: Callable[[str], bool] | None = None) -> list[NotJudged]:
    """What a check of the running pods leaves out; of the pods (`namespace/name`), only those that `has` says."""
    waiting = sum(1 for _ in _alive(snapshot.unplaced, has))
    alive = _alive(snapshot.pods, has)
    # How many there are is told only of a site without nodes; of others, whether there is any.
    count = sum(1 for _ in (islice(alive, 1) if snapshot.nodes else alive))
    left_out = [*hosts_not_judged(snapshot), *namespaces_not_judged(snapshot)]
    return [*left_out, *pods_not_judged(count, waiting, len(snapshot.nodes))]


def _alive(pods: Mapping[str, Pod], has: Callable[[str], bool] | None) -> Iterator[Pod]:
    """The pods that are meant and have not finished."""
    return (pod for name, pod in pods.items() if pod.status.phase not in FINISHED and (has is None or has(name)))


def hosts_not_judged(snapshot: Snapshot) -> list[NotJudged]:
    """What is said of nodes, and not of the hosts below them."""
    joined, label = snapshot.node_hosts, snapshot.joining.label
    if not snapshot.count_hosts():
        why = NO_HOST if snapshot.vsphere else f"no node has the label {label}" if label else NO_INVENTORY
        return [NotJudged(PHYSICAL_HOST, why)]
    unknown = sum(name not in joined or not joined[name].host for name in snapshot.nodes)
    lost = {ref for ref, host in snapshot.hosts.items() if host.state == DISCONNECTED}
    away = sum(joined[name].host in lost for name in snapshot.nodes if name in joined) if lost else 0
    whys = ((unknown, f"without the label {label}" if label else UNKNOWN), (away, AWAY))
    return [NotJudged(f"{PHYSICAL_HOST} on {counted(nodes, 'node')}", why) for nodes, why in whys if nodes]


def namespaces_not_judged(snapshot: Snapshot) -> list[NotJudged]:
    """Required terms that select by the labels of namespaces are held against no pod whose namespace is not known."""
    if not any(map(_by_namespace, snapshot.look.affinities)):
        return []
    if not snapshot.namespaces:
        return [NotJudged(BY_NAMESPACE, NO_NAMESPACES)]
    unknown = {pod.metadata.namespace for pod in _alive(snapshot.pods, None)} - snapshot.namespaces.keys()
    what = f"{BY_NAMESPACE} on pods of {counted(len(unknown), 'namespace')}"
    return [NotJudged(what, NO_LABELS)] if unknown else []


def _by_namespace(raw: bytes) -> bool:
    """Whether a required term of the affinity selects by labels of namespaces; {} selects all, whatever these are."""
    if b"namespaceSelector" not in raw:
        return False
    try:
        found = terms.affinity(raw)
        sides = [side for side in (found.pod_affinity, found.pod_anti_affinity) if side is not None]
        selectors = [term.namespace_selector for side in sides for term in side.required or ()]
        return any(one.requirements("namespaceSelector") for one in selectors if one is not None)
    except Fault:
        return False  # said where it is judged


def pods_not_judged(pods: int, waiting: int, nodes: int) -> list[NotJudged]:
    """Of so many pods that have not finished, those on no node; on a site without nodes none is judged."""
    if not pods:
        return [NotJudged("pods", NONE)]
    if not nodes:
        return [NotJudged(counted(pods, "pod"), NO_NODE)]
    return [NotJudged(counted(waiting, "pod"), PENDING)] if waiting else []


def places_not_judged(snapshot: Snapshot) -> list[NotJudged]:
    """What an answer about rules and places leaves out: hosts, and nodes where there are none."""
    left_out = [*hosts_not_judged(snapshot), *namespaces_not_judged(snapshot)]
    return [*left_out, *([] if snapshot.nodes else [NotJudged("nodes", NONE)])]


def not_placed(pods: Iterable[Pod], scheduler_names: Collection[str]) -> list[NotJudged]:
    """The pods that wait for a scheduler of which nothing was asked."""
    waiting = (pod for pod in pods if not pod.spec.node_name and pod.status.phase not in FINISHED)
    others = sum((pod.spec.scheduler_name or DEFAULT_SCHEDULER) not in scheduler_names for pod in waiting)
    return [NotJudged(counted(others, "pod"), ANOTHER_SCHEDULER)] if others else []


def counted(number: int, one: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{number} {one if number == 1 else one + 's'}"
