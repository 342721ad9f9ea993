"""Evictions in the simulated cluster: what the Eviction API asks the budgets, and how a drain goes on.

In: the simulated API server and a pod or node. Out: budgets that are charged, pods that go.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from underhost.schemas.errors import Refused, Retry
from underhost.schemas.kubernetes import Budget, KubernetesObject, Node, Pod
from underhost.streams.simulated.objects import is_ready, labels_of, plain, selects
from underhost.streams.simulated.timeline import Timeline

EVICTION_RETRY = 5.0
"""Seconds after which a refused eviction is tried again, as kubectl drain does."""


class Api(Protocol):
    """What is needed of the API server."""

    def nodes(self) -> Mapping[str, Node]:
        """By name."""

    def pods(self) -> Mapping[str, Pod]:
        """By `namespace/name`."""

    def budgets(self) -> list[Budget]:
        """All of them."""

    def update(self, value: KubernetesObject) -> Any:
        """Replace an object."""

    def evict_pod(self, namespace: str, name: str, uid: str = "") -> None:
        """The Eviction API."""


def drain_step(api: Api, timeline: Timeline, node: str) -> None:
    """Evict what is left on a cordoned node; what a budget refuses is tried again."""
    held = api.nodes().get(node)
    if held is None or not held.spec.unschedulable:
        return
    refused = False
    for pod in api.pods().values():
        if pod.spec.node_name != node or pod.metadata.deletion_timestamp is not None or stays_in_a_drain(pod):
            continue
        try:
            api.evict_pod(pod.metadata.namespace, pod.metadata.name)
        except (Retry, Refused):
            refused = True
    if refused:
        timeline.after(EVICTION_RETRY, lambda: drain_step(api, timeline, node))


def ask_budgets(api: Api, pod: Pod) -> None:
    """Charge the budget of an eviction. Raises Retry where it allows none now, Refused where there are several."""
    labels = labels_of(pod.metadata)
    budgets = [
        budget
        for budget in api.budgets()
        if budget.metadata.namespace == pod.metadata.namespace and selects(plain(budget.spec.selector), labels)
    ]
    if len(budgets) > 1:
        raise Refused("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support")
    for budget in budgets:
        if not is_ready(pod) and budget.status.current_healthy >= budget.status.desired_healthy > 0:
            continue  # IfHealthyBudget: a pod that is not ready costs the budget nothing
        allowed = budget.status.disruptions_allowed
        if allowed < 1:
            raise Retry("Cannot evict pod as it would violate the pod's disruption budget.", EVICTION_RETRY)
        # At once, as the API server does: the controller's figures come too late for a second eviction.
        status = msgspec.structs.replace(budget.status, disruptions_allowed=allowed - 1)
        api.update(msgspec.structs.replace(budget, status=status))


def stays_in_a_drain(pod: Pod) -> bool:
    """Whether it is a DaemonSet's or a mirror pod."""
    if pod.metadata.annotations is not None and pod.metadata.annotations.mirror is not None:
        return True
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())
