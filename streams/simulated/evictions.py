"""What the simulated Eviction API asks the disruption budgets, as the real one does.

In: a pod and the budgets. Out: the budget that an eviction is charged to, or the refusal.
"""

from collections.abc import Iterable

from underhost.schemas.errors import Refused, Retry
from underhost.schemas.kubernetes import Budget, Pod
from underhost.streams.simulated.objects import is_ready, labels_of, plain, selects

EVICTION_RETRY = 5.0
"""Seconds after which a refused eviction is tried again, as kubectl drain does."""


def budget_of(pod: Pod, budgets: Iterable[Budget]) -> Budget | None:
    """The budget to charge for the pod's eviction, None where it costs none.

    Raises Retry where the budget allows none now, Refused where there are several.
    """
    labels = labels_of(pod.metadata)
    covering = [
        budget
        for budget in budgets
        if budget.metadata.namespace == pod.metadata.namespace and selects(plain(budget.spec.selector), labels)
    ]
    if len(covering) > 1:
        raise Refused("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support")
    if not covering:
        return None
    [budget] = covering
    if not is_ready(pod) and budget.status.current_healthy >= budget.status.desired_healthy > 0:
        return None  # IfHealthyBudget: a pod that is not ready costs the budget nothing
    if budget.status.disruptions_allowed < 1:
        raise Retry("Cannot evict pod as it would violate the pod's disruption budget.", EVICTION_RETRY)
    return budget
