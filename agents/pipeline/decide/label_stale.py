"""Labels that name another ESXi host than vSphere does: `label-stale` findings.

In: snapshots of one site, one after another, and the time. Out: findings, beside those of the evaluator, which knows no
time: of a node's label once it has been wrong for longer than a bound, of its pods' labels at once. A label that is
absent is not stale: nobody may have been asked to write it.
"""

from collections.abc import Collection, Mapping

from underhost.agents.evaluate import findings as f
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.sinks.labels.carriers import LabelCarriers
from underhost.agents.sinks.labels.values import label_value, label_values
from underhost.agents.site.changes import Derived, changed_keys, same_objects
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import Domain, Finding, NodeHost
from underhost.schemas.severities import LABEL_STALE

REASON = "the node's label names another ESXi host than vSphere does"
REASON_PODS = "labels of pods name another ESXi host than the one that they are on"
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
        wrong = {} if snapshot.joining.label else self._wrong(snapshot)  # of two labels nobody knows which one is right
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
        right = _right(self._values, joined)
        carried = readable_labels(node.metadata.labels)
        return [(key, carried[key]) for key in self._options.host_keys if key in carried and carried[key] not in right]


class StalePods:
    """Pods whose host label, which their binding gave them, names a host that their node's VM has left since.

    Nobody corrects it by writing the node's label; a container that has read it keeps what it read.
    """

    def __init__(self, options: Options) -> None:
        self._key = options.host_keys[0]
        self._carriers = LabelCarriers(self._key)
        self._before = Snapshot()
        self._values: Mapping[str, str] = {}
        self._found: dict[str, Finding] = {}

    def findings(self, snapshot: Snapshot) -> list[Finding]:
        """One for each node, by name. Only nodes whose pods, hosts or selves are others are looked at."""
        before, self._before = self._before, snapshot
        touched = {node for _, node in self._carriers.follow(snapshot)}
        for each in ("nodes", "node_hosts"):
            touched.update(changed_keys(getattr(before, each), getattr(snapshot, each)))
        if before.hosts is not snapshot.hosts:
            touched.update(self._carriers.nodes)
            self._values = label_values({ref: host.name for ref, host in snapshot.hosts.items()})
        for node in touched:
            self._found.pop(node, None)
            joined, carriers = snapshot.node_hosts.get(node), self._carriers.on(node)
            if carriers and node in snapshot.nodes and joined is not None and joined.host:
                right = _right(self._values, joined)
                wrong = {pod: value for pod, value in carriers.items() if value not in right}
                if wrong:
                    self._found[node] = _of_pods(snapshot, node, self._key, wrong)
        return [self._found[node] for node in sorted(self._found)]


def _right(values: Mapping[str, str], joined: NodeHost) -> set[str]:
    """What names the host that a node is on."""
    return {values.get(joined.host, ""), label_value(joined.host_name), joined.host_name, joined.host} - {""}


def _of_pods(snapshot: Snapshot, node: str, key: str, wrong: Mapping[str, str]) -> Finding:
    pods, values = sorted(wrong), sorted(set(wrong.values()))
    many = f"{len(pods)} pods" if len(pods) > 1 else "1 pod"
    return Finding(
        id=f.finding_id(
            snapshot.site, LABEL_STALE, PHYSICAL_HOST, f"pods/{key}", node, snapshot.nodes[node].metadata.uid
        ),
        severity=LABEL_STALE,
        rule=PHYSICAL_HOST,
        reason=REASON_PODS,
        message=f"Label {key} of {many} on node {node} ({f.listing(pods)}) names {f.listing(values)}, "
        f"but the node's VM runs on ESXi host {snapshot.node_hosts[node].host_name} by now.",
        node=node,
        domain=Domain(key=key, value=values[0]),
        pods=len(pods),
    )


def _finding(snapshot: Snapshot, node: str, key: str, value: str) -> Finding:
    joined = snapshot.node_hosts[node]
    said = f"names {value}" if value else "is empty"
    return Finding(
        id=f.finding_id(snapshot.site, LABEL_STALE, PHYSICAL_HOST, key, node, snapshot.nodes[node].metadata.uid),
        severity=LABEL_STALE,
        rule=PHYSICAL_HOST,
        reason=REASON,
        message=f"Label {key} of node {node} {said}, but its VM runs on ESXi host {joined.host_name}.",
        node=node,
        domain=Domain(key=key, value=value),
    )
