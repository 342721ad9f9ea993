"""What the running pods are judged by: a model with its counters, and which pods a NoExecute taint evicts.

In: a model. Out: a state whose counters are built on first use and kept. The verdicts are left to the rules.
"""

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.matching import untolerated_mask
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.state import State
from underhost.agents.site import terms


class Judge:
    """Judges the running pods of one model. Counters are built on first use and kept."""

    def __init__(self, model: Model, state: State | None = None) -> None:
        """`state` is the model's, where the caller has one."""
        self.model = model
        self.state = State(model) if state is None else state

    def is_evicted(self, cls: PodClass, node: int) -> bool:
        """Whether a pod of the class is in `evicted` on this node."""
        mask = untolerated_mask(self.state, cls, (terms.NO_EXECUTE,))
        return mask is not None and bool(mask[node])

    def evicted(self) -> IndexArray:
        """The running pods on nodes with a NoExecute taint that no toleration of theirs covers, even for a time."""
        running = self.model.running
        found = []
        for cls in self.model.classes:
            mask = untolerated_mask(self.state, cls, (terms.NO_EXECUTE,))
            if mask is not None:
                pods = self.model.pods_of(cls.id)
                found.append(pods[mask[running.nodes[pods]]])
        evicted: IndexArray = np.sort(np.concatenate(found)) if found else np.zeros(0, np.intp)
        return evicted
