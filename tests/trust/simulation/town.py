"""Small random sites: a few ESXi hosts, nodes and applications that a seed chooses, and what may happen to them.

In: dice. Out: a `Scenario` for the simulated site, whether VMs are moved, and the acts of fate: one thing that people,
vSphere or Kubernetes do. Small on purpose: a site of five nodes has every kind of conflict, and a seed has to be quick.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.simulation.operated import OperatedSite

from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import Conflict, Gone, Refused, Retry
from underhost.schemas.vsphere import Cluster, Host, Vm
from underhost.streams.settings.labels import CAPV_HOST_KEY
from underhost.streams.settings.sinks import MoveSettings
from underhost.streams.simulated.controllers import Controllers, Owner
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.kubevirt import admitted
from underhost.streams.simulated.objects import byte_swapped, random_uid, raw
from underhost.streams.simulated.scenarios import Scenario
from underhost.streams.simulated.vsphere import SimulatedVSphere

NAMESPACE = "shop"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PERSON, STRANGER = "kubectl-label", "python-requests"
"""Field managers of a person, whose host label is corrected, and of a controller, whose label is left alone."""
SCHEDULERS = ("underhost", "underhost", "default-scheduler")


def scenario(dice: random.Random) -> Scenario:
    """A site of three or four hosts, four or five nodes and two or three applications."""
    hosts, nodes = dice.randint(3, 4), dice.randint(4, 5)
    owners = [_application(f"app-{number}", dice) for number in range(dice.randint(2, 3))]
    budgets = [_budget(owner, dice) for owner in owners if dice.random() < 0.7]

    def system(
        kubernetes: SimulatedKubernetes, controllers: Controllers, vsphere: SimulatedVSphere, source: random.Random
    ) -> None:
        for number in range(1, hosts + 1):
            vsphere.add_host(Host(f"esx-{number}", f"host-1{number}", cpu_mhz=100_000, memory_mib=262_144))
        for number in range(1, nodes + 1):
            uuid, name = random_uid(source), f"node-{number}"
            host = f"host-1{source.randint(1, hosts)}"
            vsphere.add_vm(Vm(name, f"vm-10{number}", uuid, host, name, 8, 32_768))
            kubernetes.create(_node(name, uuid, f"zone-{number % 3}"), manager="kubelet")

    def workload(kubernetes: SimulatedKubernetes, controllers: Controllers) -> None:
        kubernetes.create(k8s.Namespace(k8s.Metadata(NAMESPACE, labels=raw({}))))
        for budget in budgets:
            kubernetes.create(budget)
        for owner in owners:
            controllers.add_owner(owner)

    # What the demo does to a site is not done here: nobody looks at the moves and the quorum.
    move = ("node-1", "esx-1")
    return Scenario(
        "a small random site", Cluster("c0", "domain-c1"), system, workload, move, "esx-1", "node-1", "", move
    )


def _node(name: str, uuid: str, zone: str) -> k8s.Node:
    labels = {HOSTNAME: name, ZONE: zone}
    return k8s.Node(
        k8s.Metadata(name, labels=raw(labels)),
        k8s.NodeSpec(f"vsphere://{uuid}"),
        k8s.NodeStatus(
            raw({"cpu": "8", "memory": "32Gi", "pods": "110"}),
            addresses=[k8s.NodeAddress("Hostname", name)],
            conditions=[k8s.Condition("Ready", "True", "KubeletReady")],
            node_info=k8s.NodeSystemInfo(byte_swapped(uuid)),
        ),
    )


def _application(name: str, dice: random.Random) -> Owner:
    labels = {"app": name}
    selector = {"matchLabels": labels}
    topology = dice.choice((CAPV_HOST_KEY, HOSTNAME, ZONE))
    term = {"labelSelector": selector, "topologyKey": topology}
    affinity: dict[str, Any] = {}
    spread: list[dict[str, Any]] = []
    match dice.randrange(4):
        case 0 | 1:
            affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case 2:
            weighted = {"weight": 10, "podAffinityTerm": term}
            affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
        case 3:
            spread = [
                {
                    "maxSkew": 1,
                    "topologyKey": topology,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
    spec = k8s.PodSpec(
        scheduler_name=dice.choice(SCHEDULERS),
        containers=[k8s.Container("main", "registry.example/main:v1", raw({"requests": {"cpu": "500m"}}))],
        affinity=raw(affinity),
        topology_spread_constraints=raw(spread),
    )
    kind = dice.choice(("ReplicaSet", "ReplicaSet", "StatefulSet"))
    return Owner(kind, NAMESPACE, name, labels, admitted(spec), replicas=dice.randint(2, 3))


def _budget(owner: Owner, dice: random.Random) -> k8s.Budget:
    selector = raw({"matchLabels": dict(owner.labels)})
    spec = dice.choice(
        (
            k8s.BudgetSpec(max_unavailable=1, selector=selector),
            k8s.BudgetSpec(min_available=owner.replicas - 1, selector=selector),
            k8s.BudgetSpec(min_available="50%", selector=selector),
        )
    )
    return k8s.Budget(k8s.Metadata(owner.name, namespace=owner.namespace), spec=spec)


# ------------------------------------------------------------------------------------------------------------ the mover
MOVER_ONE_IN = 3
"""Of so many seeds one has a mover."""
PER_HOST, PER_CLUSTER = 1, 2


@dataclass(frozen=True)
class Moving:
    """What a seed has of the mover.

    Attributes:
        on: whether VMs are moved. drs_rules: whether DRS rules are written, too, so that DRS goes first.
        vmotion: seconds that a VM takes to move.
    """

    on: bool = False
    drs_rules: bool = True
    vmotion: float = 1.5
    settings: MoveSettings = field(default_factory=MoveSettings)


def moving(seed: int, dice: random.Random) -> Moving:
    """That of a seed."""
    if seed % MOVER_ONE_IN != 1:
        return Moving()
    settings = MoveSettings(wait=2.0, per_host=PER_HOST, per_cluster=PER_CLUSTER, per_minute=60)
    return Moving(True, dice.random() < 0.3, dice.choice((1.5, 6.0, 20.0)), settings)


# --------------------------------------------------------------------------------------------------------- acts of fate
Act = Callable[[OperatedSite, random.Random], object]


def _node_of(site: OperatedSite, dice: random.Random) -> str:
    return dice.choice(sorted(site.kubernetes.nodes()))


def _host_of(site: OperatedSite, dice: random.Random) -> str:
    return dice.choice(sorted(host.name for host in site.vsphere.hosts().values()))


def _delete_pod(site: OperatedSite, dice: random.Random) -> None:
    namespace, _, name = dice.choice(sorted(site.kubernetes.pods())).partition("/")
    site.delete_pod(namespace, name)


def _scale(site: OperatedSite, dice: random.Random) -> None:
    workloads = sorted(
        (value.kind, value.metadata.name)
        for kind in ("replicaset", "statefulset")
        for _, value in site.kubernetes.store.of_kind(kind)
    )
    kind, name = dice.choice(workloads)
    site.controllers.scale(kind, NAMESPACE, name, dice.randint(1, 4))


def _standby(site: OperatedSite, dice: random.Random) -> None:
    site.add_node(f"node-{dice.randint(6, 8)}", _host_of(site, dice), _node_of(site, dice))


def _lose_node(site: OperatedSite, dice: random.Random) -> None:
    if len(site.kubernetes.nodes()) > 3:
        site.delete_node(_node_of(site, dice))


def _mislabel(site: OperatedSite, dice: random.Random, manager: str = PERSON) -> None:
    value = dice.choice(("esx-1", "esx-2", "nowhere", None))
    site.label_node(_node_of(site, dice), {CAPV_HOST_KEY: value}, manager=manager)


ACTS: Mapping[str, tuple[int, Act]] = {
    "vmotion": (30, lambda site, dice: site.move_vm(_node_of(site, dice), _host_of(site, dice))),
    "pod deleted": (12, _delete_pod),
    "scaled": (6, _scale),
    "drained": (3, lambda site, dice: site.drain(_node_of(site, dice))),
    "uncordoned": (5, lambda site, dice: site.uncordon(_node_of(site, dice))),
    "label changed by hand": (5, _mislabel),
    "label taken by a controller": (2, lambda site, dice: _mislabel(site, dice, STRANGER)),
    "host failed": (2, lambda site, dice: site.fail_host(_host_of(site, dice))),
    "host restored": (3, lambda site, dice: site.restore_host(_host_of(site, dice))),
    "maintenance": (2, lambda site, dice: site.enter_maintenance(_host_of(site, dice))),
    "maintenance over": (3, lambda site, dice: site.exit_maintenance(_host_of(site, dice))),
    "node silent": (2, lambda site, dice: site.fail_node(_node_of(site, dice))),
    "node back": (3, lambda site, dice: site.restore_node(_node_of(site, dice))),
    "node added": (2, _standby),
    "node deleted": (1, _lose_node),
}
"""What may happen: how often, by weight, and the act."""
MOODS = (0.0, 0.3, 1.0, 1.0, 3.0)
"""What a seed multiplies the weight of an act with: what is wrong for good is seen where nothing touches it again."""


def vm_of(site: OperatedSite, node: k8s.Node) -> Vm:
    """The VM that a node is; others may have its name, as a deleted node leaves its VM behind."""
    uuid = node.spec.provider_id.removeprefix("vsphere://")
    return next(vm for vm in site.vsphere.vms().values() if vm.uuid == uuid)


class Acts:
    """What happens in one seed: some acts often, some never."""

    def __init__(self, moods: Mapping[str, float]) -> None:
        self._weights = {name: weight * moods[name] for name, (weight, _) in ACTS.items()}
        self._weights["vmotion"] += 1.0  # something happens in every seed

    def happen(self, site: OperatedSite, dice: random.Random) -> str:
        """One thing happens; its name, with what refused it."""
        [name] = dice.choices(list(self._weights), list(self._weights.values()))
        try:
            ACTS[name][1](site, dice)
        except (Conflict, Gone, Refused, Retry, KeyError) as error:
            return f"{name}: refused, {type(error).__name__}"
        return name


def calm(site: OperatedSite) -> None:
    """Whatever is broken is mended: hosts take VMs, nodes take pods, nobody is silent, no label is taken."""
    for host in site.vsphere.hosts().values():
        if host.state == "disconnected":
            site.restore_host(host.name)
        elif host.state == "maintenance":
            site.exit_maintenance(host.name)
    for name in sorted(site.kubernetes.nodes()):
        site.uncordon(name)
        site.restore_node(name)
        if STRANGER in site.kubernetes.managers[name].get(CAPV_HOST_KEY, ()):
            site.label_node(name, {CAPV_HOST_KEY: None})
