"""A tiny cluster as a value: where VMs and pods are, which DRS rules there are, what the evictor remembers.

In: a `Story` (the cluster's size and its workloads). Out: worlds, each in the one form that all worlds share which
differ only by the names of their nodes, hosts and pods; and the snapshot that the real evaluator and deciders read.
What happens to a world: `actors.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, groupby, permutations, product
from typing import Any, NamedTuple

from support.build import HOST, a_node, a_pod, a_workload, spread, term

from underhost.agents.sinks.bindings import OUR_SCHEDULER
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import DrsRule, Host, Vm
from underhost.streams.settings.labels import CAPV_HOST_KEY

SITE, CLUSTER, NAMESPACE = "s", "C0", "shop"
PENDING = -1
DEFAULT_SCHEDULER = "default-scheduler"
APPS = ("a", "b")


@dataclass(frozen=True)
class Load:
    """A workload: its replicas, and from what or to what its pods are kept (`APART` and the others)."""

    replicas: int
    rule: str


def _apart(key: str, other: str | None = None) -> Any:
    return lambda pod, app: pod.apart(term(key, {"app": other or app}))


RULES: dict[str, Any] = {
    "free": lambda pod, app: pod,
    "apart by node": _apart(HOST),
    "apart by host": _apart(CAPV_HOST_KEY),
    "spread over nodes": lambda pod, app: pod.spreads(spread(HOST, {"app": app})),
    "spread over hosts": lambda pod, app: pod.spreads(spread(CAPV_HOST_KEY, {"app": app})),
    "together on a host": lambda pod, app: pod.near(term(CAPV_HOST_KEY, {"app": app})),
    "apart from a by node": _apart(HOST, "a"),
    "apart from a by host": _apart(CAPV_HOST_KEY, "a"),
    "with a on a host": lambda pod, app: pod.near(term(CAPV_HOST_KEY, {"app": "a"})),
}
"""What a pod of an application asks for, by name."""


@dataclass(frozen=True)
class Story:
    """A cluster and who acts in it.

    Attributes:
        loads: workloads `a` and `b`. room: pods on one node, at most.
        ours: Underhost's binder places the pods; else the default scheduler does, which knows no hosts.
        drs: whether Underhost writes DRS rules.
    """

    hosts: int
    nodes: int
    loads: tuple[Load, ...]
    room: int
    ours: bool
    drs: bool

    def __str__(self) -> str:
        loads = " + ".join(f"{load.replicas} {load.rule}" for load in self.loads)
        who = ("binder" if self.ours else "default scheduler") + (" and DRS" if self.drs else "")
        return f"{self.hosts} hosts, {self.nodes} nodes of {self.room}: {loads}; {who}"

    @property
    def options(self) -> Options:
        """As the pipeline has them."""
        return Options(scheduler_names=(OUR_SCHEDULER,))


class Rule(NamedTuple):
    """A DRS rule of ours; `nodes` are positions, whose VMs are its members."""

    name: str
    type: str
    nodes: tuple[int, ...]


class Tries(NamedTuple):
    """What the evictor's loop guard has of one case: see `CaseHistory`. `before`: of an eviction that is under way."""

    app: int
    case: tuple[str, str, str, str]
    low: int
    tries: int
    before: int | None = None


class World(NamedTuple):
    """A moment of a story.

    Attributes:
        hosts: of each node. pods: of each workload the nodes of its pods, sorted; `PENDING` for one that waits.
    """

    hosts: tuple[int, ...]
    pods: tuple[tuple[int, ...], ...]
    rules: tuple[Rule, ...] = ()
    tries: tuple[Tries, ...] = ()

    @property
    def complete(self) -> bool:
        """Every pod runs."""
        return not any(PENDING in nodes for nodes in self.pods)


def canonical(world: World) -> World:
    """One of all worlds that differ only in the names of nodes and hosts, always the same one."""
    orders = list(_orders(world))
    return min(_renamed(world, order) for order in orders) if len(orders) > 1 else _renamed(world, orders[0])


def numbered(world: World) -> World:
    """The same world with its hosts numbered as they come: nothing that is decided asks for their names."""
    return _renamed(world, range(len(world.hosts)))


def _orders(world: World) -> Iterator[Sequence[int]]:
    """The orders of nodes by what is on them and beside them; nodes that look the same are put in every order."""
    on = [
        (
            [nodes.count(at) for nodes in world.pods],
            [rule.name for rule in world.rules if at in rule.nodes],
        )
        for at in range(len(world.hosts))
    ]
    beside = {host: sorted(on[at] for at, other in enumerate(world.hosts) if other == host) for host in world.hosts}
    looks = [(beside[host], on[at]) for at, host in enumerate(world.hosts)]
    ordered = sorted(range(len(looks)), key=looks.__getitem__)
    alike = [list(group) for _, group in groupby(ordered, key=looks.__getitem__)]
    for choice in product(*(permutations(group) for group in alike)):
        yield [at for group in choice for at in group]


def _renamed(world: World, order: Sequence[int]) -> World:
    """Node `order[i]` becomes node `i`; hosts are numbered as they come."""
    new = [0] * (len(order) + 1)
    for name, was in enumerate(order):
        new[was] = name
    new[PENDING] = PENDING
    seen: dict[int, int] = {}
    hosts = tuple([seen.setdefault(world.hosts[was], len(seen)) for was in order])
    return World(
        hosts,
        tuple([tuple(sorted([new[node] for node in nodes])) for nodes in world.pods]),
        tuple(
            sorted([Rule(rule.name, rule.type, tuple(sorted([new[at] for at in rule.nodes]))) for rule in world.rules])
        ),
        world.tries,
    )


def beginnings(story: Story) -> Iterator[World]:
    """Every complete world of the story without rules, each once."""
    placements = [list(combinations_with_replacement(range(story.nodes), load.replicas)) for load in story.loads]
    seen = set[World]()
    for hosts in _shapes(story.hosts, story.nodes):
        for pods in product(*placements):
            if all(sum(nodes.count(node) for nodes in pods) <= story.room for node in range(story.nodes)):
                world = canonical(World(hosts, pods))
                if world not in seen:
                    seen.add(world)
                    yield world


def _shapes(hosts: int, nodes: int) -> set[tuple[int, ...]]:
    """How nodes may lie on hosts, some of which may be empty."""
    return {tuple(sorted(shape)) for shape in product(range(hosts), repeat=nodes)}


# ------------------------------------------------------------------------------------------------- what is read of it
def node_name(at: int) -> str:
    """Of the node at this position; its VM is `vm-` and the name."""
    return f"n{at}"


def snapshot(story: Story, world: World) -> Snapshot:
    """What the tables would hold. Objects that are equal are the same object: the evaluator follows what differs."""
    names = [node_name(at) for at in range(story.nodes)]
    pods = {}
    for app, nodes in enumerate(world.pods):
        for number, node in enumerate(nodes):
            pod = _pod(story.loads[app].rule, story.ours, app, f"{APPS[app]}-{number}", node)
            pods[pod.metadata.namespace + "/" + pod.metadata.name] = pod
    return Snapshot(
        site=SITE,
        nodes={name: _node(name, host, story.room) for name, host in zip(names, world.hosts, strict=True)},
        pods=pods,
        workloads={
            f"ReplicaSet/{NAMESPACE}/{APPS[app]}": _workload(APPS[app], load.replicas)
            for app, load in enumerate(story.loads)
        },
        vms={f"vm-{name}": _vm(name, host) for name, host in zip(names, world.hosts, strict=True)},
        hosts=_hosts(story.hosts),
        rules={(CLUSTER, rule.name): _drs_rule(rule) for rule in world.rules},
        node_hosts={name: _join(name, host) for name, host in zip(names, world.hosts, strict=True)},
        vsphere=True,
    )


@cache
def _pod(rule: str, ours: bool, app: int, name: str, node: int) -> Any:
    pod = a_pod(name, NAMESPACE).labels(app=APPS[app]).owned_by(f"ReplicaSet/{APPS[app]}")
    pod = RULES[rule](pod, APPS[app]).spec(schedulerName=OUR_SCHEDULER if ours else DEFAULT_SCHEDULER)
    return pod.on("" if node == PENDING else node_name(node)).build()


@cache
def _node(name: str, host: int, room: int) -> Any:
    """With its label as the labeller keeps it."""
    return a_node(name).labels({CAPV_HOST_KEY: f"h{host}"}).has(pods=str(room)).build()


@cache
def _workload(name: str, replicas: int) -> Any:
    return a_workload("ReplicaSet", name, replicas, NAMESPACE).build()


@cache
def _vm(name: str, host: int) -> Vm:
    return Vm(id=f"vm-{name}", name=name, host=f"h{host}")


@cache
def _hosts(number: int) -> dict[str, Host]:
    return {f"h{at}": Host(id=f"h{at}", name=f"esx-{at}", cluster=CLUSTER) for at in range(number)}


@cache
def _join(name: str, host: int) -> NodeHost:
    return NodeHost(name, f"vm-{name}", f"h{host}", f"esx-{host}", "name")


@cache
def _drs_rule(rule: Rule) -> DrsRule:
    return DrsRule(rule.name, rule.type, [f"vm-{node_name(at)}" for at in rule.nodes], cluster=CLUSTER)
