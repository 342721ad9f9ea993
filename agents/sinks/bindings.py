"""Binding pods: the order that a placement is, and carrying it out.

In: records of `placements`, as `bind` actions. Out: outcomes. Called by the worker. Which pods are ours to place is the
evaluator's to know: it publishes placements of no others.
"""

import msgspec

from underhost.agents.ports import KubernetesWriter
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, order, outcome
from underhost.schemas.errors import Conflict, Gone, Refused, Retry, Unreachable
from underhost.schemas.records import Action, Outcome, Placement

KIND = "bind"


def action_of(placement: Placement, site: str) -> Action | None:
    """The order to bind that a placement is, or None while the pod waits."""
    if placement.node is None:
        return None
    because = f"{placement.pod} is placed on {placement.node} of site {site}"
    desired = {"uid": placement.uid, "node": placement.node}
    return order(KIND, f"pod/{placement.pod}", desired, because, placement.snapshot)


class _Desired(msgspec.Struct):
    uid: str
    node: str


class BindSink:
    """Binds pods; implements `agents.ports.Sink`. `enabled` false is a dry run."""

    kind = KIND

    def __init__(self, writer: KubernetesWriter, *, enabled: bool) -> None:
        self._writer, self._enabled = writer, enabled

    async def apply(self, action: Action) -> Outcome:
        """Read the live pod, bind it if it waits, and say what happened. A pod that is bound stays where it is."""
        _, _, pod = action.target.partition("/")
        namespace, _, name = pod.partition("/")
        try:
            desired = msgspec.convert(action.desired, _Desired)
        except msgspec.ValidationError as error:
            return outcome(action, REFUSED, f"not a bind command: {error}")
        try:
            return await self._apply(action, namespace, name, desired)
        except (Gone, Conflict, Refused) as error:
            return outcome(action, REFUSED, str(error))
        except (Retry, Unreachable) as error:
            return outcome(action, FAILED, str(error))

    async def _apply(self, action: Action, namespace: str, name: str, desired: _Desired) -> Outcome:
        bound = await self._where(namespace, name, desired)
        if bound is not None:
            return outcome(action, *bound)
        if not self._enabled:
            return outcome(action, DRY_RUN, f"would bind to {desired.node}")
        try:
            await self._writer.bind_pod(namespace, name, desired.uid, desired.node)
        except Conflict as error:
            # Somebody was faster; if it was this same order, delivered twice, all is well.
            bound = await self._where(namespace, name, desired)
            return outcome(action, *(bound or (REFUSED, str(error))))
        return outcome(action, APPLIED, f"bound to {desired.node}")

    async def _where(self, namespace: str, name: str, desired: _Desired) -> tuple[str, str] | None:
        """The result and reason that the live pod gives; None while it waits for this order."""
        uid, node = await self._writer.pod_node(namespace, name)
        if uid != desired.uid:
            return REFUSED, f"pod {namespace}/{name} is another one now (uid {uid})"
        if node == desired.node:
            return NOOP, f"bound to {node} already"
        if node:
            return REFUSED, f"bound to {node} already"
        return None
