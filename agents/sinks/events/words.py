"""What an Event says, in words for whoever reads Events of its object's namespace.

In: findings and outcomes. Out: notes. Pure. Such a reader may read the pods of the namespace, and with them the nodes
they are on; not the pods of other namespaces, nor where those run, nor hosts, VMs and vSphere clusters. So a finding's
own message, which names all of it, is told only where it can name nothing else. A node's Events lie in `default`: they
name no pods but those of that namespace. The page and the topics have the whole, under the finding's id.
"""

from collections.abc import Callable

from underhost.agents.evaluate.findings import listing
from underhost.agents.sinks.orders import REFUSED
from underhost.agents.sinks.readers import own_and_others
from underhost.schemas.records import RESOLVED, Action, FindingEvent, Outcome

NODE_NAMESPACE = "default"
"""Where Kubernetes keeps the Events of what has no namespace."""
NAMELESS_DOMAINS = ("host", "node", "cluster")
"""Domains that are no topology key of a rule: what they are is in the reason already."""
MOST = 3
"""Pods that are named; of more the first two, and how many there are."""


def of_finding(row: FindingEvent, pod: str, node_of: Callable[[str], str]) -> str:
    """What a finding says to a pod (`namespace/name`), or to a node (""). `node_of` gives the node of a pod, or ""."""
    members = [member for member in (row.pod, *row.peers) if member]
    namespace = pod.partition("/")[0] or NODE_NAMESPACE
    own, others = own_and_others(members, namespace)
    if others or (row.domain is not None and (members or row.pods)):
        said = f"{_who(row, pod, own, others, node_of)}: {row.reason} ({_what(row, pod)}). Finding {row.id}."
    else:
        said = row.message
    return f"Resolved: {said}" if row.state == RESOLVED else said


def _who(row: FindingEvent, pod: str, own: list[str], others: str, node_of: Callable[[str], str]) -> str:
    """The pods that the finding is of; to a node they are a number, where none is of its namespace."""
    if not own and not pod:
        count = row.pods or sum(1 for member in (row.pod, *row.peers) if member)
        return f"{count} pod{'s' if count != 1 else ''}"
    placed = [f"{one} on {node_of(one)}" if node_of(one) else one for one in own or [pod]]
    shown = placed if len(placed) <= MOST else [*placed[: MOST - 1], f"{len(placed) - MOST + 1} more"]
    return listing([*shown, others] if others else shown, MOST + 1)


def _what(row: FindingEvent, pod: str) -> str:
    """The rule, what it stems from, and where: a node's readers see its labels, a pod's only what its rules are by."""
    where = ""
    if row.domain is not None:
        named = row.domain.key not in NAMELESS_DOMAINS
        where = (row.domain.key if named else "") if pod else f"{row.domain.key}={row.domain.value}"
    return ", ".join(filter(None, (row.rule, row.source, where)))


def of_eviction(row: Outcome, action: Action | None) -> str:
    """What the outcome of its eviction says to a pod: of a finding of several namespaces only what concerns its own."""
    desired = action.desired if action is not None else {}
    if row.result != REFUSED or (action is not None and not desired.get("refuse")):
        return row.reason
    tell = desired.get("tell")
    return tell if isinstance(tell, str) and tell else f"it is not evicted; the outcome {row.id} says why"


def of_evicted(pod: str, row: Outcome) -> str:
    """What the eviction of a pod says to the node that it leaves."""
    own, others = own_and_others([pod], NODE_NAMESPACE)
    return f"{others or own[0]}: {row.reason}"
