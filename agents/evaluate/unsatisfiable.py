"""What the hosts of a site cannot keep, and terms that are beyond a pod's share: `unsatisfiable` findings.

In: a case, and what changes about pods and hosts; or the VM graphs of a snapshot. Out: findings for required
anti-affinity over more VMs than hosts are usable, and for pods that must share a host and be apart.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from underhost.agents.affinity.gathering import Gathering, gatherings
from underhost.agents.affinity.separation import INTER_POD_AFFINITY, SeparationId
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.drs.cliques import bits
from underhost.agents.drs.vm_graph import Concerns, Edge, Together, VmGraph, gathered, vm_graphs
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.marks import Relations
from underhost.agents.evaluate.store import FindingStore
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import UNSATISFIABLE
from underhost.schemas.shares import Capped, Shares
from underhost.schemas.vsphere import CONNECTED, Host

REASON_TOO_MANY = "more pods must be apart than hosts are usable"
REASON_CONTRADICTION = "pods that must share a host must also be apart"
_Crowd = tuple[SeparationId, str]  # a separation within one vSphere cluster


class Unsatisfiable:
    """What the hosts of a site cannot keep, asked anew only where a cluster runs more such pods than it has hosts.

    Once a site is followed, the pods on either side of each separation are counted by cluster: no more VMs than these
    can have to be apart.
    """

    def __init__(self, store: FindingStore, relations: Relations, options: Options) -> None:
        self._store, self._relations, self._options = store, relations, options
        self._hosts: Mapping[str, Host] = {}
        self._usable: Counter[str] = Counter()
        self._sizes: dict[str, Counter[SeparationId]] = {}
        self._wide: set[_Crowd] = set()
        self._near = self._touched = False

    def judge_all(self, case: Case) -> None:
        """Look at every separation."""
        for cls in case.model.classes:
            self.add_class(cls)
        self._put(case, self._relations.every())

    def index(self, snapshot: Snapshot, site: CompiledSite) -> None:
        """From now on changes are told."""
        self.use(snapshot, site.model)
        self._touched = False

    def add_class(self, cls: PodClass) -> None:
        """A class is new."""
        self._near |= any(term.key in self._options.host_keys for term in cls.required_affinity)

    def use(self, snapshot: Snapshot, model: Model) -> None:
        """The hosts are these; where one is in another cluster, pods are counted anew."""
        known, self._hosts = self._hosts, snapshot.hosts
        before, usable, is_moved = self._usable, self._usable.copy(), False
        for ref in changed_keys(known, self._hosts):
            old, new = known.get(ref), self._hosts.get(ref)
            for host, sign in ((old, -1), (new, 1)):
                if host is not None and host.state == CONNECTED:
                    usable[host.cluster] += sign
            is_moved |= old is None or new is None or old.cluster != new.cluster
        changed = {cluster for cluster in usable if before[cluster] != usable[cluster]}
        if is_moved:
            changed |= self._sizes.keys()
            self._sizes = self._count(model)
            changed |= self._sizes.keys()
        self._usable, was_wide = usable, bool(self._wide)
        self._wide = {crowd for crowd in self._wide if crowd[1] not in changed}
        for cluster in changed & self._sizes.keys():
            most = usable[cluster]
            self._wide.update((at, cluster) for at, size in self._sizes[cluster].items() if size > most)
        self._touched |= was_wide or bool(self._wide) or self._near

    def _count(self, model: Model) -> dict[str, Counter[SeparationId]]:
        """The sizes of all crowds, by vSphere cluster."""
        sizes = defaultdict[str, Counter[SeparationId]](Counter)
        clusters, running = Domains("cluster", list(map(self._cluster, model.nodes.hosts))), model.running
        cells, counts = np.unique(running.classes * clusters.size + clusters.codes[running.nodes], return_counts=True)
        for cell, pods in zip(cells.tolist(), counts.tolist(), strict=True):
            cls, code = divmod(cell, clusters.size)
            cluster = clusters.ids[code]
            for at in self._relations.of(model.classes[cls]).apart if cluster else ():
                sizes[cluster][at] += pods
        return sizes

    def _cluster(self, host: str | None) -> str:
        known = self._hosts.get(host or "")
        return known.cluster if known is not None else ""

    def crosses(self, before: str, now: str) -> bool:
        """Whether what moves from one of these hosts to the other is in another vSphere cluster then."""
        return self._cluster(before) != self._cluster(now)

    def count(self, site: CompiledSite, place: Place, sign: int) -> None:
        """A pod runs, or runs no more."""
        if not place.node or not self._hosts:
            return
        concern = self._relations.of(site.model.classes[place.cls])
        cluster = self._cluster(site.host_of(site.model.nodes.index[place.node]))
        sizes = self._sizes[cluster] if cluster else {}
        for at in concern.apart if cluster else ():
            crowd = (at, cluster)
            sizes[at] += sign
            if sizes[at] > self._usable[cluster]:
                self._wide.add(crowd)
                self._touched = True
            elif crowd in self._wide:
                self._wide.discard(crowd)
                self._touched = True
        if self._wide and not self._touched:
            wide = {at for at, _ in self._wide}
            self._touched = any(at in wide for at in concern.apart)

    def touch(self) -> None:
        """Something about nodes, their hosts or whether pods belong to their node has changed."""
        self._touched |= bool(self._wide) or self._near

    def judge(self, case: Case, changed: bool) -> None:
        """The findings, anew if anything that matters has changed; `changed`: some pod came, went or moved."""
        if self._touched or (self._near and changed):
            self._touched = False
            self._put(case, self._relations.every() if self._near else {at for at, _ in self._wide})

    def _put(self, case: Case, every: Iterable[SeparationId]) -> None:
        """Each of too many VMs holds a pod of either side: sides no larger than a cluster's hosts are left out."""
        snapshot, model, _ = case
        found: list[Finding] = []
        near = gatherings(model.classes, self._options.host_keys) if self._near else []
        considered = {at: self._relations.separation(at) for at in every}
        if not near:
            usable, sizes = _usable(snapshot), model.sizes()
            least = min((usable[host.cluster] for host in snapshot.hosts.values()), default=0)
            considered = {
                at: one
                for at, one in considered.items()
                if all(sum(sizes[cls] for cls in side) > least for side in one[2:])
            }
            if considered and not self._hosts:
                self.use(snapshot, model)  # clusters may be of different sizes: now they are looked at one by one
            considered = {at: considered[at] for at, _ in self._wide if at in considered}
        apart = sorted({one for one in considered.values() if one.matched})
        if model.has_hosts and (apart or near):
            found = unsatisfiable_findings(snapshot, vm_graphs(snapshot, model, Concerns(model, apart, near)), near)
        self._store.put(("hosts",), found)


class UncountedTerms:
    """Namespaces with pods whose terms do not all count."""

    def __init__(self, store: FindingStore, site: str, shares: Shares) -> None:
        self._store, self._site, self._most = store, site, shares.terms
        self._classes: list[PodClass] = []

    def add_class(self, cls: PodClass) -> None:
        """A class is new."""
        if cls.uncounted:
            self._classes.append(cls)

    def judge(self, is_used: Callable[[int], object]) -> None:
        """The findings; `is_used` tells whether any pod is of a class."""
        if self._classes:
            told = f"of a pod's terms between pods and spread constraints the first {self._most} count"
            names = sorted({cls.namespace for cls in self._classes if is_used(cls.id)})
            found = [f.tenant_finding(self._site, Capped("terms", name, "", told)) for name in names]
            self._store.put(("tenants",), found)


def _usable(snapshot: Snapshot) -> "Counter[str]":
    """The usable hosts of each cluster."""
    return Counter(host.cluster for host in snapshot.hosts.values() if host.state == CONNECTED)


def unsatisfiable_findings(snapshot: Snapshot, graphs: Sequence[VmGraph], near: Sequence[Gathering]) -> list[Finding]:
    """Every contradiction, and every application that needs more hosts than its vSphere cluster can use now."""
    found: list[Finding] = []
    for graph in graphs:
        cliques = [(edge, _clique(graph, edge)) for edge in graph.edges]
        found += _too_many(snapshot, graph, [one for one in cliques if one[1].bit_count() > max(1, graph.usable)])
        found += [_contradiction(snapshot, graph, group) for group in gathered(graph, near) if group.contradicts]
    return f.in_order(found)


def _clique(graph: VmGraph, edge: Edge) -> int:
    """The VMs of one anti-affinity that all keep one another apart; 0 where it is another rule.

    Spread over more VMs than hosts is no contradiction: several may share a domain.
    """
    clique = edge.owners & edge.matched
    if edge.separation.rule != INTER_POD_AFFINITY or clique.bit_count() <= max(1, graph.usable):
        return 0
    rows = graph.adjacency([edge])
    kept = 0
    for at in bits(clique):
        if rows[at] and kept & ~rows[at] == 0:  # one outside the key's domains is apart from nobody
            kept |= 1 << at
    return kept


def _too_many(snapshot: Snapshot, graph: VmGraph, cliques: Sequence[tuple[Edge, int]]) -> list[Finding]:
    """One finding for the cliques that share their first pod, which names it: the largest, and how many more."""
    groups: defaultdict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for edge, clique in cliques:
        pods = graph.pods_on((*edge.separation.owners, *edge.separation.matched), clique)
        groups[pods[0]].append((pods, clique))
    found = []
    hosts = f"{graph.usable} usable {'host' if graph.usable == 1 else 'hosts'}"
    for first, group in groups.items():
        pods, clique = max(group, key=lambda one: (one[1].bit_count(), len(one[0]), one[0]))
        more = {other for _, other in group if other & ~clique}
        also = f" The same is true of {len(more)} more such groups with {first}." if len(more) > 1 else ""
        also = f" The same is true of another such group with {first}." if len(more) == 1 else also
        message = (
            f"{f.listing(pods)} run on {clique.bit_count()} VMs that must all be apart, but vSphere cluster "
            f"{graph.name} has {hosts}: some must share one. The DRS rules keep apart as many as fit.{also}"
        )
        everyone = sorted({pod for names, _ in group for pod in names})
        found.append(_finding(snapshot, graph, REASON_TOO_MANY, message, everyone))
    return found


def _contradiction(snapshot: Snapshot, graph: VmGraph, group: Together) -> Finding:
    vms = [graph.vms[at] for at in bits(group.vms)]
    apart = {cls for edge in graph.edges for cls in (*edge.separation.owners, *edge.separation.matched)}
    pods = graph.pods_on(apart | group.owners, group.vms)
    written = "no DRS rule is written for the affinity" if group.impossible else "the DRS rules keep the affinity"
    message = (
        f"The VMs {f.listing(vms, len(vms))} run pods that must share a host, and pods that must be apart: "
        f"no placement keeps both, and {written}."
    )
    return _finding(snapshot, graph, REASON_CONTRADICTION, message, pods)


def _finding(snapshot: Snapshot, graph: VmGraph, reason: str, message: str, pods: list[str]) -> Finding:
    first = snapshot.pods[pods[0]]
    return Finding(
        id=f.finding_id(snapshot.site, UNSATISFIABLE, PHYSICAL_HOST, reason, graph.name, f.uid_of(pods[0], first)),
        severity=UNSATISFIABLE,
        rule=PHYSICAL_HOST,
        reason=reason,
        message=message,
        pod=pods[0],
        node=first.spec.node_name or None,
        peers=pods[1:],
        domain=Domain(key="cluster", value=graph.name),
    )
