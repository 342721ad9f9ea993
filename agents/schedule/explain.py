"""Why is my pod there, or nowhere: every rule's word on every node.

In: a snapshot, options and the pods asked about. Out: an `Explanation` document. Each pod is judged alone against the
running pods; a running pod as if it were taken out first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import UNSET, UnsetType

from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.model import Model, PendingPod, compile
from underhost.agents.compiled.occupants import Occupants
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import Refusal, ScoringError
from underhost.agents.schedule.nominations import Nominations
from underhost.agents.schedule.prepared import ALL, Plan, Plans
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Because, Explanation, NodeVerdict, PodVerdict
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean


@dataclass(frozen=True)
class _Asked:
    """A pod to explain; `node` is where it runs, -1 for nowhere; `absent` the node that is not there."""

    key: str
    cls: int
    request: int
    uid: str
    priority: int
    gated: bool
    node: int
    absent: str = ""


def explain(
    snapshot: Snapshot,
    options: Options,
    pods: Sequence[str] | None = None,
    model: Model | None = None,
    state: State | None = None,
) -> Explanation:
    """The verdicts on these pods (`namespace/name`), or on every pending pod, whoever schedules it.

    `model` is the compiled snapshot, where the caller has it; or `state`, in a trial, with its counters.
    Raises BadObjectError for a wrong object, InputError for pods that are not in the snapshot (or are finished).
    """
    if state is None:
        state = State(compile(snapshot, options) if model is None else model)
    model = state.model
    names = [pod.key for pod in model.pending] if pods is None else list(dict.fromkeys(pods))
    waiting = {pod.key: pod for pod in (*model.unbound, *model.pending)}
    asked = {name: _find(snapshot, model, waiting, name) for name in names}
    missing = [name for name, found in asked.items() if found is None]
    if missing:
        known = [name for name, pod in snapshot.pods.items() if pod.status.phase not in FINISHED]
        raise InputError(*(f"pod {name}: not in the input, or finished{did_you_mean(name, known)}" for name in missing))
    ours = (pod for pod in model.pending if pod.scheduler in options.scheduler_names)
    explainer = _Explainer(state, Nominations(state, ours))
    return Explanation(pods={name: explainer.explain(found) for name, found in asked.items() if found is not None})


def _find(snapshot: Snapshot, model: Model, waiting: Mapping[str, PendingPod], name: str) -> _Asked | None:
    if name in waiting:
        pod = waiting[name]
        absent = snapshot.pods[name].spec.node_name
        return _Asked(name, pod.cls, pod.request, pod.uid, pod.priority, bool(pod.gates), -1, absent)
    at = model.running.at.get(name)
    if at is None:
        return None
    running, pod_object = model.running, snapshot.pods[name]
    uid = pod_object.metadata.uid or f"uid-{name}"
    cls, request, node = int(running.classes[at]), int(running.requests[at]), int(running.nodes[at])
    return _Asked(name, cls, request, uid, pod_object.spec.priority or 0, False, node)


class _Explainer:
    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state, self._nominations, self._plans = state, nominations, Plans(state)
        self._there = Occupants(state.model)

    def explain(self, pod: _Asked) -> PodVerdict:
        if pod.node < 0:
            return self._verdict(pod, self._there)
        self._state.add(pod.cls, pod.request, pod.node, -1)
        try:
            return self._verdict(pod, Occupants(self._state.model, away=(pod.key,)))
        finally:
            self._state.add(pod.cls, pod.request, pod.node)

    def _verdict(self, pod: _Asked, there: Occupants) -> PodVerdict:
        model = self._state.model
        plan = Plan(self._state, model.classes[pod.cls].bound_to(pod.absent)) if pod.absent else self._plans.of(pod.cls)
        failing = self._failing(pod, plan, there)
        feasible: IndexArray = np.array([node for node, refusals in enumerate(failing) if not refusals], np.intp)
        scores: list[dict[str, int]] = [{} for _ in feasible]
        totals = np.zeros(len(feasible), np.int64)
        error: str | UnsetType = UNSET
        try:
            for name, weight, score in plan.scores(model.requests[pod.request], feasible) if len(feasible) else ():
                each = np.broadcast_to(score, feasible.shape)
                totals += weight * each
                for at, value in enumerate(each.tolist()):
                    scores[at][name] = value
        except ScoringError as failure:
            error = str(failure)
        conflicts = plan.conflicts(feasible) if len(feasible) else None
        verdicts: dict[str, NodeVerdict] = {}
        place = dict(zip(feasible.tolist(), range(len(feasible)), strict=True))
        for node, refusals in enumerate(failing):
            if node not in place:
                verdicts[model.nodes.names[node]] = _refused(refusals)
            else:
                at = place[node]
                shared = 0 if conflicts is None else int(conflicts[at])
                verdicts[model.nodes.names[node]] = NodeVerdict(
                    feasible=True,
                    scores=scores[at] if error is UNSET else UNSET,
                    total=int(totals[at]) if error is UNSET else UNSET,
                    because=self._brought_together(plan, pod, node, there) if shared else UNSET,
                    physical_conflicts=shared,
                )
        return PodVerdict(nodes=verdicts, gated=True if pod.gated else UNSET, error=error)

    def _brought_together(self, plan: Plan, pod: _Asked, node: int, there: Occupants) -> dict[str, list[Because]]:
        """Of a node that takes the pod all the same, whom its host brings too near."""
        request = self._state.model.requests[pod.request]
        return {named.name: list(named.prepared.because(0, request, node, there)) for named in plan.preferring}

    def _failing(self, pod: _Asked, plan: Plan, there: Occupants) -> list[dict[str, Refusal]]:
        """Per node, every rule that refuses it, each judged by itself; a nominated node as `Nominations` says first."""
        model = self._state.model
        request = model.requests[pod.request]
        failing: list[dict[str, Refusal]] = [{} for _ in model.nodes.names]
        rivals = self._nominations.rivals(pod.uid, pod.priority)
        for node, others in rivals.items():
            failing[node] = self._nominations.refusals(plan, pod.request, node, others, there)
        for named in plan.rules:
            codes = named.prepared.refuse(request, ALL)
            if codes is not None:
                for node in np.flatnonzero(codes).tolist():
                    if named.name not in failing[node]:
                        code = int(codes[node])
                        failing[node][named.name] = named.prepared.explain_fully(code, request, node, there)
        return failing


def _refused(refusals: dict[str, Refusal]) -> NodeVerdict:
    return NodeVerdict(
        feasible=False,
        failing={name: list(refusal.reasons) for name, refusal in refusals.items()},
        code={name: refusal.code for name, refusal in refusals.items()},
        because={name: list(refusal.because) for name, refusal in refusals.items() if refusal.because} or UNSET,
    )
