"""What stands in the way of pods that wait, for their Events: asked of the rules only when somebody is to be told.

In: a snapshot, and the pods that are told of. Out: a sentence for each, or none.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.obstacles import sentence
from underhost.agents.site.snapshot import Options, Snapshot

if TYPE_CHECKING:
    from underhost.agents.evaluate.evaluator import SiteEvaluator

JUDGED = 500
"""Nodes that are judged at one time, over all pods: some tenths of a second. Larger sites have `underhost explain`."""
MOST = 4
"""Different pods asked about at one time: of each, every rule is asked about every node, in the evaluation's thread."""
LONGEST = 600
"""Characters of a sentence: the reasons come first, and a note has 1000 in all."""


class InTheWay:
    """Asks the rules of one site, over the site that its evaluator has compiled."""

    def __init__(self, evaluator: "SiteEvaluator", options: Options) -> None:
        self._evaluator, self._options = evaluator, options

    def of(self, snapshot: Snapshot, pods: Sequence[str]) -> Mapping[str, str]:
        """By pod; equal pods are asked about once, and of more different ones than are asked about nothing is said.

        Raises BadObjectError.
        """
        state = self._evaluator.state(snapshot)
        waiting = {pod.key: (pod.cls, pod.request, pod.priority) for pod in state.model.pending}
        most = min(MOST, JUDGED // max(1, len(state.model.nodes)))
        first: dict[tuple[int, int, int], str] = {}
        for pod in pods:
            if pod in waiting and len(first) < most:
                first.setdefault(waiting[pod], pod)
        if not first:
            return {}
        with state.trial():
            verdicts = explain(snapshot, self._options, list(first.values()), state=state).pods
        alike = {pod: first[waiting[pod]] for pod in pods if waiting.get(pod) in first}
        return {pod: sentence(pod, verdicts[one].nodes, LONGEST) for pod, one in alike.items()}
