"""The pods that the binder is placing: from the moment their node is decided until the picture shows them on it.

In: placements as they are about to be published, and what became of their bindings. Out: those that are on their way,
for the scheduler extender, which must not give the same host to a pod of kube-scheduler's meanwhile.
"""

from collections.abc import Iterable, Mapping

from underhost.agents.sinks.orders import DONE, FAILED
from underhost.schemas.commands import BIND
from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Outcome, Placement

ON_ITS_WAY = DONE | {FAILED}
"""Results after which the pod is, or may be, on its node: a failure may have been none, and is tried again."""
MANY = 100
"""Placements that are remembered before anybody asks which of them are over."""


class BindingsInFlight:
    """The newest placement of each pod that is on its way."""

    def __init__(self) -> None:
        self._rows: dict[str, Placement] = {}
        self._look_at = MANY

    def decide(self, placements: Iterable[Placement], pods: Mapping[str, Pod]) -> None:
        """These are about to be published; `pods` is the picture that they were decided from."""
        if len(self._rows) > self._look_at:
            # Nobody may ask for a long time, and each pod that was ever bound would be remembered.
            self._look_at = max(MANY, 2 * len(self.shown(pods)))
        for row in placements:
            if row.node is None:
                self._rows.pop(row.pod, None)
            else:
                self._rows[row.pod] = row

    def observe(self, outcome: Outcome) -> None:
        """A command was answered: what was refused, or only tried, goes nowhere."""
        if outcome.kind == BIND and outcome.result not in ON_ITS_WAY:
            self._rows.pop(outcome.target.removeprefix("pod/"), None)

    def clear(self) -> None:
        """The site is not ours any more."""
        self._rows.clear()

    def shown(self, pods: Mapping[str, Pod]) -> Mapping[str, Placement]:
        """Those that the picture does not show on a node yet, by pod; whoever it does is forgotten."""
        for key, row in list(self._rows.items()):
            pod = pods.get(key)
            if pod is None or pod.metadata.uid != row.uid or pod.spec.node_name:
                del self._rows[key]
        return self._rows
