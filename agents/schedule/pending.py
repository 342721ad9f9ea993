"""Where the pending pods go: the answer of `underhost schedule`, and the decisions that the pipeline binds by.

In: a snapshot and options. Out: a `Placements` document, or `PodDecision`s. The order is the scheduler's: priority,
then creation time, then the order of the input.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from underhost.agents.compiled.model import Model, compile
from underhost.agents.compiled.reader import PendingPod
from underhost.agents.compiled.state import State
from underhost.agents.schedule.loop import Decision, Loop
from underhost.agents.schedule.nominations import Nominations
from underhost.agents.schedule.progress import told
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Placements


@dataclass(frozen=True)
class PodDecision:
    """A decision for one pending pod.

    Attributes:
        pod: `namespace/name`. uid: of the pod. node: its name, or None while the pod waits.
        total: the weighted score; None where the pod waits or its nominated node was taken unscored.
        physical_conflicts: pods that the node's ESXi host brings too near.
        failed: nodes by the first failing rule's reasons; empty where the pod is placed.
    """

    pod: str
    uid: str
    node: str | None
    total: int | None = None
    physical_conflicts: int = 0
    failed: dict[str, int] = field(default_factory=dict)


def decide(
    snapshot: Snapshot, options: Options, assumed: Mapping[str, str] | None = None, state: State | None = None
) -> list[PodDecision]:
    """The decisions in queue order, for the pending pods of `options.scheduler_names` that are not being deleted.

    `assumed` maps `namespace/name` of pods already ordered to a node, and not yet seen there, to the node: they count
    as running there (nowhere, if there is no such node) and are not decided again. A gated pod waits with its gate as
    reason and 0 nodes. `state` is that of the compiled snapshot, where the caller has it: the pods that are placed are
    added to it.
    Raises BadObjectError.
    """
    state = State(compile(snapshot, options)) if state is None else state
    return [_named(state.model, pod, decision) for pod, decision in place_all(state, assumed)]


def place_all(state: State, assumed: Mapping[str, str] | None = None) -> list[tuple[PendingPod, Decision]]:
    """Each pod that is to be placed, in queue order, with its decision; `assumed` and `state` as in `decide`."""
    model, assumed = state.model, assumed or {}
    waiting, placed, position = [], [], model.nodes.index.get
    for pod in model.pending:
        name = assumed.get(pod.key)
        if name is None:
            waiting.append(pod)
        elif (node := position(name, -1)) >= 0:
            placed.append((pod.cls, pod.request, node))
    state.add_all(placed)
    ours = [pod for pod in waiting if pod.scheduler in model.options.scheduler_names]
    loop = Loop(state, Nominations(state, ours))
    queue = sorted((pod for pod in ours if not pod.terminating), key=lambda pod: pod.queue_key)
    return [(pod, loop.place(pod)) for pod in told("placing pods", queue)]


def _named(model: Model, pod: PendingPod, decision: Decision) -> PodDecision:
    return PodDecision(
        pod=pod.key,
        uid=pod.uid,
        node=None if decision.node is None else model.nodes.names[decision.node],
        total=decision.total,
        physical_conflicts=decision.physical_conflicts,
        failed=decision.failed,
    )


def schedule(snapshot: Snapshot, options: Options, model: Model | None = None) -> Placements:
    """Every pending pod of `options.scheduler_names` placed, each placement assumed before the next.

    `model` is the compiled snapshot, where the caller has it. Raises BadObjectError.
    """
    decisions = decide(snapshot, options, None, None if model is None else State(model))
    return Placements(
        placements={decision.pod: decision.node for decision in decisions},
        order=[decision.pod for decision in decisions],
        failed={decision.pod: decision.failed for decision in decisions if decision.node is None},
    )
