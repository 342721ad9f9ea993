"""A site of any size: two vSphere clusters, three zones, racks, workloads of twenty-five; every pod has a host."""

import msgspec

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Metadata, Node, OwnerReference, Pod, PodSpec, PodStatus, Workload
from underhost.schemas.records import FindingEvent, NodeHost
from underhost.schemas.vsphere import Host, Vm

ZONE, RACK = "topology.kubernetes.io/zone", "topology.example.com/rack"
NODES_PER_HOST = 8
REPLICAS = 25
MOMENT = "2026-01-05T08:00:00.000Z"


def big_site(nodes: int, pods: int) -> Snapshot:
    """So many nodes and pods, laid out evenly."""
    hosts = {f"host-{at}": _host(at) for at in range(-(-nodes // NODES_PER_HOST))}
    names = [f"worker-{at:04d}" for at in range(nodes)]
    on = {name: f"host-{at // NODES_PER_HOST}" for at, name in enumerate(names)}
    return Snapshot(
        site="prod",
        nodes={name: _node(name, at) for at, name in enumerate(names)},
        pods={pod.metadata.namespace + "/" + pod.metadata.name: pod for pod in (_pod(at, names) for at in range(pods))},
        workloads={
            f"ReplicaSet/team-{at % 40}/app-{at}-5d9c7b8f6d": _replica_set(at) for at in range(-(-pods // REPLICAS))
        },
        vms={f"vm-{name}": Vm(name, f"vm-{name}", host=host) for name, host in on.items()},
        hosts=hosts,
        node_hosts={
            name: NodeHost(name, f"vm-{name}", host, hosts[host].name, "providerID", MOMENT)
            for name, host in on.items()
        },
        vsphere=True,
    )


def _host(at: int) -> Host:
    return Host(f"esx-{at:03d}", f"host-{at}", "east" if at % 2 else "west")


def _node(name: str, at: int) -> Node:
    host = at // NODES_PER_HOST
    labels = {"kubernetes.io/hostname": name, ZONE: "abc"[host % 3], RACK: f"r{host // 8:02d}"}
    return Node(Metadata(name=name, uid=name, labels=msgspec.Raw(msgspec.json.encode(labels))))


def _replica_set(at: int) -> Workload:
    above = [OwnerReference("Deployment", f"app-{at}", f"d{at}", "apps/v1", True)]
    meta = Metadata(name=f"app-{at}-5d9c7b8f6d", namespace=f"team-{at % 40}", uid=f"r{at}", owner_references=above)
    return Workload("ReplicaSet", meta, "apps/v1")


def _pod(at: int, nodes: list[str]) -> Pod:
    of = at // REPLICAS
    owner = [OwnerReference("ReplicaSet", f"app-{of}-5d9c7b8f6d", f"r{of}", "apps/v1", True)]
    meta = Metadata(
        name=f"app-{of}-5d9c7b8f6d-{at:05d}", namespace=f"team-{of % 40}", uid=f"p{at}", owner_references=owner
    )
    return Pod(meta, PodSpec(node_name=nodes[(at * 7919) % len(nodes)]), PodStatus("Running"))


def shared_hosts(snapshot: Snapshot, number: int) -> list[FindingEvent]:
    """Findings about two pods each."""
    names = list(snapshot.pods)
    return [
        FindingEvent(
            f"f{at:05d}",
            "opened",
            snapshot.site,
            "physical" if at % 3 else "drift",
            "PhysicalHost" if at % 3 else "PodTopologySpread",
            "node(s) didn't match pod anti-affinity rules",
            f"{names[at * 31]} and {names[at * 31 + 1]} run on one ESXi host, though a rule keeps them apart.",
            MOMENT,
            MOMENT,
            {},
            names[at * 31],
            None,
            [names[at * 31 + 1]],
        )
        for at in range(number)
    ]
