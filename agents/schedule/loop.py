"""The sequential loop: pods are placed one after another, each placement seen by the next.

In: a state and pending pods in queue order. Out: a `Decision` per pod. Nodes are sorted by name, so the first of the
highest totals is the smallest name. What a rule says is left to the rules.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from underhost.agents.compiled.domains import BoolArray, IndexArray
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.reader import PendingPod
from underhost.agents.compiled.state import State
from underhost.agents.rules import scheduling_gates
from underhost.agents.rules.rule import ScoringError
from underhost.agents.schedule.nominations import Nominations, refusals_at
from underhost.agents.schedule.prepared import ALL, Plan, Plans
from underhost.agents.site.requests import Request

_FEW = 24  # changed nodes up to which they are judged one by one rather than as arrays
_KEPT = 256  # requests whose node-local verdicts are kept: sites have a few sizes of pods, or all are different
_OUTWEIGHS = 1 << 32  # one conflict counts more than any total of scores
NO_NODES = "error: no nodes available to schedule pods"


@dataclass(slots=True)
class Decision:
    """Where a pod goes. `node` is None while it waits; `failed` then counts nodes by the first failing rule's reasons.

    `total` is None where the node was not scored (a nominated node is taken as it is).
    """

    node: int | None
    total: int | None = None
    physical_conflicts: int = 0
    failed: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Local:
    """What the node-local rules say for a request: bool[N] good nodes, int64[N] weighted scores, as of `log[:upto]`."""

    good: BoolArray
    scores: IntArray
    upto: int


class Loop:
    """Places pods on a state. `nominations` are those of the pods that wait."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state, self._nominations = state, nominations
        self._plans = Plans(state)
        self._locals: dict[int, _Local] = {}
        self._refused: dict[tuple[int, int], tuple[int, Decision]] = {}

    def place(self, pod: PendingPod) -> Decision:
        """Decide one pod and, if it fits somewhere, add it to the state."""
        if pod.gates:
            return Decision(None, failed={scheduling_gates.reason(pod.gates): 0})
        if not len(self._state.model.nodes):
            return Decision(None, failed={NO_NODES: 0})
        decision = self._decide_once(pod)
        if decision.node is not None:
            if self._nominations:
                self._nominations.drop(pod)
            self._state.add(pod.cls, pod.request, decision.node)
            for named in self._plans.of(pod.cls).reserving:
                named.prepared.reserve(decision.node)
        return decision

    def _decide_once(self, pod: PendingPod) -> Decision:
        """A pod equal to one that waits, with nothing placed in between, waits for the same reasons."""
        if self._nominations or pod.nominated:
            return self._decide(pod)
        equal, so_far = (pod.cls, pod.request), len(self._state.log)
        upto, refused = self._refused.get(equal, (-1, None))
        if refused is not None and upto == so_far:
            return replace(refused, failed=dict(refused.failed))
        decision = self._decide(pod)
        if decision.node is None:
            self._refused[equal] = so_far, decision
        return decision

    def _decide(self, pod: PendingPod) -> Decision:
        plan, request = self._plans.of(pod.cls), self._state.model.requests[pod.request]
        if plan.whole is not None:
            (reason,) = plan.whole.prepared.explain(self._whole_code(plan, request), request, 0).reasons
            return Decision(None, failed={reason: len(self._state.model.nodes)})
        rivals = self._nominations.rivals(pod.uid, pod.priority) if self._nominations else {}
        local = self._local(plan, request)
        mask = local.good.copy()
        if plan.static_mask is not None:
            mask &= plan.static_mask
        for named in plan.dynamic:
            named.prepared.exclude(request, mask)
        for node, others in rivals.items():
            if mask[node] and self._nominations.refusals(plan, pod.request, node, others):
                mask[node] = False
        nominated = self._state.model.nodes.index.get(pod.nominated, -1) if pod.nominated else -1
        if nominated >= 0 and mask[nominated]:
            return Decision(nominated, None, self._conflicts(plan, nominated))
        feasible: IndexArray = mask.nonzero()[0]
        if not len(feasible):
            return Decision(None, failed=self._failed(plan, pod, request, rivals))
        return self._best(plan, request, feasible, local)

    @staticmethod
    def _whole_code(plan: Plan, request: Request) -> int:
        assert plan.whole is not None
        codes = plan.whole.prepared.refuse(request, np.zeros(1, np.intp))
        assert codes is not None
        return int(codes[0])

    def _local(self, plan: Plan, request: Request) -> _Local:
        """The node-local rules' verdict, brought up to date for the nodes whose load has changed."""
        log = self._state.log
        local = self._locals.get(request.id)
        if local is None:
            if len(self._locals) >= _KEPT:
                del self._locals[next(iter(self._locals))]
            size = len(self._state.model.nodes)
            local = self._locals[request.id] = _Local(np.zeros(size, bool), np.zeros(size, np.int64), len(log))
            local.good[:], local.scores[:] = self._judge_local(plan, request, np.arange(size))
        elif local.upto < len(log):
            changed = set(log[local.upto :])
            if len(changed) <= _FEW:
                self._judge_few(plan, request, changed, local)
            else:
                nodes: IndexArray = np.array(sorted(changed), np.intp)
                local.good[nodes], local.scores[nodes] = self._judge_local(plan, request, nodes)
            local.upto = len(log)
        return local

    @staticmethod
    def _judge_few(plan: Plan, request: Request, nodes: set[int], local: _Local) -> None:
        rules = [(named.prepared.at, named.weight) for named in plan.local]
        for node in nodes:
            good, total = True, 0
            for at, weight in rules:
                fits, score = at(request, node)
                good = good and fits
                total += weight * score
            local.good[node] = good
            local.scores[node] = total

    @staticmethod
    def _judge_local(plan: Plan, request: Request, nodes: IndexArray) -> tuple[BoolArray, IntArray]:
        good, total = np.ones(len(nodes), bool), np.zeros(len(nodes), np.int64)
        for named in plan.local:
            codes = named.prepared.refuse(request, nodes)
            if codes is not None:
                good &= codes == 0
            score = named.prepared.score(request, nodes)
            if score is not None:
                total += named.weight * score
        return good, total

    def _best(self, plan: Plan, request: Request, feasible: IndexArray, local: _Local) -> Decision:
        """Fewest physical conflicts, then the highest total, then the smallest name."""
        conflicts = plan.conflicts(ALL)
        order = (local.scores if conflicts is None else local.scores - conflicts * _OUTWEIGHS)[feasible]
        everywhere = 0
        try:
            for named in plan.scored:
                score = None if named.prepared.node_local else named.prepared.score(request, feasible)
                if isinstance(score, int):
                    everywhere += named.weight * score
                elif score is not None:
                    order += named.weight * score
        except ScoringError as error:
            if len(feasible) > 1:  # upstream does not score the only feasible node
                return Decision(None, failed={f"error: {error}": 0})
            return Decision(int(feasible[0]), None, self._conflicts(plan, int(feasible[0])))
        best = int(order.argmax())
        node, shared = int(feasible[best]), 0
        if conflicts is not None:
            shared = int(conflicts[node])
        return Decision(node, int(order[best]) + shared * _OUTWEIGHS + everywhere, shared)

    @staticmethod
    def _conflicts(plan: Plan, node: int) -> int:
        counted = plan.conflicts(np.array([node], np.intp))
        return 0 if counted is None else int(counted[0])

    def _failed(
        self, plan: Plan, pod: PendingPod, request: Request, rivals: dict[int, list[PendingPod]]
    ) -> dict[str, int]:
        """Nodes by the reasons of the first rule that refuses; for a nominated node by the pass that refuses first."""
        failed: dict[str, int] = {}
        left = np.ones(len(self._state.model.nodes), bool)
        for node, others in rivals.items():
            left[node] = False
            refusals = self._nominations.refusals(plan, pod.request, node, others)
            refusals = refusals or refusals_at(self._state, plan, pod.request, node)
            for reason in next(iter(refusals.values())).reasons:
                failed[reason] = failed.get(reason, 0) + 1
        for named in plan.rules:
            nodes: IndexArray = np.flatnonzero(left)
            if not len(nodes):
                break
            codes = named.prepared.refuse(request, nodes)
            if codes is not None and codes.any():
                refused = codes > 0
                left[nodes[refused]] = False
                for reason, count in named.prepared.tally(codes[refused], request, nodes[refused]).items():
                    failed[reason] = failed.get(reason, 0) + count
        return dict(sorted(failed.items()))
