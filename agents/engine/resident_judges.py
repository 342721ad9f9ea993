"""All judges of a resident evaluator, and the order in which they work.

In: marks. Out: the findings of the site in one store. Called by `resident.py`.
"""

from collections import Counter
from collections.abc import Sequence

from underhost.agents.engine.classes import PodClass
from underhost.agents.engine.judge import Judge
from underhost.agents.engine.node_findings import unknown_node
from underhost.agents.engine.resident_budgets import Budgets
from underhost.agents.engine.resident_colocated import Applications
from underhost.agents.engine.resident_eligible import Eligible
from underhost.agents.engine.resident_groups import Groups
from underhost.agents.engine.resident_marks import Marks
from underhost.agents.engine.resident_model import Live, Place
from underhost.agents.engine.resident_pods import Singles
from underhost.agents.engine.resident_relations import At, Relations
from underhost.agents.engine.resident_store import NOTHING, FindingStore
from underhost.agents.engine.separations import Separation
from underhost.agents.engine.snapshot import Options, Snapshot
from underhost.agents.engine.unsatisfiable import judge_hosts
from underhost.schemas.records import Finding


class Judges:
    """What is kept of one site, besides the model.

    Attributes:
        store: the findings. relations, eligible: of the classes. budgets, applications, hosts: judges that are told of
            changes as they come.
    """

    def __init__(self, live: Live, options: Options) -> None:
        self._live = live
        self.store, self.relations, self.eligible = FindingStore(), Relations(), Eligible()
        self.budgets, self.applications = Budgets(self.store), Applications(self.store)
        self.hosts = HostLimits(live, self.relations, self.store, options)
        self._singles = Singles(live, self.store)
        self._groups = Groups(live, self.relations, self.store)
        self._reform = False
        for cls in live.model.classes:
            self._know(cls)

    def add_class(self, cls: PodClass) -> None:
        """A class is new: rules that looked at all classes look again."""
        self._know(cls)
        self._live.state.forget(nodes=False)
        self._singles.forget()
        self._reform = True

    def _know(self, cls: PodClass) -> None:
        self.relations.add(cls)
        if cls.hard:
            self.eligible.add(cls)
        self.hosts.add(cls)

    def forget(self) -> None:
        """Nodes have changed, and the state has forgotten its counters."""
        self._singles.forget()

    def count(self, place: Place, sign: int) -> None:
        """A pod of the class came or went."""
        if self._live.uses[place.cls] == (1 if sign > 0 else 0):
            self._reform = True
        if place.node:
            self.hosts.count(self._live.model.classes[place.cls], sign)

    def unbound(self, snapshot: Snapshot, key: str, is_unbound: bool) -> None:
        """Whether a pod's node is absent."""
        self.store.put(("unbound", key), [unknown_node(snapshot, key)] if is_unbound else NOTHING)

    def judge(self, snapshot: Snapshot, marks: Marks) -> None:
        """Everything that is marked."""
        live, singles = self._live, self._singles
        live.settle()
        judge = Judge(live.model, live.state)
        singles.judge_pods(snapshot, judge, marks.pods)
        singles.judge_nodes(snapshot, judge, marks.nodes)
        singles.judge_hosts(snapshot, marks.hosts)
        singles.judge_near(snapshot, judge, marks.near)
        singles.judge_spread(snapshot, judge, marks.spread)
        if self._reform:
            singles.reform(snapshot, judge)
            self._reform = False
        self._groups.judge(snapshot, judge, marks.broken, marks.undone)
        self.hosts.judge(snapshot, bool(marks.pods))
        self.budgets.judge(snapshot)
        self.applications.judge(snapshot, live.model.classes)


class HostLimits:
    """What the hosts cannot keep: looked at only where some separation is of more pods than a cluster has hosts."""

    def __init__(self, live: Live, relations: Relations, store: FindingStore, options: Options) -> None:
        self._live, self._relations, self._store, self._options = live, relations, store, options
        self._sizes: Counter[At] = Counter()
        self._wide: set[At] = set()
        self._least = 0
        self._near = False
        self._touched = True

    def add(self, cls: PodClass) -> None:
        """A class is new."""
        self._near |= any(term.key in self._options.host_keys for term in cls.required_affinity)

    def use(self, snapshot: Snapshot) -> None:
        """The hosts are these."""
        usable = Counter(host.cluster for host in snapshot.hosts.values() if host.state == "connected")
        self._least = min((usable[host.cluster] for host in snapshot.hosts.values()), default=0)
        self._wide = {at for at, size in self._sizes.items() if size > self._least}
        self._touched = True

    def count(self, cls: PodClass, sign: int) -> None:
        """A pod of a class runs, or runs no more."""
        for at in self._relations.both(cls):
            self._sizes[at] += sign
            wide = self._sizes[at] > self._least
            self._touched |= wide or at in self._wide
            if wide:
                self._wide.add(at)
            else:
                self._wide.discard(at)
        if self._wide and not self._touched:
            self._touched = any(at in self._wide for at in self._relations.of(cls).apart)

    def touch(self) -> None:
        """Nodes or their hosts have changed."""
        self._touched |= bool(self._wide) or self._near

    def judge(self, snapshot: Snapshot, changed: bool) -> None:
        """The findings, anew if anything that matters has changed."""
        if not (self._touched or (self._near and changed)):
            return
        self._touched = False
        found: Sequence[Finding] = NOTHING
        if self._live.model.has_hosts and (self._wide or self._near) and snapshot.hosts:
            every = self._relations.every() if self._near else self._wide
            apart: list[Separation] = sorted({self._relations.separation(at) for at in every})
            found = judge_hosts(snapshot, self._options, self._live.model, apart)
        self._store.put(("hosts",), found)
