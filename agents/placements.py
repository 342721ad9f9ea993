"""What has been decided for pending pods: each decision published once, and counted as done until it is seen or fails.

In: the evaluator's decisions and the binder's outcomes. Out: records of `placements`, and the assumed placements that
the next evaluation starts from. Called by `decisions.py`. Memory of one site; what was published is read from the table
once, when the site becomes ready. No assumption ends by a clock: only the pod's own state, its node's end or a failed
outcome ends one, for a forgotten assumption is capacity counted twice.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from underhost.agents.engine.snapshot import Snapshot
from underhost.agents.records import outgoing, pod_key
from underhost.schemas.records import Outcome, Placement
from underhost.schemas.topics import PLACEMENTS
from underhost.streams.ports import Outgoing

FAILURES = frozenset({"failed", "refused"})
FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 60.0
"""Seconds before a pod whose binding failed is decided again; doubled at each failure."""


@dataclass(frozen=True)
class PlacementChange:
    """The placements to publish, their records, and the order ids, by pod, of those that were decided once more."""

    placements: list[Placement]
    records: list[Outgoing]
    confirmed: dict[str, str]


@dataclass
class _Order:
    """A published decision; `retry_at` (monotonic seconds) is set once its binding has failed.

    An order of an earlier run is not assumed before this run has come to it, too: the picture may be another by now.
    """

    row: Placement
    earlier: bool = False
    failures: int = 0
    retry_at: float | None = None


class Placements:
    """One site's decisions, as they were last published.

    `order_id` gives the id of the command that a placement is to the binder, which its outcome carries.
    """

    def __init__(self, site: str, published: Iterable[Placement], order_id: Callable[[Placement], str]) -> None:
        self._site, self._order_id = site, order_id
        self._orders = {row.pod: _Order(row, earlier=True) for row in published}

    def assumed(self, snapshot: Snapshot) -> dict[str, str]:
        """Pod to node of every order that is under way; orders for pods that are bound, gone or new are forgotten."""
        for name in list(self._orders):
            pod = snapshot.pods.get(name)
            if pod is None or pod.spec.node_name or pod.metadata.uid != self._orders[name].row.uid:
                del self._orders[name]
        return {
            name: order.row.node
            for name, order in sorted(self._orders.items())
            if order.row.node is not None
            and order.row.node in snapshot.nodes
            and order.retry_at is None
            and not order.earlier
        }

    def diff(self, decisions: Iterable[Placement], now: float) -> PlacementChange:
        """The decisions that are new; nothing is remembered before `commit`. `now` is monotonic seconds."""
        rows = sorted(decisions, key=lambda each: each.pod)
        changed = [row for row in rows if self._is_new(row, now)]
        new = {row.pod for row in changed}
        records = [outgoing(PLACEMENTS, pod_key(self._site, row.pod), row) for row in changed]
        confirmed = {row.pod: self._order_id(self._orders[row.pod].row) for row in rows if row.pod not in new}
        return PlacementChange(changed, records, confirmed)

    def _is_new(self, row: Placement, now: float) -> bool:
        order = self._orders.get(row.pod)
        if order is None or order.row.uid != row.uid:
            return True
        if order.retry_at is not None:
            return now >= order.retry_at
        return (order.row.node, order.row.failed) != (row.node, row.failed)

    def commit(self, change: PlacementChange) -> None:
        """The records of this change are published."""
        for row in change.placements:
            before = self._orders.get(row.pod)
            same_pod = before is not None and before.row.uid == row.uid
            failures = before.failures if before is not None and same_pod else 0
            self._orders[row.pod] = _Order(row, failures=failures)
        for pod in change.confirmed:
            self._orders[pod].earlier = False

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of an order: a failed one is assumed no longer and decided again after a while."""
        order = self._orders.get(outcome.target.removeprefix("pod/"))
        if order is None or order.row.node is None or outcome.id != self._order_id(order.row):
            return
        if outcome.result in FAILURES and order.retry_at is None:
            order.failures += 1
            order.retry_at = now + min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (order.failures - 1))

    def retry_at(self) -> float | None:
        """When the next failed order is due, in monotonic seconds."""
        return min((order.retry_at for order in self._orders.values() if order.retry_at is not None), default=None)
