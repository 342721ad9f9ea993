"""Host labels of nodes: which should be written.

In: a snapshot, whose `node_hosts` say where each node runs. Out: `label` commands. The decider knows only the trimmed
node, so whose a label is the sink finds out on the live one. What the labels say is in `values.py`, the start-up taint
in `startup_taint.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from underhost.agents.sinks.labels.sink import needed_by
from underhost.agents.sinks.labels.startup_taint import carries
from underhost.agents.sinks.labels.values import LabelValues
from underhost.agents.sinks.orders import DRY_RUN, NOOP, REFUSED, order
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.changes import Derived, same_objects
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import LABEL
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import Action, NodeHost, Outcome
from underhost.streams.settings.labels import HostLabelSettings

QUIET = 10.0
"""Seconds in which further changes of one node wait, so that a flapping VM costs one write; the last state wins."""
AFTER_FAILURE = 30.0
"""Seconds after which a command that failed, was lost, or did not show on the node is ordered again."""
AFTER_REFUSAL = 600.0
"""Seconds after which what was refused, or found nothing to do, is tried again while the node stays as it is."""


@dataclass
class _OrderedLabels:
    """The last command for a node: what it said, and against which labels of which version of the node.

    `quiet` is until when other changes of the node wait, `again` from when an equal command may follow. `in_vain`: it
    was refused, or found nothing to do.
    """

    desired: Mapping[str, object]
    held: Mapping[str, str | None]
    version: str
    quiet: float
    again: float
    action: str
    dry: bool = False
    in_vain: bool = False


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
        self._settings, self._held_until = settings, held_until
        self._needs = needed_by(settings)
        self._ordered: dict[str, _OrderedLabels] = {}
        self._inputs: tuple[object, object, object] = (None, None, None)
        self._hosts: object = None
        self._values = LabelValues(settings, {})
        self._looks: Derived[str, _Look] = Derived()

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """One action for each node whose labels differ from its live host; see the module's constants for the pace."""
        inputs = (snapshot.nodes, snapshot.hosts, snapshot.node_hosts)
        if same_objects(self._inputs, inputs) and (self.due is None or now < self.due):
            return []  # the very same objects, and nothing was ordered or waits for its time
        actions: list[Action] = []
        self.due = None
        if snapshot.hosts is not self._hosts:
            self._hosts, self._values = snapshot.hosts, LabelValues(self._settings, snapshot.hosts)
            self._looks.clear()
        for gone in self._ordered.keys() - snapshot.nodes.keys():
            del self._ordered[gone]
        # A host that vSphere has not shown us (yet) is unknown, whatever the VM calls it: never a label.
        placed = {
            name: (snapshot.nodes[name], joined)
            for name, joined in sorted(snapshot.node_hosts.items())
            if name in snapshot.nodes and joined.host in snapshot.hosts
        }
        for name, look in self._looks.of(placed, lambda name: self._look(*placed[name])).items():
            desired, wanted, held = look.desired, look.wanted, look.held
            if look.settled:
                self._settle(name, now)
            elif self._may_order(name, look, now):
                joined = snapshot.node_hosts[name]
                reason = f"node {name} runs on host {joined.host_name or joined.host}"
                action = order(LABEL, f"node/{name}", desired, reason, snapshot.offsets)
                # A node's first label is no move: the first move after it is followed at once.
                quiet = now + QUIET if any(held[key] for key in wanted) else now
                again = now + AFTER_FAILURE
                self._ordered[name] = _OrderedLabels(desired, held, look.version, quiet, again, action.id)
                actions.append(action)
        self._inputs = inputs if not actions else (None, None, None)
        return actions

    def _look(self, node: Node, joined: NodeHost) -> "_Look":
        """What the node should carry, and what it does."""
        wanted, labels = self._values.of(joined.host), _labels(node)
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
        last = self._ordered.get(outcome.target.partition("/")[2])
        if last is None or last.action != outcome.id:
            return
        self._inputs = (None, None, None)
        last.in_vain = outcome.result in (REFUSED, NOOP)
        last.again = now + (AFTER_REFUSAL if last.in_vain else AFTER_FAILURE)
        last.dry = outcome.result == DRY_RUN

    def _settle(self, name: str, now: float) -> None:
        """The node is as it should be: what differs next is a new change, but not at once if this one was just now."""
        last = self._ordered.get(name)
        if last is not None:
            last.desired = {}
            if now >= last.quiet:
                del self._ordered[name]

    def _may_order(self, name: str, look: _Look, now: float) -> bool:
        last = self._ordered.get(name)
        if last is None:
            return True
        if last.desired != look.desired or last.held != look.held:
            when = last.quiet  # the node moved on, or somebody changed its labels
        elif last.in_vain and last.version != look.version:
            when = last.quiet  # labels that look the same may be another's no more: they went and came unseen
        elif last.dry:
            return False  # a dry run changes nothing, so nothing is gained by repeating it
        else:
            when = last.again
        when = max(when, self._held_until(f"node/{name}"))
        if now >= when:
            return True
        self.wait_until(when)
        return False


def _labels(node: Node) -> dict[str, str]:
    return msgspec.json.decode(node.metadata.labels, type=dict[str, str] | None) or {}
