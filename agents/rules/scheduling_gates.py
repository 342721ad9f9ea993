"""SchedulingGates: a pod with gates is not tried at all.

The gate is judged before the pod enters the queue, not per node: explain judges a gated pod as if it had no gates.
"""

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import Prepared

NAME = "SchedulingGates"
WEIGHT = 0
REASON_GATED = "waiting for scheduling gates: [{}]"


def reason(gates: tuple[str, ...]) -> str:
    """Why a pod with these gates waits."""
    return REASON_GATED.format(" ".join(gates))


def prepare(state: State, cls: PodClass) -> Prepared | None:
    """Always None: no node is refused."""
    return None
