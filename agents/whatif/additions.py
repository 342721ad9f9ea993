"""Objects that a plan adds: nodes, workloads with the pods that they make, budgets, hosts and VMs.

In: a world and objects. Out: the world with them, new pods waiting. What is there already is replaced, as `kubectl
apply` does; a pod that is there stays as it is, and a changed template is not rolled out.
"""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from underhost.agents.manifests.daemons import pinned_to
from underhost.agents.manifests.expand import expand
from underhost.agents.site.join import join
from underhost.agents.site.owners import FINISHED
from underhost.agents.whatif.hosts import nodes_of
from underhost.agents.whatif.pods import DAEMON_SET, owner_kind
from underhost.agents.whatif.steps import Added
from underhost.agents.whatif.world import World
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.manifests import Manifest
from underhost.schemas.vsphere import Inventory

_ALWAYS = (DAEMON_SET, "PriorityClass")


def add(world: World, added: Added) -> None:
    """The objects come to the site. Raises BadObjectError for one that the API server would refuse."""
    before = world.snapshot
    world.change(
        nodes={**before.nodes, **added.nodes},
        namespaces={**before.namespaces, **added.namespaces},
        services={**before.services, **added.services},
        workloads={**before.workloads, **added.workloads},
        budgets={**before.budgets, **added.budgets},
    )
    if added.inventory is not None:
        _add_inventory(world, added.inventory)
    if added.nodes or added.inventory is not None:
        snapshot = world.snapshot
        joined = join(snapshot.nodes.values(), snapshot.vms.values(), snapshot.hosts.values())
        world.change(node_hosts=joined)
    world.others = {**world.others, **added.others}
    back = world.lost & added.nodes.keys()
    world.lost -= back
    world.release(key for key, stuck in world.stuck.items() if stuck.held and stuck.held.spec.node_name in back)
    _add_pods(world, added)


def _add_pods(world: World, added: Added) -> None:
    """The pods given, those that new workloads make, and the DaemonSets' on new nodes."""
    there = world.snapshot.pods
    held = {key: stuck.held for key, stuck in world.stuck.items() if stuck.held is not None}
    given = {key: pod for key, pod in added.pods.items() if key not in there and key not in held}
    manifests = {key: one for key, one in world.others.items() if key in added.others or one.kind in _ALWAYS}
    nodes = {name: node for name, node in world.snapshot.nodes.items() if name not in world.lost}
    made = expand({**there, **held, **given}, nodes, world.snapshot.workloads, manifests)
    fresh = {
        key: pod
        for key, pod in made.pods.items()
        if key not in there and key not in held and (key in given or _is_wanted(pod, added.others, added.nodes))
    }
    world.change(pods={**there, **fresh}, workloads=made.workloads)
    for key, pod in fresh.items():
        if not pod.spec.node_name and pod.status.phase not in FINISHED:
            world.waiting.add(key)
            world.origin[key] = None


def _is_wanted(pod: Pod, others: Mapping[str, Manifest], nodes: Mapping[str, Node]) -> bool:
    """Whether the pod is of a workload that was added, or a DaemonSet's on a node that was."""
    if owner_kind(pod) != DAEMON_SET:
        return True
    owner = next(one for one in pod.metadata.owner_references or () if one.controller)
    return f"{DAEMON_SET}/{pod.metadata.namespace}/{owner.name}" in others or pinned_to(pod) in nodes


def _add_inventory(world: World, inventory: Inventory) -> None:
    snapshot = world.snapshot
    rules = {(cluster.name, rule.name): rule for cluster in inventory.clusters for rule in cluster.rules}
    world.change(
        hosts={**snapshot.hosts, **{host.ref: host for host in inventory.hosts}},
        vms={**snapshot.vms, **{vm.ref: vm for vm in inventory.vms}},
        clusters={**snapshot.clusters, **{cluster.name: cluster for cluster in inventory.clusters}},
        rules={**snapshot.rules, **rules},
        vsphere=True,
    )


def rejoin(world: World, vms: Collection[str]) -> None:
    """The nodes of these VMs are on the hosts where the VMs are now."""
    snapshot, nodes = world.snapshot, nodes_of(world.snapshot)
    moved = dict(snapshot.node_hosts)
    for ref in vms:
        host = snapshot.hosts[snapshot.vms[ref].host]
        for name in nodes.get(ref, ()):
            moved[name] = replace(moved[name], host=host.ref, host_name=host.name)
    world.change(node_hosts=moved)
