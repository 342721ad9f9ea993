"""Node labels that name another ESXi host than vSphere does, for longer than a bound: `label-stale` findings.

In: snapshots of one site, one after another, and the time. Out: findings. Beside the findings
of the evaluator, which knows no time. A label that is absent is not stale: nobody may have been asked to write it.
"""

from collections.abc import Collection, Mapping

from underhost.agents.evaluate import findings as f
from underhost.agents.sinks.labels.values import label_value, label_values
from underhost.agents.site.changes import Derived, same_objects
from underhost.agents.site.fault import Fault
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.site.terms import labels
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import Domain, Finding, NodeHost
from underhost.schemas.severities import LABEL_STALE

RULE = "PhysicalHost"
REASON = "the node's label names another ESXi host than vSphere does"
BOUND = 60.0


class StaleLabels:
    """Remembers since when each label has been wrong; `known` are the ids of such findings that an earlier run opened.

    Attributes:
        due: when the next one has been wrong for too long, monotonic seconds; None if none waits.
    """

    def __init__(self, options: Options, bound: float = BOUND, known: Collection[str] = ()) -> None:
        self._options, self._bound, self._known = options, bound, frozenset(known)
        self._since: dict[tuple[str, str, str], float] = {}
        self.due: float | None = None
        self._inputs: tuple[object, object, object] = (None, None, None)
        self._last: dict[tuple[str, str], tuple[str, str]] = {}
        self._hosts: object = None
        self._values: Mapping[str, str] = {}
        self._carried: Derived[str, list[tuple[str, str]]] = Derived()

    def findings(self, snapshot: Snapshot, now: float) -> list[Finding]:
        """The labels that have named one wrong host for the bound, by node and key. `now` is monotonic seconds.

        A vMotion starts the time anew: what counts is how long the label has lagged behind this host.
        """
        wrong = self._wrong(snapshot)
        self._since = {
            (node, key, host): self._since.get((node, key, host), now) for (node, key), (_, host) in wrong.items()
        }
        self.due, found = None, []
        for (node, key), (value, host) in sorted(wrong.items()):
            at = self._since[(node, key, host)] + self._bound
            finding = _finding(snapshot, node, key, value)
            if now >= at or finding.id in self._known:
                found.append(finding)
            elif self.due is None or at < self.due:
                self.due = at
        self._known &= {finding.id for finding in found}
        return found

    def _wrong(self, snapshot: Snapshot) -> dict[tuple[str, str], tuple[str, str]]:
        """(value, live host) of every label under a host key that does not name the live host, by (node, key).

        A node is looked at anew only where itself, its host or any host is not the very same.
        """
        inputs = (snapshot.nodes, snapshot.hosts, snapshot.node_hosts)
        if same_objects(self._inputs, inputs):
            return self._last
        nodes, places = snapshot.nodes, snapshot.node_hosts
        if snapshot.hosts is not self._hosts:
            self._hosts = snapshot.hosts
            self._values = label_values({ref: host.name for ref, host in snapshot.hosts.items()})
            self._carried.clear()
        placed = {name: (nodes[name], joined) for name, joined in places.items() if name in nodes and joined.host}
        wrong = self._carried.of(placed, lambda name: self._wrong_of(nodes[name], places[name]))
        self._inputs = inputs
        self._last = {(name, key): (value, places[name].host) for name, of in wrong.items() for key, value in of}
        return self._last

    def _wrong_of(self, node: Node, joined: NodeHost) -> list[tuple[str, str]]:
        """(key, value) of the labels of one node that do not name its host."""
        right = {self._values.get(joined.host, ""), label_value(joined.host_name), joined.host_name, joined.host} - {""}
        labels_ = _host_labels(bytes(node.metadata.labels), self._options)
        return [(key, value) for key, value in labels_.items() if value not in right]


def _host_labels(raw: bytes, options: Options) -> Mapping[str, str]:
    """The labels under a host key; labels that cannot be read are said elsewhere."""
    try:
        carried = labels(raw)
    except Fault:
        return {}
    return {key: carried[key] for key in options.host_keys if key in carried}


def _finding(snapshot: Snapshot, node: str, key: str, value: str) -> Finding:
    joined = snapshot.node_hosts[node]
    said = f"names {value}" if value else "is empty"
    return Finding(
        id=f.finding_id(snapshot.site, LABEL_STALE, RULE, key, node, snapshot.nodes[node].metadata.uid),
        severity=LABEL_STALE,
        rule=RULE,
        reason=REASON,
        message=f"Label {key} of node {node} {said}, but its VM runs on ESXi host {joined.host_name}.",
        node=node,
        domain=Domain(key=key, value=value),
    )
