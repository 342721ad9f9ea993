"""Binding pods: the order that a placement is, and carrying it out.

In: records of `placements`, as `bind` actions. Out: outcomes. Which pods are ours to place is the evaluator's to know:
it publishes placements of no others.

A binding is one request, with the pod's uid as its precondition: the API server refuses it where the pod is bound, is
another one or is gone, so nothing is read first. Only what was refused, or may have been done, is looked at; and what
another worker has decided, for a topic alone gives nobody a pod of another scheduler.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping

import msgspec

from underhost.agents.sinks.labels.values import label_value
from underhost.agents.sinks.orders import APPLIED, DONE, DRY_RUN, NOOP, REFUSED, answer, desired_of, named, order
from underhost.agents.sinks.ports import KubernetesWriter, Sink
from underhost.schemas.commands import BIND
from underhost.schemas.errors import Conflict, Gone, Unreachable
from underhost.schemas.records import Action, Outcome, Placement

OUR_SCHEDULER = "underhost"
"""`spec.schedulerName` of the pods that are ours to place."""
REMEMBERED = 5_000
"""Bindings that are remembered: the same command, delivered again, makes no request."""


def action_of(placement: Placement, site: str) -> Action | None:
    """The order to bind that a placement is, or None while the pod waits."""
    if placement.node is None:
        return None
    because = f"{placement.pod} is placed on {placement.node} of site {site}"
    desired = desired_binding(placement.uid, placement.node, placement.labels)
    return order(BIND, f"pod/{placement.pod}", desired, because, placement.snapshot)


def desired_binding(uid: str, node: str, labels: Mapping[str, str]) -> dict[str, object]:
    """`Action.desired` of an order to bind a pod."""
    return {"uid": uid, "node": node, **({"labels": dict(labels)} if labels else {})}


class DesiredBinding(msgspec.Struct):
    """`Action.desired` of a pod: where it shall be bound, its uid, and the labels that the binding hands over."""

    uid: str
    node: str
    labels: dict[str, str] = {}


class BindSink(Sink):
    """Binds pods. `enabled` false is a dry run.

    `is_node` tells whether a node is known to exist: the API server binds to any name, so one that is not known is
    asked for first. `keys` are those of the labels that a binding may hand over (`hostLabel`): no other is written.
    """

    kind = BIND

    def __init__(
        self,
        writer: KubernetesWriter,
        *,
        enabled: bool,
        is_node: Callable[[str], bool] = lambda node: False,
        keys: Collection[str] = (),
    ) -> None:
        self._writer, self._enabled, self._is_node, self._keys = writer, enabled, is_node, frozenset(keys)
        self._bound: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def apply(self, action: Action) -> Outcome:
        """Bind the pod, and say what happened. A pod that is bound stays where it is."""
        return await answer(action, self._carry_out(action, look=not self._enabled))

    async def again(self, action: Action) -> Outcome:
        """The same for a command that may have been carried out before a restart: the live pod is read first."""
        return await answer(action, self._carry_out(action, look=True))

    async def told(self, action: Action) -> Outcome:
        """The same for a command that another worker has decided: only a pod that is ours to place is bound."""
        return await answer(action, self._carry_out_if_ours(action))

    async def _carry_out_if_ours(self, action: Action) -> tuple[str, str]:
        namespace, _, name = named(action, "pod").partition("/")
        scheduler = await self._writer.pod_scheduler(namespace, name)
        if scheduler != OUR_SCHEDULER:
            return REFUSED, f"pod {namespace}/{name} is scheduler {scheduler}'s to place"
        return await self._carry_out(action, look=not self._enabled)

    async def _carry_out(self, action: Action, look: bool) -> tuple[str, str]:
        pod, desired = named(action, "pod"), desired_of(action, DesiredBinding, "a bind command")
        if self._bound.get((pod, desired.uid)) == desired.node:
            return NOOP, f"bound to {desired.node} already"
        namespace, _, name = pod.partition("/")
        result, reason = await self._apply(namespace, name, desired, look)
        if result in DONE:
            self._bound[pod, desired.uid] = desired.node
            if len(self._bound) > REMEMBERED:
                self._bound.popitem(last=False)
        return result, reason

    def _may_carry(self, key: str, value: str) -> bool:
        return key in self._keys and label_value(value) == value

    async def _apply(self, namespace: str, name: str, desired: DesiredBinding, look: bool) -> tuple[str, str]:
        if look and (bound := await self._where(namespace, name, desired)) is not None:
            return bound
        if not self._is_node(desired.node) and not await self._exists(desired.node):
            return REFUSED, f"there is no node {desired.node}"
        if not self._enabled:
            return DRY_RUN, f"would bind to {desired.node}"
        try:
            # Of what is not configured here nothing is written; the pod is bound all the same.
            labels = {key: value for key, value in desired.labels.items() if self._may_carry(key, value)}
            await self._writer.bind_pod(namespace, name, desired.uid, desired.node, labels)
        except (Conflict, Unreachable):
            # Somebody was faster, or nobody knows: if it was this same order all is well.
            bound = await self._where(namespace, name, desired)
            if bound is None:
                raise
            return bound
        return APPLIED, f"bound to {desired.node}"

    async def _where(self, namespace: str, name: str, desired: DesiredBinding) -> tuple[str, str] | None:
        """The result and reason that the live pod gives; None while it waits for this order."""
        uid, node = await self._writer.pod_node(namespace, name)
        if uid != desired.uid:
            return REFUSED, f"pod {namespace}/{name} is another one now (uid {uid})"
        if node == desired.node:
            return NOOP, f"bound to {node} already"
        if node:
            return REFUSED, f"bound to {node} already"
        return None

    async def _exists(self, node: str) -> bool:
        try:
            await self._writer.node_labels(node)
        except Gone:
            return False
        return True
