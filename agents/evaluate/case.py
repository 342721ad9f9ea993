"""What the judges judge: a snapshot, the same compiled, and the counters over it."""

from collections.abc import Collection
from typing import NamedTuple

from underhost.agents.compiled.model import Model
from underhost.agents.compiled.state import State
from underhost.agents.site.snapshot import Snapshot


class Case(NamedTuple):
    """One site at one moment. `state` is that of the model, with the running pods and no others."""

    snapshot: Snapshot
    model: Model
    state: State

    def placed(self, pods: list[str]) -> list[str]:
        """Running pods as findings name them, each with its node."""
        return [f"{pod} (node {self.snapshot.pods[pod].spec.node_name})" for pod in pods]

    def classes_of(self, pods: Collection[str]) -> dict[str, int]:
        """The classes of these pods, which are bound, by a look at all pods."""
        running = self.model.running
        found = {pod.key: pod.cls for pod in self.model.unbound if pod.key in pods}
        placed = zip(running.keys, running.classes.tolist(), strict=True)
        found.update((key, cls) for key, cls in placed if key in pods)
        return found
