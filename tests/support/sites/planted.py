"""A site of any size with planted findings, of which it is known how few vMotions end them.

Replicas are apart everywhere but where findings are planted: two VMs that run replicas of one application stand on one
host. Every finding has VMs of its own, so one vMotion each is the least there can be, and the smaller VM of a pair is
the least that must be copied.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import (
    Metadata,
    Node,
    NodeStatus,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Workload,
    raw,
)
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Cluster, Host, Vm

KEY = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTS_OF_A_CLUSTER = 50
VMS_OF_A_HOST = 4
SIZES = (8192, 16384)
ROOM = 6 * SIZES[1]


class Planted(NamedTuple):
    """A site, with the fewest vMotions that repair it and the MiB that they copy."""

    snapshot: Snapshot
    vmotions: int
    memory: int


def planted_site(vms: int, pods: int, findings: int, replicas: int = 4) -> Planted:
    """So many VMs on a quarter as many hosts, with pods in applications of so many replicas, and so many findings."""
    hosts = -(-vms // VMS_OF_A_HOST)
    on = [at % hosts for at in range(vms)]
    cluster_of = [f"C{host // HOSTS_OF_A_CLUSTER:02d}" for host in range(hosts)]
    memory = [SIZES[at % 2] for at in range(vms)]
    apps = pods // replicas
    nodes = {app: _nodes_of(app, apps, vms, hosts, replicas) for app in range(apps)}
    copied = 0
    for number in range(findings):
        # VM `one` joins the host of `other`, and an application of their own runs on both: nobody else's is there.
        one, other = _pair(number, findings, hosts)
        on[one] = on[other]
        memory[one], memory[other] = SIZES[number % 2], SIZES[1]
        copied += min(memory[one], memory[other])
    objects = dict(_pods(nodes))
    for number in range(findings):
        objects.update(_planted(number, *_pair(number, findings, hosts)))
    names = [f"n{at:05d}" for at in range(vms)]
    listed = {f"host-{at}": Host(f"esx-{at:04d}", f"host-{at}", cluster_of[at], memory_mib=ROOM) for at in range(hosts)}
    return Planted(
        Snapshot(
            nodes={name: _node(name) for name in names},
            pods=objects,
            workloads={f"ReplicaSet/shop/app-{app}": _owner(app, replicas) for app in range(apps)},
            vms={
                f"vm-{name}": Vm(name, f"vm-{name}", host=f"host-{on[at]}", memory_mib=memory[at])
                for at, name in enumerate(names)
            },
            hosts=listed,
            clusters={name: Cluster(name) for name in sorted(set(cluster_of))},
            node_hosts={
                name: NodeHost(name, f"vm-{name}", f"host-{on[at]}", listed[f"host-{on[at]}"].name, "providerID")
                for at, name in enumerate(names)
            },
            vsphere=True,
        ),
        findings,
        copied,
    )


def _pair(number: int, findings: int, hosts: int) -> tuple[int, int]:
    """Two VMs on neighbouring hosts of one cluster, the pairs spread over the site; VM `at` is on host `at % hosts`."""
    stride = max(2, hosts // findings // 2 * 2)
    return number * stride + 1, number * stride


def _nodes_of(app: int, apps: int, vms: int, hosts: int, replicas: int) -> list[int]:
    """VMs on different hosts, far from one another, of the host's second VM upwards: planted pairs have the first."""
    rows = vms // hosts - 1
    row = 1 + app % rows
    first = app * 7919 % hosts
    return [row * hosts + (first + replica * (hosts // replicas)) % hosts for replica in range(replicas)]


def _pods(nodes: dict[int, list[int]]) -> Iterator[tuple[str, Pod]]:
    for app, places in nodes.items():
        affinity, labels = _apart(f"app-{app}"), raw({"app": f"app-{app}"})
        for replica, vm in enumerate(places):
            yield _pod(f"app-{app}-{replica}", vm, affinity, labels)


def _planted(number: int, *vms: int) -> Iterator[tuple[str, Pod]]:
    affinity, labels = _apart(f"planted-{number}"), raw({"app": f"planted-{number}"})
    for replica, vm in enumerate(vms):
        yield _pod(f"planted-{number}-{replica}", vm, affinity, labels)


def _apart(app: str) -> msgspec.Raw:
    term = {"topologyKey": KEY, "labelSelector": {"matchLabels": {"app": app}}}
    return raw({"podAntiAffinity": {REQUIRED: [term]}})


def _pod(name: str, vm: int, affinity: msgspec.Raw, labels: msgspec.Raw) -> tuple[str, Pod]:
    owner = [OwnerReference("ReplicaSet", name.rpartition("-")[0], name.rpartition("-")[0], "apps/v1", True)]
    meta = Metadata(name=name, namespace="shop", uid=name, labels=labels, owner_references=owner)
    spec = PodSpec(node_name=f"n{vm:05d}", affinity=affinity)
    return f"shop/{name}", Pod(meta, spec, PodStatus("Running"))


def _node(name: str) -> Node:
    room = raw({"cpu": "32", "memory": "64Gi", "pods": "250"})
    return Node(Metadata(name=name, uid=name, labels=raw({KEY: name})), status=NodeStatus(allocatable=room))


def _owner(app: int, replicas: int) -> Workload:
    meta = Metadata(name=f"app-{app}", namespace="shop", uid=f"app-{app}")
    return Workload("ReplicaSet", meta, "apps/v1")
