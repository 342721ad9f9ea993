"""Which DRS VM-VM rules a site needs: exactly what Kubernetes asks to be apart or together, in few rules.

In: a snapshot. Out: the desired rules of every vSphere cluster, and findings where the hosts cannot hold them. Called
by the DRS translator (`sinks/drs.py`), which compares them with the rules that are there and orders edits, and by
`check.py` for the findings. Pure, and equal for every order of the input.

An anti-affinity rule keeps all its members apart, so cliques cover the pairs that must be apart (`cliques.py`): never
two VMs that need no separation, never a VM from itself, never fewer than two VMs, never VMs of two clusters.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from underhost.agents.engine import findings as f
from underhost.agents.engine.cliques import bits, clique_cover, split
from underhost.agents.engine.model import Model, compile
from underhost.agents.engine.owners import application_of
from underhost.agents.engine.separations import INTER_POD_AFFINITY, Gathering, Separation, gatherings, separations
from underhost.agents.engine.snapshot import Options, Snapshot
from underhost.schemas.records import Domain, Finding
from underhost.schemas.vsphere import DrsRule

PREFIX = "underhost"
ANTI_AFFINITY, AFFINITY = "anti-affinity", "affinity"
RULE = "PhysicalHost"
REASON_TOO_MANY = "more pods must be apart than hosts are usable"
REASON_CONTRADICTION = "pods that must share a host must also be apart"
_NAME_LENGTH = 80  # of an inventory name in vCenter
_HASH_LENGTH = 8


def desired_rules(
    snapshot: Snapshot, options: Options, model: Model | None = None
) -> tuple[list[DrsRule], list[Finding]]:
    """The rules by cluster and name, and findings (`unsatisfiable`) for what the usable hosts cannot keep.

    Only running pods on nodes whose VM and host are known count, and only hosts that are connected and not in
    maintenance are usable. Where more VMs must be apart than hosts are usable, as many as fit are kept apart.
    `model` is the compiled snapshot, where the caller has it.
    """
    model = compile(snapshot, options) if model is None else model
    found: list[Finding] = []
    rules: list[DrsRule] = []
    apart, near = separations(model.classes), gatherings(model.classes, options.host_keys)
    for cluster in _clusters(snapshot, model):
        graph = _Graph(snapshot, model, cluster, apart)
        rules += graph.anti_affinity(found)
        rules += graph.affinity(near, found)
    return sorted(rules, key=lambda rule: (rule.cluster, rule.name)), f.in_order(found)


def rule_name(site: str, label: str) -> str:
    """The name of a rule of ours: `underhost-SITE-LABEL-HASH`, at most 80 characters."""
    room = _NAME_LENGTH - len(PREFIX) - len(site) - _HASH_LENGTH - 3
    return f"{PREFIX}-{site}-{label[: max(1, room)]}-{_hash(site, label[: max(1, room)])}"


def owns(site: str, name: str) -> bool:
    """Whether a rule is this site's. The hash tells site `a` from site `a-b`, whose names begin alike."""
    start = f"{PREFIX}-{site}-"
    label, dash, digest = name.removeprefix(start).rpartition("-")
    return name.startswith(start) and bool(dash) and digest == _hash(site, label)


def _hash(site: str, label: str) -> str:
    return hashlib.sha256(f"{site}\0{label}".encode()).hexdigest()[:_HASH_LENGTH]


@dataclass
class _Cluster:
    """The running pods of one vSphere cluster, on VMs in the order of their references.

    The position of a VM in `vms` is its bit. `on` gives, for each class, the VMs that its pods run on as a bit set, and
    `pods` the names of the pods by (class, VM). `usable` counts hosts; `nodes` are the VMs' nodes, as positions.
    """

    name: str
    usable: int
    vms: list[str]
    host_of: list[str]
    nodes: list[int]
    on: dict[int, int] = field(default_factory=dict)
    pods: dict[tuple[int, int], list[str]] = field(default_factory=lambda: defaultdict(list))

    def mask(self, classes: Iterable[int]) -> int:
        """The VMs that run a pod of these classes."""
        mask = 0
        for one in classes:
            mask |= self.on.get(one, 0)
        return mask


def _clusters(snapshot: Snapshot, model: Model) -> list[_Cluster]:
    """Every vSphere cluster that runs pods. A VM whose host or cluster is unknown is in none: no rule can name it."""
    members: defaultdict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    place: dict[str, tuple[str, str]] = {}
    for node, joined in sorted(snapshot.node_hosts.items()):
        host = snapshot.hosts.get(joined.host)
        if host is not None and host.cluster and node in model.nodes.index:
            members[host.cluster][joined.vm] = (joined.host, model.nodes.index[node])
            place[node] = (host.cluster, joined.vm)
    found, bit = {}, {}
    for name, vms in sorted(members.items()):
        ordered = sorted(vms)
        usable = sum(1 for host in snapshot.hosts.values() if host.cluster == name and host.state == "connected")
        found[name] = _Cluster(name, usable, ordered, [vms[vm][0] for vm in ordered], [vms[vm][1] for vm in ordered])
        bit.update({(name, vm): at for at, vm in enumerate(ordered)})
    running = model.running
    for pod, class_id, node in zip(running.keys, running.classes.tolist(), running.nodes.tolist(), strict=True):
        where = place.get(model.nodes.names[node])
        if where is not None:
            cluster, at = found[where[0]], bit[where]
            cluster.on[class_id] = cluster.on.get(class_id, 0) | 1 << at
            cluster.pods[(class_id, at)].append(pod)
    return list(found.values())


@dataclass
class _Edge:
    """A separation within one cluster: VMs of the owners, VMs of the matched, and what to call it."""

    separation: Separation
    owners: int
    matched: int
    label: str


class _Graph:
    """The VMs of one cluster and the pairs of them that must be apart."""

    def __init__(self, snapshot: Snapshot, model: Model, cluster: _Cluster, apart: Sequence[Separation]) -> None:
        self.snapshot, self.model, self.cluster = snapshot, model, cluster
        self._same_value: dict[str, list[int]] = {}
        self.edges: list[_Edge] = []
        for one in apart:
            owners, matched = cluster.mask(one.owners), cluster.mask(one.matched)
            if owners and matched and (owners | matched).bit_count() > 1:
                self.edges.append(_Edge(one, owners, matched, self._label(one.owners)))
        self.adjacency = self._adjacency(self.edges)

    def anti_affinity(self, found: list[Finding]) -> list[DrsRule]:
        """Rules that keep exactly the pairs apart; cliques that are too large are cut, and found."""
        cliques: set[int] = set()
        strict = self._adjacency([edge for edge in self.edges if edge.separation.rule == INTER_POD_AFFINITY])
        for clique in clique_cover(self.adjacency, [edge.owners & edge.matched for edge in self.edges]):
            if clique.bit_count() <= self.cluster.usable:
                cliques.add(clique)
                continue
            cliques.update(split(clique, self.cluster.usable))
            for part in clique_cover([row & clique if clique >> at & 1 else 0 for at, row in enumerate(strict)]):
                if part.bit_count() > self.cluster.usable:
                    found.append(self._too_many(part))
        kept = [one for one in cliques if not any(one != other and one & other == one for other in cliques)]
        return self._named(ANTI_AFFINITY, [(self._best_label(one), one) for one in kept])

    def affinity(self, near: Sequence[Gathering], found: list[Finding]) -> list[DrsRule]:
        """Rules that keep a pod's VM with one VM that its required affinity on the host allows."""
        links: list[tuple[int, int]] = []
        labels: dict[int, str] = {}
        for one in near:
            mates = self.cluster.mask(one.matched)
            for at in bits(self.cluster.on.get(one.owner, 0) if mates else 0):
                if not mates >> at & 1:
                    links.append((at, self._mate(at, mates)))
                    labels[at] = self._label([one.owner])
        rules = []
        for group in f.connected({at for link in links for at in link}, links):
            mask = sum(1 << at for at in group)
            if any(self.adjacency[at] & mask for at in group):
                found.append(self._finding(mask, REASON_CONTRADICTION, self._contradiction(mask)))
                continue
            rules.append((min(labels[at] for at in group if at in labels), mask))
        return self._named(AFFINITY, rules)

    def _mate(self, at: int, mates: int) -> int:
        """The VM to stay with: one that need not be apart, on the same host already if there is one."""
        allowed = [other for other in bits(mates & ~self.adjacency[at])] or list(bits(mates))
        host = self.cluster.host_of[at]
        return min(allowed, key=lambda other: (self.cluster.host_of[other] != host, other))

    def _adjacency(self, edges: Iterable[_Edge]) -> list[int]:
        """The pairs that must be apart: VMs whose nodes differ in the key, and every two VMs where it is the host."""
        rows = [0] * len(self.cluster.vms)
        for edge in edges:
            same = self._same(edge.separation.key)
            for at in bits(edge.owners):
                rows[at] |= edge.matched & ~same[at]
            for at in bits(edge.matched):
                rows[at] |= edge.owners & ~same[at]
        return rows

    def _same(self, key: str) -> list[int]:
        """For each VM, the VMs that a term on this key does not keep from it: of the same value, or without one."""
        found = self._same_value.get(key)
        if found is None:
            size = len(self.cluster.vms)
            if self.model.topology.is_host_key(key):
                found = [1 << at for at in range(size)]
            else:
                codes = [self.model.topology.of(key).code_list[node] for node in self.cluster.nodes]
                masks: defaultdict[int, int] = defaultdict(int)
                for at, code in enumerate(codes):
                    masks[code] |= 1 << at
                absent, everything = masks.get(-1, 0), (1 << size) - 1
                found = [everything if code < 0 else masks[code] | absent for code in codes]
            self._same_value[key] = found
        return found

    def _label(self, classes: Iterable[int]) -> str:
        """What the pods of these classes are called: the smallest of their applications, `NAMESPACE.NAME`."""
        names = set()
        for one in classes:
            for at in bits(self.cluster.on.get(one, 0)):
                pod_name = min(self.cluster.pods[(one, at)])
                pod = self.snapshot.pods[pod_name]
                owner = application_of(self.snapshot, pod)
                names.add(f"{owner.namespace}.{owner.name}" if owner is not None else pod_name.replace("/", "."))
                if owner is not None:
                    break
        return min(names, default="")

    def _best_label(self, clique: int) -> str:
        """The application that asks for most pairs of the clique."""

        def pairs(edge: _Edge) -> int:
            return (edge.owners & clique).bit_count() * (edge.matched & clique).bit_count()

        return min(self.edges, key=lambda edge: (-pairs(edge), edge.label)).label

    def _named(self, type_: str, wanted: list[tuple[str, int]]) -> list[DrsRule]:
        rules = []
        used: dict[str, int] = defaultdict(int)
        suffix = "" if type_ == ANTI_AFFINITY else ".together"
        for label, mask in sorted(wanted, key=lambda item: (item[0], list(bits(item[1])))):
            used[label] += 1
            number = f".{used[label]}" if used[label] > 1 else ""
            rules.append(
                DrsRule(
                    name=rule_name(self.snapshot.site, f"{label}{suffix}{number}"),
                    type=type_,
                    vms=[self.cluster.vms[at] for at in bits(mask)],
                    cluster=self.cluster.name,
                )
            )
        return rules

    def _too_many(self, clique: int) -> Finding:
        usable, name = self.cluster.usable, self.cluster.name
        pods = self._pods(clique)
        hosts = "host" if usable == 1 else "hosts"
        message = (
            f"{f.listing(pods)} run on {clique.bit_count()} VMs that must all be apart, but vSphere cluster {name} has "
            f"{usable} usable {hosts}: some must share one. The DRS rules keep apart as many as fit."
        )
        return self._finding(clique, REASON_TOO_MANY, message)

    def _contradiction(self, mask: int) -> str:
        vms = [self.cluster.vms[at] for at in bits(mask)]
        return (
            f"The VMs {f.listing(vms, len(vms))} run pods that must share a host, and pods that must be apart: "
            "no placement keeps both, and no DRS rule is written for the affinity."
        )

    def _finding(self, mask: int, reason: str, message: str) -> Finding:
        pods = self._pods(mask)
        first = self.snapshot.pods[pods[0]]
        name = self.cluster.name
        return Finding(
            id=f.finding_id(self.snapshot.site, f.UNSATISFIABLE, RULE, reason, name, f.uid_of(pods[0], first)),
            severity=f.UNSATISFIABLE,
            rule=RULE,
            reason=reason,
            message=message,
            pod=pods[0],
            node=first.spec.node_name or None,
            peers=pods[1:],
            domain=Domain(key="cluster", value=name),
        )

    def _pods(self, mask: int) -> list[str]:
        """The pods of this graph's separations on these VMs, sorted; all pods there where none is separated."""
        classes = {
            one
            for edge in self.edges
            for one in (*edge.separation.owners, *edge.separation.matched)
            if edge.separation.rule == INTER_POD_AFFINITY
        }
        here = {
            name
            for (one, at), names in self.cluster.pods.items()
            if mask >> at & 1 and one in classes
            for name in names
        }
        if not here:
            here = {name for (_, at), names in self.cluster.pods.items() if mask >> at & 1 for name in names}
        return sorted(here)
