"""What happens if: a plan of steps tried on a site, and what it leaves behind.

In: a snapshot, options, steps. Out: a `WhatIf` document; `each` tries the failure of every target alone and ranks them.
Nothing is written anywhere. The same evaluator places and judges as everywhere else, before and after, and a finding is
new where its id is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from underhost.agents.compiled.model import Compiler, Model
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.progress import told
from underhost.agents.site.owners import FINISHED, pinned
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.acts import take
from underhost.agents.whatif.hosts import CONNECTED
from underhost.agents.whatif.steps import HOST, Fail, Step
from underhost.agents.whatif.world import Evaluation, World
from underhost.schemas.documents import Blocked, BudgetUse, Report, Target, WhatIf
from underhost.schemas.errors import InputError
from underhost.schemas.manifests import Manifest
from underhost.schemas.severities import SEVERITIES

NO_MANIFESTS: Mapping[str, Manifest] = {}


class Answer(NamedTuple):
    """A document, and what is said beside it.

    Attributes:
        nodes: how many there are at the end, for `0/N nodes are available`.
        first: pods that waited, and are placed before the plan begins. waiting: those that waited, and still do.
    """

    document: WhatIf
    nodes: int
    first: list[str]
    waiting: list[str]


class Compiled(Evaluation):
    """For a few plans: each snapshot is compiled, reading only what is new in it. Not for several threads at once."""

    def __init__(self, options: Options) -> None:
        self._options, self._compiler = options, Compiler()

    def model(self, snapshot: Snapshot) -> Model:
        """Raises BadObjectError."""
        return self._compiler.compile(snapshot, self._options)

    def report(self, snapshot: Snapshot) -> Report:
        """Raises BadObjectError."""
        return check(snapshot, self._options, self.model(snapshot))


class Followed(Evaluation):
    """For many plans from one start: a resident evaluator judges only what each of them changes."""

    def __init__(self, options: Options) -> None:
        self._resident = Evaluator(options)

    def model(self, snapshot: Snapshot) -> Model:
        """Raises BadObjectError."""
        return self._resident.model(snapshot)

    def report(self, snapshot: Snapshot) -> Report:
        """Raises BadObjectError."""
        return self._resident.update(snapshot)


def what_if(
    snapshot: Snapshot,
    options: Options,
    steps: Iterable[Step],
    others: Mapping[str, Manifest] = NO_MANIFESTS,
    evaluation: Evaluation | None = None,
) -> Answer:
    """What the steps, one after another, do to the site.

    `others` are the manifests of the input. `evaluation` has tried other plans before and so reads only what is new.
    Raises InputError for a step that names what is not there, BadObjectError for an object that the API server would
    not have let in.
    """
    world = World.at_rest(snapshot, evaluation or Compiled(options), others)
    waited, first = set(world.waiting), world.placed_first
    base = world.evaluation.report(world.snapshot)
    for step in told("taking steps", list(steps)):
        take(world, step)
    still = sorted(waited & world.waiting - world.origin.keys())
    return Answer(_document(world, base), len(world.snapshot.nodes), first, still)


def each(
    snapshot: Snapshot,
    options: Options,
    kind: str,
    *,
    ha: bool = True,
    others: Mapping[str, Manifest] = NO_MANIFESTS,
) -> list[Target]:
    """Every host (every node) fails, each alone; the worst first. Hosts without a node are left out.

    Raises InputError where no host is known, BadObjectError.
    """
    start = World.at_rest(snapshot, Followed(options), others)
    base = start.evaluation.report(start.snapshot)
    nodes_on = _hosts(start.snapshot) if kind == HOST else {name: [name] for name in snapshot.nodes}
    counts = _pod_counts(start.snapshot)
    found = []
    for ref, nodes in told(f"each {kind} fails", list(nodes_on.items())):
        world = start.fork()
        take(world, Fail((f"{kind}/{ref}",), ha))
        document = _document(world, base)
        known = start.snapshot.hosts[ref].name if kind == HOST else ref
        parts = {name: getattr(document, name) for name in WhatIf.__struct_fields__}
        count = sum(counts[node] for node in nodes)
        found.append(Target(**parts, target=f"{kind}/{known}", nodes=nodes, pods=count))
    return sorted(found, key=_worst_first)


def _document(world: World, base: Report) -> WhatIf:
    allowed = {name: figures.allowed for name, figures in base.budgets.items()}
    blocked = {pod: budgets for pods in world.draining.values() for pod, budgets in pods.items()}
    new, resolved = [], []
    if world.step:
        report = world.evaluation.report(world.snapshot)
        before, after = {one.id for one in base.findings}, {one.id for one in report.findings}
        new = [one for one in report.findings if one.id not in before]
        resolved = [one for one in base.findings if one.id not in after]
    return WhatIf(
        moves=world.moves,
        vm_moves=world.vm_moves,
        pending=world.pending(),
        blocked=[Blocked(pod, budgets) for pod, budgets in sorted(blocked.items())],
        new_findings=new,
        resolved_findings=resolved,
        budgets={name: BudgetUse(allowed.get(name, 0), used) for name, used in sorted(world.used.items())},
    )


def _hosts(snapshot: Snapshot) -> dict[str, list[str]]:
    """The nodes of every connected host that has any, by the host's id. Raises InputError."""
    if not snapshot.hosts:
        raise InputError("--each host: no ESXi host is known; name the vSphere side with --inventory")
    found: dict[str, list[str]] = {}
    for name, joined in sorted(snapshot.node_hosts.items()):
        host = snapshot.hosts.get(joined.host)
        if host is not None and host.state == CONNECTED:
            found.setdefault(joined.host, []).append(name)
    return dict(sorted(found.items()))


def _pod_counts(snapshot: Snapshot) -> Counter[str]:
    """Pods by node, without those that belong to it."""
    pods = snapshot.pods.values()
    return Counter(pod.spec.node_name for pod in pods if pod.status.phase not in FINISHED and not pinned(pod))


def _worst_first(one: Target) -> tuple[object, ...]:
    counts = [sum(finding.severity == severity for finding in one.new_findings) for severity in SEVERITIES]
    return (-len(one.pending), *(-count for count in counts), -len(one.moves), -one.pods, one.target)
