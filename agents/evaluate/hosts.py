"""What the hosts cannot keep, kept up to date: asked only where a cluster runs more such pods than it has hosts.

In: pods and hosts as they change. Out: findings in the store. The words, and the graph of VMs, are those of
`unsatisfiable.py`.
"""

from collections import Counter
from collections.abc import Sequence

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.site import CompiledSite, Place
from underhost.agents.evaluate.relations import Relations
from underhost.agents.evaluate.store import NOTHING, FindingStore
from underhost.agents.evaluate.unsatisfiable import judge_hosts
from underhost.agents.rules.separation import Separation, SeparationId
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding

_Crowd = tuple[SeparationId, str]  # a separation within one vSphere cluster


class HostLimits:
    """The pods on either side of each separation, by cluster: no more VMs than these can have to be apart."""

    def __init__(self, live: CompiledSite, relations: Relations, store: FindingStore, options: Options) -> None:
        self._live, self._relations, self._store, self._options = live, relations, store, options
        self._clusters: dict[str, str] = {}
        self._usable: Counter[str] = Counter()
        self._sizes: Counter[_Crowd] = Counter()
        self._wide: set[_Crowd] = set()
        self._near = False
        self._touched = True

    def add(self, cls: PodClass) -> None:
        """A class is new."""
        self._near |= any(term.key in self._options.host_keys for term in cls.required_affinity)

    def use(self, snapshot: Snapshot) -> None:
        """The hosts are these; where one is in another cluster, pods are counted anew."""
        clusters = {ref: host.cluster for ref, host in snapshot.hosts.items()}
        self._usable = Counter(host.cluster for host in snapshot.hosts.values() if host.state == "connected")
        if clusters != self._clusters:
            self._clusters = clusters
            self._sizes = self._count()
        self._wide = {crowd for crowd, size in self._sizes.items() if size > self._usable[crowd[1]]}
        self._touched = True

    def _count(self) -> "Counter[_Crowd]":
        """The sizes of all crowds."""
        model, sizes = self._live.model, Counter[_Crowd]()
        cluster_of = [self._clusters.get(host or "", "") for host in model.nodes.hosts]
        clusters = map(cluster_of.__getitem__, model.running.nodes.tolist())
        for (cls, cluster), pods in Counter(zip(model.running.classes.tolist(), clusters, strict=True)).items():
            for at in self._relations.of(model.classes[cls]).apart if cluster else ():
                sizes[at, cluster] += pods
        return sizes

    def count(self, place: Place, sign: int) -> None:
        """A pod runs, or runs no more."""
        if not place.node or not self._clusters:
            return
        cls = self._live.model.classes[place.cls]
        cluster = self._clusters.get(self._live.host_of(self._live.model.nodes.index[place.node]), "")
        for at in self._relations.of(cls).apart if cluster else ():
            crowd = (at, cluster)
            self._sizes[crowd] += sign
            if self._sizes[crowd] > self._usable[cluster]:
                self._wide.add(crowd)
                self._touched = True
            elif crowd in self._wide:
                self._wide.discard(crowd)
                self._touched = True
        if self._wide and not self._touched:
            wide = {at for at, _ in self._wide}
            self._touched = any(at in wide for at in self._relations.of(cls).apart)

    def touch(self) -> None:
        """Something about nodes, their hosts or whether pods belong to their node has changed."""
        self._touched |= bool(self._wide) or self._near

    def judge(self, snapshot: Snapshot, changed: bool) -> None:
        """The findings, anew if anything that matters has changed."""
        if not (self._touched or (self._near and changed)):
            return
        self._touched = False
        found: Sequence[Finding] = NOTHING
        if self._live.model.has_hosts and (self._wide or self._near) and snapshot.hosts:
            every = self._relations.every() if self._near else {at for at, _ in self._wide}
            apart: list[Separation] = sorted({self._relations.separation(at) for at in every})
            found = judge_hosts(snapshot, self._options, self._live.model, apart)
        self._store.put(("hosts",), found)
