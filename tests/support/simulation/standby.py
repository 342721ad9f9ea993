"""A stand-by node that joins a simulated site: a new VM, and the node that it becomes.

In: the name, the host, and a node to be like. Out: a VM and a node.
"""

import random
from collections.abc import Mapping

import msgspec

from underhost.schemas.kubernetes import Node, NodeAddress
from underhost.streams.simulated.drains import CORDONED
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.objects import byte_swapped, labels_of, plain, random_uid, raw
from underhost.streams.simulated.vsphere import SimulatedVSphere

HOSTNAME = "kubernetes.io/hostname"


def add_standby(
    kubernetes: SimulatedKubernetes, vsphere: SimulatedVSphere, source: random.Random, name: str, host: str, like: str
) -> None:
    """Raises Gone (host or model) or Conflict (the name is taken)."""
    model, vm = kubernetes.node(like), vsphere.vm(like)
    uuid = random_uid(source)
    number = 1 + max(int(ref.removeprefix("vm-")) for ref in vsphere.vms())
    registered = {key for key, managers in kubernetes.managers[like].items() if managers == {"kubelet"}}
    labels = {key: value for key, value in labels_of(model.metadata).items() if key in registered}
    kubernetes.create(_node(model, name, uuid, labels), manager="kubelet")
    vsphere.add_vm(
        msgspec.structs.replace(
            vm, name=name, id=f"vm-{number}", uuid=uuid, uid="", host=vsphere.host(host).id, hostname=name
        )
    )


def _node(model: Node, name: str, uuid: str, labels: Mapping[str, str]) -> Node:
    """As the model was when it joined: what people and controllers did to it since is its own."""
    labels = {**labels, HOSTNAME: name}
    taints = [taint for taint in plain(model.spec.taints) or [] if taint["key"] != CORDONED]
    addresses = [NodeAddress("Hostname", name)]
    info = msgspec.structs.replace(model.status.node_info, system_uuid=byte_swapped(uuid))  # type: ignore[type-var]
    return Node(
        msgspec.structs.replace(model.metadata, name=name, uid="", creation_timestamp=None, labels=raw(labels)),
        msgspec.structs.replace(model.spec, provider_id=f"vsphere://{uuid}", unschedulable=False, taints=raw(taints)),
        msgspec.structs.replace(model.status, addresses=addresses, node_info=info),
    )
