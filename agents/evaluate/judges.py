"""All judges of a site, and the order in which they work.

In: a compiled site, then marks of what has changed. Out: the findings of the site in one store, and its report. The
first time everything is judged; whoever follows the site then has the indexes built that only changes need.
"""

from collections.abc import Collection, Iterable

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.budgets import Budgets
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.drift import preference_drift
from underhost.agents.evaluate.hosts.colocated import CoLocated
from underhost.agents.evaluate.hosts.overdrawn import Overdrawn
from underhost.agents.evaluate.hosts.physical import Physical
from underhost.agents.evaluate.hosts.quorums import QuorumFindings
from underhost.agents.evaluate.marks import Concern, Marks, Relations
from underhost.agents.evaluate.nodes import NodeFindings
from underhost.agents.evaluate.spread import EligibleDomains, Spread
from underhost.agents.evaluate.store import FindingStore
from underhost.agents.evaluate.unsatisfiable import UncountedTerms, Unsatisfiable
from underhost.agents.evaluate.violations import AntiAffinity, Violations
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.kubernetes import Pod


class Judges:
    """What is kept of one site, besides the model.

    Attributes:
        store: the findings. relations, eligible: of the classes. The others judge.
        ask_for_hosts: whether required affinity or hard spread of some class is by host; anti-affinity may be as well.
    """

    def __init__(self, model: Model, state: State, options: Options) -> None:
        """`state` is that of the model."""
        self._model, self._state, self._options = model, state, options
        self.store, self.relations, self.eligible = FindingStore(), Relations(model.selectors), EligibleDomains()
        self.violations, self.spread = Violations(self.store), Spread(self.store)
        self.anti_affinity = AntiAffinity(self.store, self.relations)
        self.physical, self.quorums = Physical(self.store, self.relations), QuorumFindings(self.store)
        self.unsatisfiable = Unsatisfiable(self.store, self.relations, options)
        self.budgets, self.nodes, self.colocated = Budgets(self.store), NodeFindings(self.store), CoLocated(self.store)
        self.overdrawn = Overdrawn(self.store, self.budgets, self.colocated)
        self.uncounted: UncountedTerms | None = None
        self.ask_for_hosts = any(map(self._asks_for_host, model.classes))
        self._flipped: set[int] = set()
        self._fresh: list[PodClass] = []
        self._generation = state.generation

    # ------------------------------------------------------------------------------------------------- the whole site
    def judge_all(self, snapshot: Snapshot) -> None:
        """Judge everything."""
        case = Case(snapshot, self._model, self._state)
        classes = self._model.classes
        self.violations.judge_pods(case)
        self.violations.judge_nodes(case)
        self.violations.judge_near(case, [cls.id for cls in classes if cls.required_affinity])
        self.spread.judge(case, [cls.id for cls in classes if cls.hard])
        self.anti_affinity.judge_all(case)
        self.physical.judge_all(case)
        self.quorums.judge_all(case)
        self.unsatisfiable.judge_all(case)
        self.nodes.judge_all(case)
        self.budgets.change_budgets(snapshot.budgets, snapshot.pods)
        self.budgets.judge(snapshot)
        self.colocated.judge_all(case)
        self.overdrawn.judge_all(case)
        self._judge_uncounted(snapshot)
        if self._options.drift:
            self.store.put(("preferences",), list(preference_drift(case)))

    def _judge_uncounted(self, snapshot: Snapshot) -> None:
        model = self._model
        self.uncounted = UncountedTerms(self.store, snapshot.site, self._options.shares)
        for cls in model.classes:
            self.uncounted.add_class(cls)
        used = {*model.running.classes.tolist(), *(pod.cls for pod in (*model.pending, *model.unbound))}
        self.uncounted.judge(used.__contains__)

    def report(self, snapshot: Snapshot, pods: int) -> Report:
        """All findings, the budgets' figures, and how many there are; `pods` have not finished."""
        return Report(
            findings=self.store.findings(),
            budgets=self.budgets.figures(),
            summary={
                "pods": pods,
                "nodes": len(snapshot.nodes),
                "hosts": snapshot.count_hosts(),
                **self.store.counts,
            },
        )

    # ----------------------------------------------------------------------------------------------------- its changes
    def index(self, snapshot: Snapshot, site: CompiledSite) -> None:
        """From now on changes of the site are told; it is as in the snapshot."""
        self.colocated.index(snapshot, site.places)
        self.unsatisfiable.index(snapshot, site)

    def add_class(self, cls: PodClass) -> None:
        """A class is new."""
        self.relations.forget()
        self.ask_for_hosts |= self._asks_for_host(cls)
        self.unsatisfiable.add_class(cls)
        if self.uncounted is not None:
            self.uncounted.add_class(cls)
        self._flipped.add(cls.id)
        self._fresh.append(cls)

    def _asks_for_host(self, cls: PodClass) -> bool:
        asked = {term.key for term in cls.required_affinity} | {constraint.key for constraint in cls.hard}
        return not asked.isdisjoint(self._options.host_keys)

    def count(self, site: CompiledSite, place: Place, sign: int) -> None:
        """A pod of the class came or went."""
        if site.uses[place.cls] == (1 if sign > 0 else 0):
            self._flipped.add(place.cls)
        self.unsatisfiable.count(site, place, sign)

    def tell(self, snapshot: Snapshot, key: str, pod: Pod, place: Place) -> None:
        """Where a pod is; the pod itself may have gone or changed since, and is told of afterwards."""
        self.nodes.judge_pod(snapshot, key, bool(place.absent) and key in snapshot.pods)
        self.colocated.change_pod(snapshot, key, pod, place)

    def move(self, key: str) -> None:
        """The host below a pod is another one; its node is there as it was."""
        self.colocated.move(key)

    def change_nodes(self, pods: Iterable[str]) -> None:
        """Nodes came, went or changed, or are on other hosts; `pods` are on those of another host."""
        self.overdrawn.change_nodes()
        self.overdrawn.move(pods)

    def judge(self, snapshot: Snapshot, site: CompiledSite, marks: Marks) -> None:
        """Judge what is marked."""
        case, model = Case(snapshot, self._model, self._state), self._model
        self._show_changes()
        if marks.pods:
            self.violations.judge_pods(case, {key: model.running.at.get(key) for key in marks.pods})
        if marks.nodes:
            nodes = {name: _pods_on(site, name) for name in marks.nodes}
            self.violations.judge_nodes(case, nodes)
            self.nodes.judge(case, nodes)
        self.violations.judge_near(case, marks.near)
        linked = {one for cls in self._flipped for one in self.relations.of(model.classes[cls]).spread}
        self.spread.judge(case, marks.spread, linked, site.uses.__getitem__)
        self._flipped.clear()
        self.anti_affinity.judge(case, marks.broken)
        self.physical.judge(case, marks.undone)
        self.quorums.judge(case)
        self.unsatisfiable.judge(case, bool(marks.pods))
        self.nodes.judge_hosts(snapshot, marks.hosts)
        figured, regrouped = self.budgets.judge(snapshot), self.colocated.judge(case)
        self.overdrawn.judge(case, figured, regrouped, lambda pods: {key: site.places[key].cls for key in pods})
        if self.uncounted is not None:
            self.uncounted.judge(site.uses.__getitem__)

    def _show_changes(self) -> None:
        """Rules that looked at all classes, or at counters that are gone, look again."""
        fresh, self._fresh = self._fresh, []
        concerns: list[Concern | None] = [self.relations.of(cls) for cls in fresh]
        if self._generation != self._state.generation:
            self._generation, concerns = self._state.generation, [None]
        for concern in concerns:
            self.violations.forget(concern)
            self.spread.forget(concern)


def _pods_on(site: CompiledSite, name: str) -> Collection[int]:
    """The running pods on a node; none where it is absent."""
    node = site.model.nodes.index.get(name)
    return site.model.running.on_node[node] if node is not None else ()
