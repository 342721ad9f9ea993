"""The scenario `kubevirt`: the seven-node cluster of KubeVirt's blog post on affinity, on four ESXi hosts.

In: `kubevirt.yaml`, an empty cluster and an empty vCenter. Out: both filled. A three-tier application (database, cache,
appliance) in a cluster stretched over three zones, each replica in a zone of its own; here the nodes are VMs, those of
a zone on one host and the control plane on a fourth, so that the replicas can be apart physically too. The
application's pods ask for the scheduler `underhost`; everything else is placed by the simulated cluster itself.
"""

import random
from dataclasses import replace
from functools import cache
from importlib.resources import files

import msgspec
import yaml
from msgspec import Struct

from underhost.schemas import kubernetes as k8s
from underhost.schemas.vsphere import Host, Vm
from underhost.streams.simulated.controllers import Controllers, Owner
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import byte_swapped, plain, pod_conditions, random_uid, raw
from underhost.streams.simulated.vsphere import SimulatedVSphere

MASTER = "node-role.kubernetes.io/master"
RUNS_FOR_FIVE_MINUTES = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
]


class _NodeVm(Struct):
    """A node, the VM it is and the host below it. Without a zone it is the control plane's."""

    name: str
    host: str
    zone: str = ""
    high: bool = False


class _Stage(Struct):
    """Objects that are created one after another, in the order of these fields; components run in static pods."""

    namespaces: list[str]
    owners: list[Owner]
    components: list[str] = []
    services: list[k8s.Service] = []
    budgets: list[k8s.Budget] = []
    deployments: list[k8s.Workload] = []


class _Blog(Struct):
    """The whole file."""

    nodes: list[_NodeVm]
    system: _Stage
    workload: _Stage


@cache
def _blog() -> _Blog:
    tree = yaml.load(files(__package__).joinpath("kubevirt.yaml").read_bytes(), yaml.CSafeLoader)
    return msgspec.json.decode(msgspec.json.encode(tree, order="sorted"), type=_Blog)


def build_system(
    kubernetes: SimulatedKubernetes, controllers: Controllers, vsphere: SimulatedVSphere, source: random.Random
) -> None:
    for number in range(1, 5):
        vsphere.add_host(Host(f"esx-{number}", f"host-1{number}", cpu_mhz=153_600, memory_mib=524_288))
    for number, item in enumerate(_blog().nodes, start=101):
        uuid = random_uid(source)
        cpus, memory = (16, 65_536) if item.high else (8, 32_768)
        vsphere.add_vm(Vm(item.name, f"vm-{number}", uuid, item.host, item.name, cpus, memory))
        kubernetes.create(_node(item, uuid, number, cpus, memory), manager="kubelet")
    _build(_blog().system, kubernetes, controllers)


def build_workload(kubernetes: SimulatedKubernetes, controllers: Controllers) -> None:
    _build(_blog().workload, kubernetes, controllers)


def _build(part: _Stage, kubernetes: SimulatedKubernetes, controllers: Controllers) -> None:
    for name in part.namespaces:
        kubernetes.create(k8s.Namespace(k8s.Metadata(name, labels=raw({"kubernetes.io/metadata.name": name}))))
    for component in part.components:
        kubernetes.create(_static_pod(component, kubernetes.node("kni-control-plane")))
    for service in part.services:
        kubernetes.create(service)
    for budget in part.budgets:
        kubernetes.create(budget)
    uid_of = {each.metadata.name: kubernetes.create(each).metadata.uid for each in part.deployments}
    for owner in part.owners:
        if (parent := owner.parent) is not None:
            owner = replace(owner, parent=msgspec.structs.replace(parent, uid=uid_of[parent.name]))
        controllers.add_owner(replace(owner, spec=admitted(owner.spec)))


def admitted(spec: k8s.PodSpec) -> k8s.PodSpec:
    """The pod template with what the API server's admission adds: two tolerations and a priority."""
    return msgspec.structs.replace(
        spec,
        tolerations=raw([*plain(spec.tolerations), *RUNS_FOR_FIVE_MINUTES]),
        priority=spec.priority or 0,
        preemption_policy="PreemptLowerPriority",
    )


def _static_pod(component: str, node: k8s.Node) -> k8s.Pod:
    """A control plane component: a mirror pod that its node owns, running."""
    about = k8s.Metadata(
        name=f"{component}-{node.metadata.name}",
        namespace="kube-system",
        labels=raw({"component": component, "tier": "control-plane"}),
        annotations=k8s.Annotations("static"),
        owner_references=[k8s.OwnerReference("Node", node.metadata.name, node.metadata.uid, "v1", True)],
    )
    container = k8s.Container(component, f"registry.example/{component}:v1", raw({"requests": {"cpu": "100m"}}))
    spec = k8s.PodSpec(
        node_name=node.metadata.name,
        containers=[container],
        tolerations=raw([{"operator": "Exists", "effect": "NoExecute"}]),
        host_network=True,
    )
    conditions = pod_conditions("Initialized", "Ready", "ContainersReady", "PodScheduled")
    return k8s.Pod(about, admitted(spec), k8s.PodStatus(phase="Running", conditions=conditions))


def _node(item: _NodeVm, uuid: str, number: int, cpus: int, memory: int) -> k8s.Node:
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": item.name}
    if item.zone:
        labels |= {"topology.kubernetes.io/region": "iberia", "topology.kubernetes.io/zone": item.zone}
    else:
        labels |= {MASTER: ""}
    if item.high:
        labels |= {"performance": "high"}
    allocatable = {"cpu": str(cpus), "memory": f"{memory}Mi", "pods": "110", "ephemeral-storage": "100Gi"}
    if item.zone:
        allocatable |= {"devices.kubevirt.io/kvm": "1k"}
    conditions = [k8s.Condition(name, "False") for name in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    return k8s.Node(
        k8s.NodeMetadata(item.name, labels=raw(labels)),
        k8s.NodeSpec(f"vsphere://{uuid}", taints=raw([] if item.zone else [{"key": MASTER, "effect": "NoSchedule"}])),
        k8s.NodeStatus(
            raw(allocatable),
            addresses=[
                k8s.NodeAddress("InternalIP", f"172.17.0.{number - 99}"),
                k8s.NodeAddress("Hostname", item.name),
            ],
            conditions=[*conditions, k8s.Condition("Ready", "True", "KubeletReady")],
            node_info=k8s.NodeSystemInfo(byte_swapped(uuid)),
        ),
    )
