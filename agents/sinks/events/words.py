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
from underhost.schemas.records import RESOLVED, Action, FindingEvent, Outcome, pods_named

NODE_NAMESPACE = "default"
"""Where Kubernetes keeps the Events of what has no namespace."""
NAMELESS_DOMAINS = ("host", "node", "cluster")
"""Domains that are no topology key of a rule: what they are is in the reason already."""
MOST = 3
"""Pods that are named; of more the first two, and how many there are."""


class FindingWords:
    """What one finding says to each that is told of it. All its pods are not looked through for each of them."""

    def __init__(self, row: FindingEvent, node_of: Callable[[str], str]) -> None:
        """`node_of` gives the node of a pod, "" where it has none or is gone."""
        self._row, self._node_of = row, node_of
        self._members = pods_named(row)
        self._there = frozenset(self._members)
        self._said: dict[str, str] = {}

    def to(self, pod: str) -> str:
        """What it says to a pod (`namespace/name`), or to a node (""); to its pods of one namespace the same."""
        if pod not in self._there:
            return self._to(pod)
        namespace = pod.partition("/")[0]
        if namespace not in self._said:
            self._said[namespace] = self._to(pod)
        return self._said[namespace]

    def _to(self, pod: str) -> str:
        row = self._row
        own, others = own_and_others(self._members, pod.partition("/")[0] or NODE_NAMESPACE)
        if others or (row.domain is not None and (self._members or row.pods)):
            said = f"{self._who(pod, own, others)}: {row.reason} ({_what(row, pod)}). Finding {row.id}."
        else:
            said = row.message
        return f"Resolved: {said}" if row.state == RESOLVED else said

    def _who(self, pod: str, own: list[str], others: str) -> str:
        """The pods that the finding is of; to a node they are a number, where none is of its namespace."""
        if not own and not pod:
            count = self._row.pods or len(self._members)
            return f"{count} pod{'s' if count != 1 else ''}"
        named = own or [pod]
        more = [] if len(named) <= MOST else [f"{len(named) - MOST + 1} more"]
        shown = [*map(self._placed, named[: MOST - len(more)]), *more]
        return listing([*shown, others] if others else shown, MOST + 1)

    def _placed(self, pod: str) -> str:
        node = self._node_of(pod)
        return f"{pod} on {node}" if node else pod


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
