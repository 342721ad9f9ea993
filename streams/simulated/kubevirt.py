"""The scenario `kubevirt`: the seven-node cluster of KubeVirt's blog post on affinity, on four ESXi hosts.

In: an empty cluster and an empty vCenter. Out: both filled. A three-tier application (database, cache, appliance) in a
cluster stretched over three zones, each replica in a zone of its own; here the nodes are VMs, those of a zone on one
host and the control plane on a fourth, so that the replicas can be apart physically too. The application's pods ask
for the scheduler `underhost`; everything else is placed by the simulated cluster itself.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import structs

from underhost.schemas.kubernetes import (
    Budget,
    BudgetSpec,
    Condition,
    Metadata,
    Namespace,
    Node,
    NodeAddress,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    OwnerReference,
    PodSpec,
    Workload,
    WorkloadSpec,
)
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.simulated.controllers import KUBEVIRT, Controllers, Owner
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import byte_swapped, random_uid, raw
from underhost.streams.simulated.templates import (
    OUR_SCHEDULER,
    metadata,
    one_of,
    pod_spec,
    replica_set,
    service,
    static_pod,
    virtual_machine,
)
from underhost.streams.simulated.vsphere import SimulatedVSphere

APPLICATION = "customapp"
ZONE = "topology.kubernetes.io/zone"
MASTER_TAINT = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
EVERYWHERE = [{"operator": "Exists"}]


@dataclass(frozen=True)
class _NodeVm:
    """A node, the VM it is and the host below it."""

    name: str
    host: str
    zone: str = ""
    high: bool = False


# One host a zone, and one for the control plane: `host-14` is where DRS finds room.
KUBEVIRT_NODES = (
    _NodeVm("kni-control-plane", "host-14"),
    _NodeVm("kni-worker", "host-11", "scu"),
    _NodeVm("kni-worker2", "host-11", "scu", high=True),
    _NodeVm("kni-worker3", "host-12", "bcn"),
    _NodeVm("kni-worker4", "host-12", "bcn", high=True),
    _NodeVm("kni-worker5", "host-13", "sab"),
    _NodeVm("kni-worker6", "host-13", "sab", high=True),
)


def build_system(
    kubernetes: SimulatedKubernetes, controllers: Controllers, vsphere: SimulatedVSphere, source: random.Random
) -> None:
    for number in range(1, 5):
        host = Host(f"esx-{number}", f"host-1{number}", cpu_mhz=153_600, memory_mib=524_288)
        vsphere.add_host(host)
    for number, item in enumerate(KUBEVIRT_NODES, start=101):
        uuid = random_uid(source)
        cpus, memory = (16, 65_536) if item.high else (8, 32_768)
        vsphere.add_vm(Vm(item.name, f"vm-{number}", uuid, item.host, item.name, cpus, memory))
        kubernetes.create(_node(item, uuid, number, cpus, memory), manager="kubelet")
    for namespace in ("default", "kube-system", "kubevirt"):
        kubernetes.create(Namespace(metadata(namespace, "", {"kubernetes.io/metadata.name": namespace})))
    for component in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        kubernetes.create(static_pod(component, kubernetes.nodes()["kni-control-plane"]))
    kubernetes.create(service("kube-dns", "kube-system", {"k8s-app": "kube-dns"}))
    system_owners = (
        Owner(
            "DaemonSet",
            "kube-system",
            "kube-proxy",
            {"k8s-app": "kube-proxy"},
            pod_spec(EVERYWHERE, priority=2_000_001_000, priority_class_name="system-node-critical"),
        ),
        Owner("DaemonSet", "kubevirt", "virt-handler", {"kubevirt.io": "virt-handler"}, pod_spec([])),
        replica_set(
            "kube-system", "coredns-6955765f44", {"k8s-app": "kube-dns"}, pod_spec([MASTER_TAINT], "100m", "70Mi")
        ),
        replica_set("kubevirt", "virt-api-74bb5f4c7d", {"kubevirt.io": "virt-api"}, _apart_if_possible("virt-api")),
        replica_set(
            "kubevirt",
            "virt-controller-6b9f7d5c9",
            {"kubevirt.io": "virt-controller"},
            _apart_if_possible("virt-controller"),
        ),
    )
    for owner in system_owners:
        controllers.add_owner(owner)


def build_workload(kubernetes: SimulatedKubernetes, controllers: Controllers) -> None:
    kubernetes.create(Namespace(metadata(APPLICATION, "", {"kubernetes.io/metadata.name": APPLICATION})))
    database, cache, appliance = (
        {"kubevirt.io/domain": "mssql2016"},
        {"app": "cache"},
        {"kubevirt.io/domain": "blackbox"},
    )
    for name, selector in (("mssql2016", database), ("varnish-cache", cache), ("blackbox", appliance)):
        kubernetes.create(service(name, APPLICATION, selector))
    kubernetes.create(_budget("mssql2016", database, BudgetSpec(min_available=2)))
    kubernetes.create(_budget("varnish-cache", cache, BudgetSpec(max_unavailable=1)))
    kubernetes.create(_budget("blackbox", appliance, BudgetSpec(min_available=2)))
    deployment = kubernetes.create(
        Workload(
            "Deployment",
            Metadata(name="varnish-cache", namespace=APPLICATION),
            "apps/v1",
            WorkloadSpec(3, selector=raw({"matchLabels": cache})),
        )
    )
    controllers.add_owner(_database(database))
    controllers.add_owner(_cache(cache, deployment.metadata.uid))
    controllers.add_owner(_appliance(appliance))


def _database(labels: Mapping[str, str]) -> Owner:
    """Three SQL servers, only on fast nodes, never two in a zone."""
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [one_of("performance", "high")]}]
            }
        },
        "podAntiAffinity": _never_two_in_a_zone("kubevirt.io/domain", "mssql2016"),
    }
    spec = virtual_machine("16Gi", affinity)
    names = ("mssql2016p948r/257pn", "mssql2016tpj6n/l2fnf", "mssql2016z2qnw/t924b")
    return Owner(KUBEVIRT, APPLICATION, "mssql2016", labels, spec, 3, "kubevirt.io/v1", names)


def _cache(labels: Mapping[str, str], deployment: str) -> Owner:
    """Three caches, rather not on fast nodes, never two in a zone."""
    not_fast = {"key": "performance", "operator": "NotIn", "values": ["high"]}
    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "preference": {"matchExpressions": [not_fast]}}
            ]
        },
        "podAntiAffinity": _never_two_in_a_zone("app", "cache"),
    }
    spec = pod_spec([], scheduler_name=OUR_SCHEDULER, affinity=raw(affinity), name="cache")
    name = "varnish-cache-54489f9fc9"
    names = tuple(f"{name}-{end}" for end in ("5pbr2", "9s9tm", "dflzs"))
    parent = OwnerReference("Deployment", "varnish-cache", deployment, "apps/v1", True)
    labels = {**labels, "pod-template-hash": "54489f9fc9"}
    return Owner("ReplicaSet", APPLICATION, name, labels, spec, 3, "apps/v1", names, parent)


def _appliance(labels: Mapping[str, str]) -> Owner:
    """Three appliances, each on the node of a cache, never two in a zone.

    The blog names the topology key `topology.kubernetes.io/hostname`, which no node carries; this is the one it means.
    """
    with_a_cache = {
        "labelSelector": {"matchExpressions": [one_of("app", "cache")]},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [with_a_cache]},
        "podAntiAffinity": _never_two_in_a_zone("kubevirt.io/domain", "blackbox"),
    }
    spec = virtual_machine("2Gi", affinity)
    names = ("blackboxtk49x/nw45s", "blackboxxt829/snjth", "blackboxzf9kt/6mh56")
    return Owner(KUBEVIRT, APPLICATION, "blackbox", labels, spec, 3, "kubevirt.io/v1", names)


# ------------------------------------------------------------------------------------------------------------- parts
def _node(item: _NodeVm, uuid: str, number: int, cpus: int, memory: int) -> Node:
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": item.name}
    if item.zone:
        labels |= {"topology.kubernetes.io/region": "iberia", ZONE: item.zone}
    else:
        labels |= {"node-role.kubernetes.io/master": ""}
    if item.high:
        labels |= {"performance": "high"}
    allocatable = {"cpu": str(cpus), "memory": f"{memory}Mi", "pods": "110", "ephemeral-storage": "100Gi"}
    if item.zone:
        allocatable |= {"devices.kubevirt.io/kvm": "1k"}
    conditions = [Condition(name, "False") for name in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    return Node(
        metadata(item.name, "", labels),
        NodeSpec(f"vsphere://{uuid}", taints=raw([] if item.zone else [MASTER_TAINT])),
        NodeStatus(
            raw(allocatable),
            addresses=[NodeAddress("InternalIP", f"172.17.0.{number - 99}"), NodeAddress("Hostname", item.name)],
            conditions=[*conditions, Condition("Ready", "True", "KubeletReady")],
            node_info=NodeSystemInfo(byte_swapped(uuid)),
        ),
    )


def _budget(name: str, selector: Mapping[str, str], spec: BudgetSpec) -> Budget:
    spec = structs.replace(spec, selector=raw({"matchLabels": dict(selector)}))
    return Budget(metadata(name, APPLICATION, {}), spec=spec)


def _apart_if_possible(component: str) -> PodSpec:
    term = {
        "labelSelector": {"matchExpressions": [one_of("kubevirt.io", component)]},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    return pod_spec([{"key": "CriticalAddonsOnly", "operator": "Exists"}], affinity=raw({"podAntiAffinity": preferred}))


def _never_two_in_a_zone(key: str, value: str) -> dict[str, object]:
    term = {"labelSelector": {"matchExpressions": [one_of(key, value)]}, "topologyKey": ZONE}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
