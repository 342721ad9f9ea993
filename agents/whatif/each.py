"""The N+1 question: what follows when each host, or each node, fails alone.

In: a snapshot and options. Out: a `Target` document for each, the worst first, and the table of them. Several processes
may try them side by side.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from underhost.agents.evaluate import tables
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.progress import told
from underhost.agents.site.owners import FINISHED, pinned
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.acts import take
from underhost.agents.whatif.outcome import Before, outcome
from underhost.agents.whatif.plan import NO_MANIFESTS
from underhost.agents.whatif.processes import shared_out
from underhost.agents.whatif.steps import HOST, Fail
from underhost.agents.whatif.world import NO_HOST, World
from underhost.schemas import frames as fr
from underhost.schemas.documents import Target, WhatIf, WhatIfList
from underhost.schemas.errors import InputError
from underhost.schemas.manifests import Manifest
from underhost.schemas.severities import SEVERITIES
from underhost.schemas.vsphere import CONNECTED

if TYPE_CHECKING:
    import polars as pl

_WORST = (fr.PENDING, *SEVERITIES, fr.MOVES, fr.PODS_COUNT)
"""Columns of the N+1 table: the first in which two targets differ says which is worse, the one with more."""


def each(
    snapshot: Snapshot,
    options: Options,
    kind: str,
    *,
    ha: bool = True,
    others: Mapping[str, Manifest] = NO_MANIFESTS,
    evaluator: Evaluator | None = None,
    processes: int = 1,
) -> list[Target]:
    """Every host (every node) fails, each alone; the worst first. Hosts without a node are left out.

    `evaluator` has tried other plans before: the site is compiled already. `processes` try them side by side; see
    `processes.py` for who may ask for more than one. Raises InputError where no host is known, BadObjectError.
    """
    start = World.at_rest(snapshot, evaluator or Evaluator(options), others)
    start.evaluator.state(start.snapshot)  # compiled here, and not once in each process
    found = list(shared_out(_Trials(start, kind, ha, _pod_counts(start.snapshot)).share, processes))
    most_first = [True] * len(_WORST) + [False]
    worst = table(found).with_row_index(fr.ROW).sort(*_WORST, fr.TARGET, descending=most_first, maintain_order=True)
    return [found[row] for row in worst[fr.ROW]]


@dataclass(frozen=True)
class _Trials:
    """The site before anything fails, with its pods by node, and what is to fail."""

    start: World
    kind: str
    ha: bool
    counts: Counter[str]

    def share(self, share: int, shares: int) -> Iterator[Target]:
        """So much of the targets fails, one after another. Raises InputError, BadObjectError."""
        start = self.start
        before = Before(start.evaluator.update(start.snapshot), start.snapshot)
        nodes_on = _hosts(start) if self.kind == HOST else {name: [name] for name in start.snapshot.nodes}
        for ref, nodes in told(f"each {self.kind} fails", list(nodes_on.items())[share::shares], shares):
            world = start.fork()
            take(world, Fail((f"{self.kind}/{ref}",), self.ha))
            document = outcome(world, before)
            known = start.snapshot.hosts[ref].name if self.kind == HOST else ref
            parts = {name: getattr(document, name) for name in WhatIf.__struct_fields__}
            pods = sum(self.counts[node] for node in nodes)
            yield Target(**parts, target=f"{self.kind}/{known}", nodes=nodes, pods=pods)


def listed(targets: list[Target]) -> WhatIfList:
    """The document of all; what one of them leaves out, each does."""
    return WhatIfList(items=targets, not_judged=targets[0].not_judged if targets else [])


def table(targets: Sequence[Target]) -> "pl.DataFrame":
    """The N+1 table: a row for each target, in their order."""
    rows = []
    for one in targets:
        counts = Counter(finding.severity for finding in one.new_findings)
        rows.append(
            (
                one.target,
                one.nodes,
                one.pods,
                len(one.vm_moves),
                len(one.moves),
                len(one.pending),
                *(counts[severity] for severity in SEVERITIES),
            )
        )
    return fr.TARGETS.rows(rows)


def _hosts(world: World) -> dict[str, list[str]]:
    """The nodes of every connected host that has any, by the host's id. Raises InputError, BadObjectError."""
    snapshot = world.snapshot
    if not snapshot.hosts:
        raise InputError(f"--each host: {NO_HOST}")
    hosts, nodes = tables.hosts(snapshot), tables.nodes(snapshot, world.evaluator.state(snapshot).model)
    connected = hosts.filter(hosts[fr.STATE] == CONNECTED)
    on = nodes.join(connected, left_on=fr.HOST, right_on=fr.ID, how="semi").group_by(fr.HOST).agg(fr.NAME)
    return dict(on.sort(fr.HOST).iter_rows())


def _pod_counts(snapshot: Snapshot) -> Counter[str]:
    """Pods by node, without those that belong to it."""
    pods = snapshot.pods.values()
    return Counter(pod.spec.node_name for pod in pods if pod.status.phase not in FINISHED and not pinned(pod))
