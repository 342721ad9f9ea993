"""Host labels of nodes: which should be written.

In: a snapshot, whose `node_hosts` say where each node runs. Out: `label` commands. The decider knows only the trimmed
node, so whose a label is the sink finds out on the live one. What the labels say is in `values.py`, the start-up taint
in `startup_taint.py`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from underhost.agents.sinks.labels.pace import QUIET, LabelPace
from underhost.agents.sinks.labels.sink import needed_by
from underhost.agents.sinks.labels.startup_taint import carries
from underhost.agents.sinks.labels.values import LabelValues
from underhost.agents.sinks.orders import order
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.changes import Derived, same_objects
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.commands import LABEL
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import Action, NodeHost, Outcome
from underhost.streams.settings.labels import HostLabelSettings


class _Look(NamedTuple):
    """What was found of one node: good for as long as the node, its row and all hosts are the very same."""

    desired: dict[str, object]
    wanted: Mapping[str, str | None]
    held: Mapping[str, str | None]
    version: str
    settled: bool


class LabelDecider(Decider):
    """Orders a label for each node that lacks it.

    Modes: `own` and `auto` order the host label (the sink of `auto` yields to another controller), `observe` only the
    labels derived from it. The start-up taint of a node is part of the same order: it goes with the last label.
    """

    kind = LABEL

    def __init__(self, settings: HostLabelSettings, held_until: Callable[[str], float] = lambda target: 0.0) -> None:
        """`held_until` see `DeciderParts`, for the target of a node."""
        self._settings, self._needs = settings, needed_by(settings)
        self._pace = LabelPace(held_until)
        self._inputs: tuple[object, object, object] = (None, None, None)
        self._hosts: object = None
        self._values = LabelValues(settings, {})
        self._looks: Derived[str, _Look] = Derived()

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """One action for each node whose labels differ from its live host; see `pace.py` for when."""
        inputs = (snapshot.nodes, snapshot.hosts, snapshot.node_hosts)
        if same_objects(self._inputs, inputs) and (self.due is None or now < self.due):
            return []  # the very same objects, and nothing was ordered or waits for its time
        actions: list[Action] = []
        self.due = None
        if snapshot.hosts is not self._hosts:
            self._hosts, self._values = snapshot.hosts, LabelValues(self._settings, snapshot.hosts)
            self._looks.clear()
        self._pace.keep(snapshot.nodes)
        # A host that vSphere has not shown us (yet) is unknown, whatever the VM calls it: never a label.
        placed = {
            name: (snapshot.nodes[name], joined)
            for name, joined in sorted(snapshot.node_hosts.items())
            if name in snapshot.nodes and joined.host in snapshot.hosts
        }
        for name, look in self._looks.of(placed, lambda name: self._look(*placed[name])).items():
            if look.settled:
                self._pace.settle(name, now)
            elif now >= (when := self._pace.opens(name, look.desired, look.held, look.version)):
                joined = snapshot.node_hosts[name]
                reason = f"node {name} runs on host {joined.host_name or joined.host}"
                action = order(LABEL, f"node/{name}", look.desired, reason, snapshot.offsets)
                # A node's first label, or its taint alone, is no move: the first move after it is followed at once.
                moves = any(look.held[key] not in (None, "", value) for key, value in look.wanted.items())
                self._pace.order(name, action, look.held, look.version, now, quiet=QUIET if moves else 0.0)
                actions.append(action)
            else:
                self.wait_until(when)
        self._inputs = inputs if not actions else (None, None, None)
        return actions

    def _look(self, node: Node, joined: NodeHost) -> "_Look":
        """What the node should carry, and what it does."""
        wanted, labels = self._values.of(joined.host), readable_labels(node.metadata.labels)
        desired: dict[str, object] = {"uid": node.metadata.uid, "labels": wanted}
        taint, watched = self._settings.startup_taint, list(wanted)
        if tainted := taint is not None and carries(bytes(node.spec.taints), taint):
            desired["taint"] = {"key": taint, "needs": self._needs}
            watched += self._needs
        held = {key: labels.get(key) for key in watched}
        version = node.metadata.resource_version
        return _Look(desired, wanted, held, version, settled=held == wanted and not tainted)

    def observe(self, outcome: Outcome, now: float) -> None:
        """Remember what became of the last command for a node; older commands' outcomes say nothing."""
        if self._pace.observe(outcome.target.partition("/")[2], outcome, now) is not None:
            self._inputs = (None, None, None)
