"""The simulated disruption controller: what each budget allows now, as the real one computes it.

In: budgets, pods and the replicas their owners ask for. Out: the budgets' status.
"""

from collections.abc import Mapping
from math import ceil

import msgspec

from underhost.schemas.kubernetes import Budget, BudgetStatus, Pod
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import is_ready, labels_of, plain, selects


def update_budgets(cluster: SimulatedKubernetes, owner_of: Mapping[str, object], replicas: Mapping[str, int]) -> None:
    """Write the status of every budget.

    Args:
        owner_of: the owner of each pod, by `namespace/name`.
        replicas: what the owner of each pod asks for.
    """
    pods = [(name, pod, labels_of(pod.metadata)) for name, pod in cluster.pods().items()]
    for budget in cluster.budgets():
        namespace, selector = budget.metadata.namespace, plain(budget.spec.selector)
        matched = [
            (name, pod)
            for name, pod, labels in pods
            if pod.metadata.namespace == namespace and selects(selector, labels)
        ]
        wanted = {owner_of[name]: replicas[name] for name, _ in matched if name in owner_of}
        cluster.update(msgspec.structs.replace(budget, status=_status(budget, matched, sum(wanted.values()))))


def _status(budget: Budget, matched: list[tuple[str, Pod]], wanted: int) -> BudgetStatus:
    """A number as minimum is counted against the pods, all else against the replicas that the owners ask for."""
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if isinstance(least, int):
        expected, desired = len(matched), least
    elif least is not None:
        expected, desired = wanted, _share(least, wanted)
    else:
        expected, desired = wanted, max(0, wanted - _share(most if most is not None else 0, wanted))
    healthy = sum(is_ready(pod) for _, pod in matched)
    return BudgetStatus(
        observed_generation=budget.metadata.generation,
        disruptions_allowed=max(0, healthy - desired) if expected else 0,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
    )


def _share(value: int | str, of: int) -> int:
    """A number, or a percentage of `of` rounded up."""
    return value if isinstance(value, int) else ceil(of * int(value.rstrip("%")) / 100)
