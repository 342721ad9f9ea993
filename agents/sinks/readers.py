"""What who reads one namespace may be told of pods: the names of its own, and how many others there are.

In: pods as `namespace/name`, or a finding. Out: those of the namespace, and a phrase for the rest; the pods whose
people are told of the finding. Events are read by namespace: no tenant learns from them what others run, and where.
"""

from collections.abc import Iterable

from underhost.agents.evaluate.findings import NAMESPACE
from underhost.schemas.records import FindingEvent, pods_named


def told_pods(row: FindingEvent) -> list[str]:
    """The pods whose people are told of a finding: of a rule of one namespace only that one's."""
    mine = namespace_of(row)
    return [pod for pod in pods_named(row) if not mine or pod.startswith(f"{mine}/")]


def namespace_of(row: FindingEvent) -> str:
    """The namespace whose rule a finding is of; "" of a rule that is no namespace's."""
    object_ = row.object or ""
    return object_.removeprefix(NAMESPACE) if object_.startswith(NAMESPACE) else ""


def own_and_others(pods: Iterable[str], namespace: str) -> tuple[list[str], str]:
    """The pods of the namespace, and the others as `2 pods of other namespaces`; "" where there are none."""
    pods = list(pods)
    own = [pod for pod in pods if pod.partition("/")[0] == namespace]
    others = len(pods) - len(own)
    if others == 1:
        return own, "1 pod of another namespace"
    return own, f"{others} pods of other namespaces" if others else ""
