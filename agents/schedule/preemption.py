"""Which pods wait only because nobody is preempted: preemption itself is out of scope.

In: a snapshot and the pods that wait. Out: those of higher priority than some pod on a node that is refused for nothing
but what runs there.
"""

from collections.abc import Iterable

import numpy as np

from underhost.agents.compiled.model import Model
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.reader import PendingPod
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import UNSCHEDULABLE
from underhost.agents.schedule.prepared import Plan, Plans
from underhost.agents.site.snapshot import Snapshot

_SHOWN = 3


def note(snapshot: Snapshot, model: Model, waiting: Iterable[str]) -> str | None:
    """One line about the pods that preemption might place, None where there are none."""
    found = might_preempt(snapshot, model, waiting)
    if not found:
        return None
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    what = "pods of lower priority run on nodes that are refused only for what runs there"
    return f"preemption is not considered: {what}, for {', '.join(found[:_SHOWN])}{more}"


def might_preempt(snapshot: Snapshot, model: Model, waiting: Iterable[str]) -> list[str]:
    """The pods (`namespace/name`) that evicting pods of lower priority might let in, sorted. Raises BadObjectError."""
    names = set(waiting)
    lowest = _lowest(snapshot, model)
    pods = [pod for pod in model.pending if pod.key in names and not pod.gates and (lowest < pod.priority).any()]
    plans, known, found = Plans(State(model)), {}, []
    for pod in pods:
        if snapshot.pods[pod.key].spec.preemption_policy == "Never":
            continue
        key = (pod.cls, pod.request, pod.priority)
        if key not in known:
            known[key] = _might(plans.of(pod.cls), model, pod, lowest)
        if known[key]:
            found.append(pod.key)
    return sorted(found)


def _lowest(snapshot: Snapshot, model: Model) -> IntArray:
    """int64[N], the lowest priority of the pods on each node."""
    lowest: IntArray = np.full(len(model.nodes), np.iinfo(np.int64).max)
    priorities = [snapshot.pods[key].spec.priority or 0 for key in model.running.keys]
    np.minimum.at(lowest, model.running.nodes, priorities)
    return lowest


def _might(plan: Plan, model: Model, pod: PendingPod, lowest: IntArray) -> bool:
    """Whether some node with a pod of lower priority is refused, and only by rules that what runs there can change."""
    if plan.whole is not None:
        return False
    nodes, request = np.flatnonzero(lowest < pod.priority), model.requests[pod.request]
    refused, fixed = np.zeros(len(nodes), bool), np.zeros(len(nodes), bool)
    for named in plan.rules:
        codes = named.prepared.refuse(request, nodes)
        if codes is not None:
            for at in np.flatnonzero((codes > 0) & ~fixed).tolist():
                refused[at] = True
                fixed[at] = named.prepared.explain(int(codes[at]), request, int(nodes[at])).code != UNSCHEDULABLE
    return bool((refused & ~fixed).any())
