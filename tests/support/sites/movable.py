"""Seeded random sites of up to six hosts whose replicas share hosts: for tests of what moving VMs repairs.

A `Puzzle` says in plain values what is on which host and what forbids what, for models that know nothing of ours; its
`snapshot` is the same site as the product reads it.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from msgspec import structs
from support.build import HOST, ZONE, Built, a_budget, a_node, a_pod, a_site, a_workload, spread, term

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import Cluster, DrsRule
from underhost.schemas.vsphere import Host as EsxiHost

HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
MIB_OF_A_VM = (4096, 8192)


@dataclass(frozen=True)
class Replicas:
    """An application: its pods, by the node of each, must be apart by `key`; by "" nothing parts them.

    `kind` is anti, or spread (which parts hosts, and allows any skew of nodes). `misplaced`: the pod, by its position,
    that its node selector keeps from the node where it is; `fixed` are those that no eviction may end.
    """

    name: str
    key: str
    kind: str
    nodes: tuple[str, ...]
    misplaced: int | None = None
    fixed: bool = False


@dataclass(frozen=True)
class Puzzle:
    """A site. Hosts and VMs by name; `at` is where each VM is, `zone` its node's zone, "" for none."""

    hosts: tuple[str, ...]
    at: Mapping[str, str]
    zone: Mapping[str, str]
    memory: Mapping[str, int]
    room: Mapping[str, int]
    closed: frozenset[str]
    pinned: frozenset[str]
    blind: frozenset[tuple[str, str]]
    apart: tuple[frozenset[str], ...]
    bound: Mapping[str, frozenset[str]]
    apps: tuple[Replicas, ...]
    ssd: frozenset[str] = field(default=frozenset())
    reconciled: frozenset[frozenset[str]] = field(default=frozenset())
    """Pairs of VMs that need not be apart any more, in thought."""

    def conflicts(self) -> Iterator[tuple[str, str, str]]:
        """(application, VM, VM): pods of these VMs must not share a host. Nodes are named as their VMs."""
        for app in self.apps:
            for one, other in combinations(sorted(set(app.nodes)), 2):
                zones = self.zone[one], self.zone[other]
                if app.key in (HOST, HOST_KEY) or (app.key == ZONE and all(zones) and zones[0] != zones[1]):
                    yield app.name, one, other

    def snapshot(self) -> Snapshot:
        """As the product reads it."""
        objects: list[Built] = []
        for name in self.at:
            node = a_node(name)
            node = node.zone(self.zone[name]) if self.zone[name] else node
            objects.append(node.labels(disk="ssd") if name in self.ssd else node)
        for app in self.apps:
            objects += self._objects(app)
        site = a_site(*objects, on=dict(self.at), hosts=self._hosts(), clusters=[self._cluster()])
        vms = {
            ref: structs.replace(
                vm,
                memory_mib=self.memory[vm.name],
                datastores=[f"ds-{vm.name}"] if any(one == vm.name for one, _ in self.blind) else [],
            )
            for ref, vm in site.vms.items()
        }
        return replace(site, vms=vms, rules={("C0", rule.name): rule for rule in self._rules()})

    def _objects(self, app: Replicas) -> Iterator[Built]:
        yield a_workload("ReplicaSet", app.name, len(app.nodes))
        if app.fixed:
            yield a_budget(app.name, {"app": app.name}, min_available=len(app.nodes))
        for number, node in enumerate(app.nodes):
            pod = a_pod(f"{app.name}-{number}").labels(app=app.name).on(node)
            if app.kind == "spread":
                pod = pod.spreads(spread(app.key, {"app": app.name}, skew=50))
            elif app.key:
                pod = pod.apart(term(app.key, {"app": app.name}))
            if app.misplaced is not None:
                pod = pod.owned_by(f"ReplicaSet/{app.name}").spec(schedulerName="default-scheduler")
                pod = pod.spec(nodeSelector={"disk": "ssd"}) if app.misplaced == number else pod
            yield pod

    def _hosts(self) -> list[EsxiHost]:
        unseen = {name: [f"ds-{vm}" for vm, host in self.blind if host == name] for name in self.hosts}
        every = ["ds", *(f"ds-{vm}" for vm in self.at)]
        return [
            EsxiHost(
                id=name,
                name=f"esx-{name}",
                cluster="C0",
                state="maintenance" if name in self.closed else "connected",
                memory_mib=self.room[name],
                datastores=[store for store in every if store not in unseen[name]],
            )
            for name in self.hosts
        ]

    def _cluster(self) -> Cluster:
        return Cluster("C0", overrides={f"vm-{vm}": "manual" for vm in sorted(self.pinned)})

    def _rules(self) -> Iterator[DrsRule]:
        for number, vms in enumerate(self.apart):
            yield DrsRule(f"apart-{number}", "anti-affinity", sorted(f"vm-{vm}" for vm in vms), cluster="C0")
        for vm, hosts in self.bound.items():
            yield DrsRule(f"on-{vm}", "vm-host", [f"vm-{vm}"], sorted(hosts), mandatory=True, cluster="C0")


def a_puzzle(seed: int) -> Puzzle:
    """The site of a seed."""
    random_ = random.Random(seed)
    hosts = tuple(f"h{number}" for number in range(random_.randint(2, 6)))
    vms = [f"n{number}" for number in range(random_.randint(2, 10))]
    at = {vm: random_.choice(hosts) for vm in vms}
    memory = {vm: random_.choice(MIB_OF_A_VM) for vm in vms}
    tight = random_.random() < 0.5
    room = {host: random_.choice((0, 8192, 12288, 16384, 24576)) if tight else 0 for host in hosts}
    zone = {vm: random_.choice(("a", "b", "c", "")) for vm in vms}
    rare = random_.choice((0.0, 0.1, 0.25))
    pairs = [(vm, host) for vm in vms for host in hosts if at[vm] != host]
    puzzle = Puzzle(
        hosts=hosts,
        at=at,
        zone=zone,
        memory=memory,
        room=room,
        closed=frozenset(host for host in hosts if random_.random() < rare),
        pinned=frozenset(vm for vm in vms if random_.random() < rare),
        blind=frozenset(pair for pair in pairs if random_.random() < rare),
        apart=tuple(frozenset(random_.sample(vms, 2)) for _ in range(random_.choice((0, 0, 1, 2))) if len(vms) > 1),
        bound={
            vm: frozenset(random_.sample(hosts, random_.randint(1, len(hosts))))
            for vm in vms
            if random_.random() < rare
        },
        apps=(),
        ssd=frozenset(vm for vm in vms if random_.random() < 0.4),
    )
    return replace(puzzle, apps=tuple(_apps(random_, puzzle, vms)))


def _apps(random_: random.Random, puzzle: Puzzle, vms: Sequence[str]) -> Iterator[Replicas]:
    left = 25
    for number in range(random_.randint(1, 5)):
        size = min(random_.randint(2, 5), len(vms), left)
        left -= size
        if size < 2:
            return
        key, kind = random_.choice(
            ((HOST, "anti"), (HOST, "anti"), (HOST, "spread"), (ZONE, "anti"), (HOST_KEY, "anti"))
        )
        if key == ZONE:  # not two of one zone: a vMotion leaves nodes where they are
            zoned = {puzzle.zone[vm]: vm for vm in random_.sample(list(vms), len(vms)) if puzzle.zone[vm]}
            chosen = sorted(zoned.values())
        else:
            chosen = random_.sample(list(vms), size)
        if len(chosen) > 1:
            yield Replicas(f"app-{number}", key, kind, tuple(chosen))
    for number in range(random_.choice((0, 0, 1, 2))):
        wrong = sorted(set(vms) - puzzle.ssd)
        if wrong:
            nodes = (random_.choice(wrong), random_.choice(list(vms)))
            yield Replicas(f"lost-{number}", "", "", nodes, misplaced=0, fixed=random_.random() < 0.3)
