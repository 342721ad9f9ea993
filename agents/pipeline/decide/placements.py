"""What has been decided for pending pods: each decision published once, and counted as done until it is seen or fails.

In: the evaluator's decisions and the binder's outcomes. Out: records of `placements`, and the assumed placements that
the next evaluation starts from. Memory of one site; what was published is read from the table once, when the site
becomes ready.

This is the binder's queue. Its order is the evaluator's, priority and age, over all pods that wait at once:

- A pod that the rules refuse is judged again whenever the picture changes, whatever in it (a node, a pod that goes, a
  label), and at no other time: nothing else can help it.
- A binding that was refused (the pod or its node is not what it was) frees what it held. The pod is decided again in
  the next cycle, then after a second, doubled each time. While it waits it holds nothing, so that it starves nobody.
- A binding that failed may have been done all the same. It holds its node's room until it is known: after a second,
  doubled each time, the very same order is given again, or the pod is decided anew where the node has changed.
- An order of an earlier run that has no outcome counts as failed after a minute: a worker that stood by may have taken
  its record from the topic, and have ended before it decided again.
- No assumption ends by a clock: a forgotten assumption is capacity counted twice.
"""

import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from underhost.agents.pipeline.decisions import PlacementChange
from underhost.agents.sinks.bindings import action_of
from underhost.agents.sinks.orders import DRY_RUN, FAILED, FAILURES, REFUSED, UNANSWERED
from underhost.agents.site import terms
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.fault import Fault
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.records import Outcome, Placement
from underhost.schemas.topics import PLACEMENTS
from underhost.streams.derived import outgoing, pod_key

if TYPE_CHECKING:
    from underhost.agents.schedule.pending import PodDecision

log = logging.getLogger(__name__)
FIRST_PAUSE = 1.0
LONGEST_PAUSE: Mapping[str, float] = {FAILED: 10.0, REFUSED: 60.0}
"""Seconds before a binding is tried again, doubled each time: up to kube-scheduler's own limit where it failed (a
server that is away comes back), longer where it was refused (what has outlasted some tries rarely goes by itself)."""
FIRST_TELLING, LONGEST_TELLING = 1.0, 60.0
"""Seconds after which other counts of the same reasons are told, doubled each time: a thousand pods that wait in a busy
cluster would fill the topic with numbers. Other reasons are told at once."""
REMEMBERED = 5_000
"""Pods seen bound that nobody has asked about."""
NOWHERE = ""
"""The node of a pod that is not to be decided now: it counts nowhere."""


@dataclass
class _Order:
    """A published decision.

    An order of an earlier run is not assumed before this run has come to it, too: the picture may be another by now.

    Attributes:
        basis: the node as it was when this was decided.
        result: failed or refused, "" while its binding is under way; `again` is when to try again, monotonic seconds.
        answered: whether any outcome has come. lost_at: when it counts as failed without one, monotonic seconds.
        told, pause: when its reasons were told, and how long their counts are not told after that; `withheld`: they are
            others now.
    """

    row: Placement
    earlier: bool = False
    basis: Node | None = None
    failures: int = 0
    result: str = ""
    again: float = 0.0
    answered: bool = False
    lost_at: float = math.inf
    told: float = 0.0
    pause: float = FIRST_TELLING
    withheld: bool = False
    id: str = field(default="", compare=False)

    @property
    def waits(self) -> bool:
        """Whether time alone can change what is to be done about it."""
        return bool(self.result) or self.withheld or self.lost_at < math.inf

    def fail(self, result: str, now: float) -> None:
        """It came to nothing, as far as is known."""
        self.result, self.failures, self.lost_at = result, self.failures + 1, math.inf
        self.again = now + _pause(result, self.failures)


class BindingQueue:
    """One site's decisions, as they were last published.

    Attributes:
        waiting: every pod that the last evaluation found no node for, with the reasons that are published of it.
        seated: pods that were seen bound by an order of this run, oldest first; whoever reads them takes them away.
    """

    def __init__(self, site: str, published: Iterable[Placement]) -> None:
        self._site = site
        self._orders = {row.pod: _Order(row, earlier=True) for row in published}
        # A burst has hundreds of orders under way, of which one picture changes few: only these are looked at.
        self._held: dict[str, str] = {}
        self._touched = dict.fromkeys(self._orders)
        self._timed: dict[str, _Order] = {}
        self._looked = float("-inf")
        self._snapshot = Snapshot()
        self._copies: bool | None = None
        self.waiting: dict[str, Placement] = {}
        self.seated: deque[Placement] = deque(maxlen=REMEMBERED)

    def assumed(self, snapshot: Snapshot, now: float) -> dict[str, str]:
        """Pod to node of every order that is under way, or to NOWHERE where a pod is not to be decided now.

        Orders for pods that are bound, gone or new are forgotten. `now` is monotonic seconds.
        """
        before, self._looked, self._snapshot = self._snapshot, now, snapshot
        for name in self._to_look_at(before, snapshot):
            order = self._orders.get(name)
            if order is not None and now >= order.lost_at:
                order.fail(FAILED, now)
            if order is not None and self._is_over(name, order):
                del self._orders[name]
                order = None
            where = None if order is None else self._stands(order, now)
            if where is None:
                self._held.pop(name, None)
            else:
                self._held[name] = where
            self._time(name)
        self._touched.clear()
        return dict(self._held)

    def _to_look_at(self, before: Snapshot, snapshot: Snapshot) -> Iterable[str]:
        """The pods whose orders may stand otherwise than at the last look."""
        nodes = changed_keys(before.nodes, snapshot.nodes)
        if any((node in before.nodes) != (node in snapshot.nodes) for node in nodes):
            return dict.fromkeys((*self._held, *self._orders))
        pods = (pod for pod in changed_keys(before.pods, snapshot.pods) if pod in self._orders)
        return dict.fromkeys((*self._touched, *self._timed, *pods))

    def _is_over(self, name: str, order: _Order) -> bool:
        """Whether its pod is bound, gone or new; one that was bound by this order is told of."""
        pod = self._snapshot.pods.get(name)
        if pod is not None and not pod.spec.node_name and pod.metadata.uid == order.row.uid:
            return False
        seated = pod is not None and (pod.metadata.uid, pod.spec.node_name) == (order.row.uid, order.row.node)
        if pod is not None and seated and not order.earlier:
            self.seated.append(order.row)
            self._look_for_labels(pod, order.row)
        return True

    def _stands(self, order: _Order, now: float) -> str | None:
        """The node that it holds room of, NOWHERE where the pod is not to be decided now, None where it is."""
        node, nodes = order.row.node, self._snapshot.nodes
        if node is None or order.earlier or node not in nodes:
            return None
        if order.result == REFUSED:
            return NOWHERE if now < order.again else None
        holds = order.result != FAILED or now < order.again or order.basis is nodes[node]
        return node if holds else None

    def _note(self, name: str) -> None:
        """An order has come, gone or changed: it is looked at again at the next look."""
        self._touched[name] = None
        self._time(name)

    def _time(self, name: str) -> None:
        """An order whose time may have come is looked at each time."""
        order = self._orders.get(name)
        if order is not None and order.waits:
            self._timed[name] = order
        else:
            self._timed.pop(name, None)

    def _look_for_labels(self, pod: Pod, row: Placement) -> None:
        """Whether the API server has copied the labels of the first binding that had some: this is said once."""
        if self._copies is not None or not row.labels:
            return
        with suppress(Fault):
            self._copies = row.labels.items() <= terms.labels(bytes(pod.metadata.labels)).items()
        if self._copies is False:
            log.warning(
                "site %s: the API server did not copy the labels of the binding of pod %s (%s): it is older than "
                "Kubernetes 1.35, or its feature PodTopologyLabelsAdmission is off. Pods are bound without them.",
                self._site,
                row.pod,
                ", ".join(sorted(row.labels)),
            )

    def overdue(self, now: float) -> list[Placement]:
        """The orders that failed, are assumed all the same, and are to be given again now."""
        nodes = self._snapshot.nodes
        return [
            msgspec.structs.replace(order.row, snapshot=dict(self._snapshot.offsets))
            for order in self._timed.values()
            if order.result == FAILED and now >= order.again and order.basis is nodes.get(order.row.node or "")
        ]

    def diff(self, decisions: Iterable[Placement], now: float) -> PlacementChange:
        """The decisions that are new; nothing is remembered before `commit`. `now` is monotonic seconds."""
        rows = sorted(decisions, key=lambda each: each.pod)
        changed = [row for row in rows if self._is_new(row, now)]
        for row in rows:
            self._time(row.pod)  # its counts may be withheld now
        new = {row.pod for row in changed}
        self.waiting = {
            row.pod: row if row.pod in new else self._orders[row.pod].row for row in rows if row.node is None
        }
        records = [outgoing(PLACEMENTS, pod_key(self._site, row.pod), row) for row in changed]
        orders = {row.pod: order for row in changed if (order := action_of(row, self._site)) is not None}
        confirmed = {row.pod: self._id(self._orders[row.pod]) for row in rows if row.pod not in new}
        return PlacementChange(changed, records, orders, confirmed)

    def _is_new(self, row: Placement, now: float) -> bool:
        order = self._orders.get(row.pod)
        if order is None or order.row.uid != row.uid or order.row.node != row.node:
            return True
        if order.result:
            return now >= order.again
        order.withheld = False
        if order.row.failed == row.failed:
            return False
        if order.row.failed.keys() != row.failed.keys() or now >= order.told + order.pause:
            return True
        order.withheld = True
        return False

    def commit(self, change: PlacementChange) -> None:
        """The records of this change are published."""
        for row in change.placements:
            before = self._orders.get(row.pod)
            order = self._orders[row.pod] = _Order(row, told=self._looked)
            order.id = change.orders[row.pod].id if row.pod in change.orders else ""
            order.basis = self._snapshot.nodes.get(row.node or "")
            self._note(row.pod)
            if before is not None and before.row.uid == row.uid:
                order.failures = before.failures
                if row.node is None and before.row.failed.keys() == row.failed.keys():
                    order.pause = min(LONGEST_TELLING, before.pause * 2)
        for pod in change.confirmed:
            order = self._orders[pod]
            if order.earlier:
                order.earlier, order.basis = False, self._snapshot.nodes.get(order.row.node or "")
                if order.row.node is not None and not order.answered:
                    order.lost_at = self._looked + UNANSWERED
                self._note(pod)

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of an order. What an earlier run only tried is ordered anew: this run may write."""
        pod = outcome.target.removeprefix("pod/")
        order = self._orders.get(pod)
        if order is None or order.row.node is None or order.result or outcome.id != self._id(order):
            return
        if order.earlier and outcome.result == DRY_RUN:
            del self._orders[pod]
        else:
            order.answered, order.lost_at = True, math.inf
            if outcome.result in FAILURES:
                order.fail(outcome.result, now)
            else:
                order.failures = 0
        self._note(pod)

    def uid_of(self, pod: str) -> str | None:
        """The uid of the pod that an order is under way for."""
        return self._orders[pod].row.uid if pod in self._orders else None

    def retry_at(self) -> float | None:
        """When there is something to decide though nothing has changed, in monotonic seconds."""
        tries = (order.again for order in self._timed.values() if order.result)
        tellings = (order.told + order.pause for order in self._timed.values() if order.withheld)
        losses = (order.lost_at for order in self._timed.values() if order.lost_at < math.inf)
        # What was due at the last look has been decided by it, or has come to nothing: it is no reason to look again.
        return min((at for at in (*tries, *losses, *tellings) if at > self._looked), default=None)

    def _id(self, order: _Order) -> str:
        """The id of the command that it is to the binder, which its outcome carries; "" while the pod waits."""
        if not order.id and (action := action_of(order.row, self._site)) is not None:
            order.id = action.id
        return order.id


def _pause(result: str, failures: int) -> float:
    """A refusal is answered at once the first time: what it says of the cluster the picture says by then, too."""
    doublings = failures - 1 if result == FAILED else failures - 2
    return 0.0 if doublings < 0 else min(LONGEST_PAUSE[result], FIRST_PAUSE * 2.0 ** min(doublings, 30))


def placement_of(decision: "PodDecision", offsets: Mapping[str, int], labels: Mapping[str, str]) -> Placement:
    """The record that says what was decided for a pending pod, from the snapshot with these offsets.

    `labels` are those that its binding hands over.
    """
    return Placement(
        pod=decision.pod,
        uid=decision.uid,
        node=decision.node,
        total=decision.total,
        physical_conflicts=decision.physical_conflicts,
        failed=dict(decision.failed),
        snapshot=dict(offsets),
        labels=dict(labels),
    )
