"""What the judges judge: a snapshot, the same compiled, and the counters over it."""

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
