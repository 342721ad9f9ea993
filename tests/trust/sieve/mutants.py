"""Faults planted in the product, to see whether the plans find them.

In: nothing. Out: `MUTANTS`, by name: each changes the product in this process, as a careless change of its code would.
Most leave an undisturbed run as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from underhost.agents.pipeline.decide.open_findings import PublishedFindings
from underhost.agents.pipeline.decide.placements import BindingQueue
from underhost.agents.pipeline.dispatch.consumers import _SharedEvent
from underhost.agents.pipeline.tables.node_hosts import NodeHosts
from underhost.agents.sinks.bindings import BindSink
from underhost.agents.sinks.evictions import decider as evictor
from underhost.agents.sinks.evictions.pace import EvictionPace
from underhost.agents.sinks.evictions.sink import EvictionSink
from underhost.agents.sinks.kubernetes_writer import APPLY, OURS, KubernetesApiWriter, node_path, pod_path
from underhost.agents.sinks.labels.decider import LabelDecider
from underhost.agents.sinks.labels.sink import LabelSink
from underhost.agents.sinks.orders import DONE, NOOP
from underhost.agents.site.objects import SiteState
from underhost.schemas.topics import PODS
from underhost.streams.vsphere.publisher import InventoryPublisher
from underhost.streams.watching import listing
from underhost.streams.watching.reflector import Reflector

Plant = Callable[[], None]


def _instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Plant:
    """Plants `make(original)` in the place of a function."""

    def plant() -> None:
        setattr(owner, name, make(getattr(owner, name)))

    return plant


def _both(*plants: Plant) -> Plant:
    def plant() -> None:
        for each in plants:
            each()

    return plant


# ------------------------------------------------------------------------------------------- what a write is meant for
async def _bind_by_name(self: Any, namespace: str, name: str, uid: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    await self._client.call("POST", f"{pod_path(namespace, name)}/binding", query=OURS, body=body)


async def _evict_by_name(self: Any, namespace: str, name: str, uid: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    await self._client.call("POST", f"{pod_path(namespace, name)}/eviction", query=OURS, body=body)


async def _delete(self: Any, namespace: str, name: str, uid: str) -> None:
    await self._client.call("DELETE", pod_path(namespace, name), query=OURS)


async def _not_ending(self: Any, namespace: str, name: str, desired: Any) -> None:
    return None


async def _label_by_name(self: Any, node: str, uid: str, labels: Any, *, force: bool = True) -> None:
    kept = {key: value for key, value in labels.items() if value is not None}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": kept}}
    query = [*OURS, ("force", "true")]
    await self._client.call("PATCH", node_path(node), query=query, body=body, content_type=APPLY)


# --------------------------------------------------------------------------------------------------- what is remembered
def _bound_names(original: Any) -> Any:
    names: dict[str, str] = {}

    async def carry_out(self: Any, action: Any, look: bool) -> tuple[str, str]:
        node = str(action.desired["node"])
        if names.get(action.target) == node:
            return NOOP, f"bound to {node} already"
        result, reason = await original(self, action, look)
        if result in DONE:
            names[action.target] = node
        return str(result), str(reason)

    return carry_out


def _labels_left(original: Any) -> Any:
    left: dict[str, Any] = {}

    async def apply(self: Any, action: Any) -> tuple[str, str]:
        wanted = action.desired["labels"]
        if left.get(action.target) == wanted and not action.desired.get("taint"):
            return NOOP, "the node carries these labels already"
        left[action.target] = wanted
        result, reason = await original(self, action)
        return str(result), str(reason)

    return apply


def _queue_by_name(original: Any) -> Any:
    def assumed(self: Any, snapshot: Any, now: float) -> Any:
        for name, order in self._orders.items():
            pod = snapshot.pods.get(name)
            if pod is not None and not pod.spec.node_name:
                order.row.uid = pod.metadata.uid
        return original(self, snapshot, now)

    return assumed


def _looks_by_name(original: Any) -> Any:
    uids: dict[str, str] = {}

    def look(self: Any, node: Any, joined: Any) -> Any:
        found = original(self, node, joined)
        found.desired["uid"] = uids.setdefault(node.metadata.name, node.metadata.uid)
        return found

    return look


def _joined_once(original: Any) -> Any:
    def join(self: Any, snapshot: Any, now: str) -> Any:
        change = original(self, snapshot, now)
        change.node_hosts.update({node: row for node, row in self._published.items() if node in change.node_hosts})
        return change

    return join


def _nothing_remembered(*_: Any) -> dict[str, Any]:
    return {}


def _opened_by_this_run(original: Any) -> Any:
    def begin(self: Any, site: str, published: Any) -> None:
        original(self, site, ())

    return begin


def _not_begun(self: Any, one: Any) -> None:
    self._rate.add(one.at, one.id)


# ------------------------------------------------------------------------------------------------------ what is watched
def _no_tombstones_after_a_relist(original: Any) -> Any:
    async def relist(self: Any) -> Any:
        held, self._held = self._held, {}
        position = await original(self)
        self._held = {**held, **self._held}
        return position

    return relist


async def _position_only(self: Any) -> Any:
    return (await self._source.list()).position


def _no_tombstones_at_the_start(original: Any) -> Any:
    def plan(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        found.news[:] = [one for one in found.news if one.value is not None]
        return found

    return plan


def _no_deletion_of_pods(original: Any) -> Any:
    def put(self: Any, topic: Any, key: Any, value: Any, deleted_uid: str = "") -> bool:
        return bool(topic is not PODS or value is not None) and bool(original(self, topic, key, value, deleted_uid))

    return put


def _known_vms_stay(original: Any) -> Any:
    async def reconcile_(self: Any, cache: Any, *, first: bool = False) -> None:
        if not self.listed:
            await original(self, cache, first=first)

    return reconcile_


# ------------------------------------------------------------------------------------------------- what is carried over
def _acknowledged_at_once(original: Any) -> Any:
    def begin(self: Any, event: Any) -> None:
        original(self, event)
        event.ack()

    return begin


def _acknowledged_already(original: Any) -> Any:
    def ack(self: Any) -> None:
        self._holders -= 1

    return ack


def _taken_as_ordered(original: Any) -> Any:
    def begin(self: Any, *args: Any) -> None:
        original(self, *args)
        for order in self._orders.values():
            order.earlier = False

    return begin


def _taint_first(original: Any) -> Any:
    async def apply(self: Any, action: Any) -> tuple[str, str]:
        taint = action.desired.get("taint")
        if taint is not None:
            node = action.target.partition("/")[2]
            uid, before = await self._writer.node_taints(node)
            after = [one for one in before if one.get("key") != taint["key"]]
            if len(after) < len(before):
                await self._writer.replace_taints(node, uid, before, after)
        result, reason = await original(self, action)
        return str(result), str(reason)

    return apply


@dataclass(frozen=True)
class Mutant:
    """A fault. `where` is a part of the lines (`Plan.told`) of the plans that are likely to show it."""

    plant: Plant
    where: str = ""


MUTANTS: Mapping[str, Mutant] = {
    "a binding names no uid": Mutant(_instead(KubernetesApiWriter, "bind_pod", lambda _: _bind_by_name)),
    "an eviction names no uid": Mutant(
        _both(
            _instead(KubernetesApiWriter, "request_eviction", lambda _: _evict_by_name),
            _instead(EvictionSink, "_done", lambda _: _not_ending),
        ),
        "conflict",
    ),
    "an eviction is a deletion": Mutant(
        _instead(KubernetesApiWriter, "request_eviction", lambda _: _delete), "conflict"
    ),
    "a label names no uid": Mutant(_instead(KubernetesApiWriter, "apply_node_labels", lambda _: _label_by_name)),
    "the binder remembers pods by name": Mutant(_instead(BindSink, "_carry_out", _bound_names), "again"),
    "the label sink trusts its memory": Mutant(_instead(LabelSink, "_apply", _labels_left), "flap"),
    "orders to bind are kept by name": Mutant(_instead(BindingQueue, "assumed", _queue_by_name), "since='bind'"),
    "the labeller knows nodes by name": Mutant(_instead(LabelDecider, "_look", _looks_by_name), "step='node'"),
    "a node stays on its first VM": Mutant(_instead(NodeHosts, "_join", _joined_once), "step='node', kinds=('nodes'"),
    "the evictor begins without memory": Mutant(
        _instead(evictor, "remembered", lambda _: _nothing_remembered), "fight: Kill(write='evict'"
    ),
    "findings of earlier runs are forgotten": Mutant(
        _instead(PublishedFindings, "__init__", _opened_by_this_run), "conflict: Kill(write='evict'"
    ),
    "the evictor forgets what it ordered": Mutant(_instead(EvictionPace, "begin", lambda _: _not_begun), "fight"),
    "a relist leaves what has vanished": Mutant(
        _instead(Reflector, "_relist", _no_tombstones_after_a_relist), "step='down', kinds=('pods',), how='expired'"
    ),
    "an expired watch goes on from now": Mutant(
        _instead(Reflector, "_relist", lambda _: _position_only), "how='expired'"
    ),
    "a start leaves what has vanished": Mutant(
        _instead(listing, "plan_listing", _no_tombstones_at_the_start), "step='down', kinds=('pods',), how='restarted'"
    ),
    "tables keep deleted pods": Mutant(_instead(SiteState, "put", _no_deletion_of_pods), "again"),
    "a new session does not compare": Mutant(
        _instead(InventoryPublisher, "reconcile", _known_vms_stay), "kinds=('vcenter',), how='expired'"
    ),
    "commands are acknowledged unread": Mutant(
        _both(
            _instead(_SharedEvent, "__init__", _acknowledged_at_once),
            _instead(_SharedEvent, "ack", _acknowledged_already),
        ),
        "when='before'",
    ),
    "orders of earlier runs count": Mutant(_instead(BindingQueue, "__init__", _taken_as_ordered), "tryout"),
    "the start-up taint goes first": Mutant(_instead(LabelSink, "_apply", _taint_first)),
}
