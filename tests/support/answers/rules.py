"""What a rule says of a pod that waits: which nodes it refuses and why, and how it scores the others."""

from underhost.agents.schedule.explain import explain
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import NodeVerdict, PodVerdict


def verdict(snapshot: Snapshot, pod: str, options: Options | None = None) -> PodVerdict:
    """The explanation of one pod, `shop/NAME` where no namespace is given."""
    key = pod if "/" in pod else f"shop/{pod}"
    return explain(snapshot, options or Options(), [key]).pods[key]


def refused(snapshot: Snapshot, pod: str, rule: str, options: Options | None = None) -> dict[str, list[str]]:
    """The nodes that the rule refuses for the pod, with its reasons."""
    found = verdict(snapshot, pod, options).nodes
    return {name: one.failing[rule] for name, one in sorted(found.items()) if rule in one.failing}


def scores(snapshot: Snapshot, pod: str, rule: str) -> dict[str, int]:
    """The rule's scores on the feasible nodes; a rule that upstream skips is absent."""
    found = verdict(snapshot, pod).nodes
    return {name: _scores(one)[rule] for name, one in sorted(found.items()) if one.feasible and rule in _scores(one)}


def _scores(one: NodeVerdict) -> dict[str, int]:
    return one.scores if isinstance(one.scores, dict) else {}
