"""Host labels of nodes: what should be written (decider), and writing it (sink).

In: a snapshot, whose `node_hosts` say where each node runs. Out: `label` actions, and outcomes of them. Called by the
cycle and the worker. The decider knows only the trimmed node, so whose a label is the sink finds out on the live one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.host_label import label_value, label_values
from underhost.agents.ports import KubernetesWriter
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, order, outcome
from underhost.schemas.errors import Conflict, Gone, Refused, Retry, Unreachable
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import Action, NodeHost, Outcome
from underhost.streams.settings import HostLabelSettings

KIND = "label"
FIELD_MANAGER = "underhost"
QUIET = 10.0
"""Seconds in which further changes of one node wait, so that a flapping VM costs one write; the last state wins."""
AFTER_FAILURE = 30.0
"""Seconds after which a command that failed, was lost, or did not show on the node is ordered again."""
AFTER_REFUSAL = 600.0
"""Seconds after which a refused command is tried again: its reason rarely goes by itself."""
PEOPLE = ("kubectl", "k9s", "lens", "mozilla", "curl", "python", "openapi-generator", "before-first-apply", "unknown")
"""Beginnings of field managers that are a person's tool: a label set by hand is repaired, a controller's is not."""


@dataclass
class _Ordered:
    """The last command for a node: what it said and against which labels.

    `quiet` is until when other changes of the node wait, `again` from when an equal command may follow.
    """

    desired: Mapping[str, object]
    held: Mapping[str, str | None]
    quiet: float
    again: float
    action: str
    dry: bool = False


class LabelDecider:
    """Orders a label for each node that lacks it; implements `agents.ports.Decider`.

    Modes: `own` and `auto` order the host label (the sink of `auto` yields to another controller), `observe` only the
    labels derived from it.
    """

    kind = KIND

    def __init__(self, settings: HostLabelSettings) -> None:
        self._settings = settings
        self._ordered: dict[str, _Ordered] = {}
        self.due: float | None = None
        """When, in the seconds of `now`, an order that waits should be decided, even if nothing changes until then."""

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """One action for each node whose labels differ from its live host; see the module's constants for the pace."""
        actions: list[Action] = []
        self.due = None
        values = _host_values(snapshot)
        for gone in self._ordered.keys() - snapshot.nodes.keys():
            del self._ordered[gone]
        for name, joined in sorted(snapshot.node_hosts.items()):
            node = snapshot.nodes.get(name)
            if node is None or not joined.host:
                continue
            wanted = self._wanted(snapshot, joined, values)
            labels = _labels(node)
            held = {key: labels.get(key) for key in wanted}
            desired: dict[str, object] = {"uid": node.metadata.uid, "labels": wanted}
            if held == wanted:
                self._settle(name, now)
            elif self._may_order(name, desired, held, now):
                reason = f"node {name} runs on host {joined.host_name or joined.host}"
                action = order(KIND, f"node/{name}", desired, reason, snapshot.offsets)
                # A node's first label is no move: the first move after it is followed at once.
                quiet = now + QUIET if any(held.values()) else now
                self._ordered[name] = _Ordered(desired, held, quiet, now + AFTER_FAILURE, action.id)
                actions.append(action)
        return actions

    def observe(self, outcome: Outcome, now: float) -> None:
        """Remember what became of the last command for a node; older commands' outcomes say nothing."""
        last = self._ordered.get(outcome.target.partition("/")[2])
        if last is None or last.action != outcome.id:
            return
        last.again = now + (AFTER_REFUSAL if outcome.result == REFUSED else AFTER_FAILURE)
        last.dry = outcome.result == DRY_RUN

    def _settle(self, name: str, now: float) -> None:
        """The node is as it should be: what differs next is a new change, but not at once if this one was just now."""
        last = self._ordered.get(name)
        if last is not None:
            last.desired = {}
            if now >= last.quiet:
                del self._ordered[name]

    def _may_order(self, name: str, desired: Mapping[str, object], held: Mapping[str, str | None], now: float) -> bool:
        last = self._ordered.get(name)
        if last is None:
            return True
        if last.desired != desired or last.held != held:
            when = last.quiet  # the node moved on, or somebody changed its labels
        elif last.dry:
            return False  # a dry run changes nothing, so nothing is gained by repeating it
        else:
            when = last.again
        if now >= when:
            return True
        self.due = when if self.due is None else min(self.due, when)
        return False

    def _wanted(self, snapshot: Snapshot, joined: NodeHost, values: Mapping[str, str]) -> dict[str, str]:
        wanted: dict[str, str] = {}
        value = values.get(joined.host, "")
        if value and self._settings.mode != "observe":
            wanted[self._settings.key] = value
        host = snapshot.hosts.get(joined.host)
        for derived in self._settings.derived:
            if host is not None and (part := label_value(host.labels.get(derived.source, ""))):
                wanted[derived.key] = part
        return wanted


def _host_values(snapshot: Snapshot) -> dict[str, str]:
    """Label value by moref, of all hosts at once: only so are two hosts never given one value."""
    names = {joined.host: joined.host_name for joined in snapshot.node_hosts.values() if joined.host}
    names.update((ref, host.name) for ref, host in snapshot.hosts.items())
    return label_values(names)


def _labels(node: Node) -> dict[str, str]:
    labels = msgspec.json.decode(node.metadata.labels, type=dict[str, str] | None)
    return labels or {}


class _Desired(msgspec.Struct):
    uid: str
    labels: dict[str, str | None]


class LabelSink:
    """Writes labels; implements `agents.ports.Sink`. `enabled` false is a dry run."""

    kind = KIND

    def __init__(self, writer: KubernetesWriter, settings: HostLabelSettings, *, enabled: bool) -> None:
        self._writer, self._settings, self._enabled = writer, settings, enabled

    async def apply(self, action: Action) -> Outcome:
        """Read the live node, write what differs in one request, and say what happened."""
        node = action.target.partition("/")[2]
        try:
            desired = msgspec.convert(action.desired, _Desired)
        except msgspec.ValidationError as error:
            return outcome(action, REFUSED, f"not a label command: {error}")
        try:
            return await self._apply(action, node, desired)
        except (Gone, Conflict, Refused) as error:
            return outcome(action, REFUSED, str(error))
        except (Retry, Unreachable) as error:
            return outcome(action, FAILED, str(error))

    async def _apply(self, action: Action, node: str, desired: _Desired) -> Outcome:
        uid, labels, managers = await self._writer.node_labels(node)
        if uid != desired.uid:
            return outcome(action, REFUSED, f"node {node} is another one now (uid {uid})")
        differing = {key: value for key, value in desired.labels.items() if labels.get(key) != value}
        if not differing:
            return outcome(action, NOOP, "the node carries these labels already")
        foreign = self._foreign(differing, managers)
        ours = {key: value for key, value in differing.items() if key not in foreign}
        if not ours:
            return outcome(action, REFUSED, "; ".join(foreign.values()))
        change = ", ".join(f"{key}={value}" if value is not None else f"{key}-" for key, value in sorted(ours.items()))
        note = "".join(f"; {reason}" for reason in foreign.values())
        if not self._enabled:
            return outcome(action, DRY_RUN, f"would set {change}{note}")
        # Server-side apply states the whole of what we own: a label that is left out would be removed.
        owned = {key: labels[key] for key, manager in managers.items() if manager == FIELD_MANAGER and key in labels}
        await self._writer.apply_node_labels(node, uid, {**owned, **ours})
        return outcome(action, APPLIED, f"set {change}{note}")

    def _foreign(self, keys: Mapping[str, str | None], managers: Mapping[str, str]) -> dict[str, str]:
        """The keys that are not ours to write, with the reason."""
        if self._settings.mode == "own":
            return {}
        reasons: dict[str, str] = {}
        for key in sorted(keys):
            manager = managers.get(key, FIELD_MANAGER)
            if self._settings.mode == "observe" and key == self._settings.key:
                reasons[key] = f"label {key} is only observed"
            elif manager != FIELD_MANAGER and not _is_person(manager):
                reasons[key] = f"label {key} belongs to {manager}"
        return reasons


def _is_person(manager: str) -> bool:
    return manager.lower().startswith(PEOPLE)
