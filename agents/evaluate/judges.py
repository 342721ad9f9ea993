"""All judges of a resident evaluator, and the order in which they work.

In: marks. Out: the findings of the site in one store.
"""

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.evaluate.applications import Applications
from underhost.agents.evaluate.covered import Budgets
from underhost.agents.evaluate.eligible import Eligible
from underhost.agents.evaluate.groups import Groups
from underhost.agents.evaluate.hosts import HostLimits
from underhost.agents.evaluate.judge import Judge
from underhost.agents.evaluate.marks import Marks
from underhost.agents.evaluate.nodes import unknown_node
from underhost.agents.evaluate.pods import Singles
from underhost.agents.evaluate.relations import Relations
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Pod


class Judges:
    """What is kept of one site, besides the model.

    Attributes:
        store: the findings. relations, eligible: of the classes. budgets, applications, hosts: judges that are told of
            changes as they come.
    """

    def __init__(self, live: CompiledSite, options: Options) -> None:
        self._live = live
        self.store, self.relations, self.eligible = FindingStore(), Relations(live.model.selectors), Eligible()
        self.budgets, self.applications = Budgets(self.store), Applications(self.store)
        self.hosts = HostLimits(live, self.relations, self.store, options)
        self._singles = Singles(live, self.store)
        self._groups = Groups(live, self.relations, self.store)
        self._flipped: set[int] = set()
        self._fresh: list[PodClass] = []
        self._generation = live.state.generation
        for cls in live.model.classes:
            self._know(cls)

    def add_class(self, cls: PodClass) -> None:
        """A class is new."""
        self._know(cls)
        self.relations.forget()
        self._flipped.add(cls.id)
        self._fresh.append(cls)

    def _know(self, cls: PodClass) -> None:
        if cls.hard:
            self.eligible.add(cls)
        self.hosts.add(cls)

    def _show_changes(self) -> None:
        """Rules that looked at all classes, or at counters that are gone, look again."""
        fresh, self._fresh = self._fresh, []
        if self._generation != self._live.state.generation:
            self._generation = self._live.state.generation
            self._singles.forget()
        for cls in fresh:
            self._singles.forget(self.relations.of(cls))

    def count(self, place: Place, sign: int) -> None:
        """A pod of the class came or went."""
        if self._live.uses[place.cls] == (1 if sign > 0 else 0):
            self._flipped.add(place.cls)
        if place.node:
            self.hosts.count(place, sign)

    def unbound(self, snapshot: Snapshot, key: str, is_unbound: bool) -> None:
        """Whether a pod's node is absent."""
        self.store.put(("unbound", key), [unknown_node(snapshot, key)] if is_unbound else NOTHING)

    def bound(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        """Where a pod is, or that it waits."""
        there = bool(place.node or place.absent)
        self.applications.change_pod(snapshot, key, pod if there else None, place.cls)

    def judge(self, snapshot: Snapshot, marks: Marks) -> None:
        """Everything that is marked."""
        live, singles = self._live, self._singles
        live.settle()
        self._show_changes()
        judge = Judge(live.model, live.state)
        singles.judge_pods(snapshot, judge, marks.pods)
        singles.judge_nodes(snapshot, judge, marks.nodes)
        singles.judge_hosts(snapshot, marks.hosts)
        singles.judge_near(snapshot, judge, marks.near)
        singles.judge_spread(snapshot, judge, marks.spread)
        if self._flipped:
            classes = live.model.classes
            singles.link(
                snapshot, judge, {one for cls in self._flipped for one in self.relations.of(classes[cls]).spread}
            )
            self._flipped.clear()
        self._groups.judge(snapshot, judge, marks.broken, marks.undone)
        self.hosts.judge(snapshot, bool(marks.pods))
        self.budgets.judge(snapshot)
        self.applications.judge(snapshot, live.model.classes)
