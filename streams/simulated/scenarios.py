"""The table of simulated sites: what each consists of at its start.

In: nothing. Out: for each name, the functions that fill an empty cluster and vCenter.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from underhost.schemas.vsphere import Cluster
from underhost.streams.simulated import kubevirt
from underhost.streams.simulated.controllers import Controllers
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.vsphere import SimulatedVSphere


@dataclass(frozen=True)
class Scenario:
    """A site to simulate.

    Attributes:
        system: builds what has been there for long: hosts, VMs, nodes and the clusters' own pods.
        workload: builds the application, whose pods wait for a scheduler.
        operator_move: the VM and the host, by name, of the move by which an operator breaks a rule in the demo.
        failing_host: the host by whose failure a rule is broken: HA starts one of its VMs beside a replica.
        drained_node: a node whose pods find no other one.
        quorum: a workload, `KIND/NAMESPACE/NAME`, whose pods may need a majority.
        quorum_move: the VM and the host by whose move that host holds the majority of them.
    """

    title: str
    vsphere_cluster: Cluster
    system: Callable[[SimulatedKubernetes, Controllers, SimulatedVSphere, random.Random], None]
    workload: Callable[[SimulatedKubernetes, Controllers], None]
    operator_move: tuple[str, str]
    failing_host: str
    drained_node: str
    quorum: str
    quorum_move: tuple[str, str]


SCENARIOS = {
    "kubevirt": Scenario(
        "seven Kubernetes nodes on four ESXi hosts, and a three-tier application that waits for its nodes",
        Cluster("iberia", "domain-c8"),
        kubevirt.build_system,
        kubevirt.build_workload,
        ("kni-worker6", "esx-1"),
        "esx-1",
        "kni-worker6",
        "VirtualMachineInstanceReplicaSet/customapp/mssql2016",
        ("kni-worker4", "esx-1"),
    )
}
"""Every scenario by the name that `{simulated: NAME}` and `underhost demo NAME` give it."""
