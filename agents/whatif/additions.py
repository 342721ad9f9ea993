"""Objects that a plan adds: nodes, workloads with the pods that they make, budgets, hosts and VMs.

In: a world and objects. Out: the world with them, new pods waiting. What is there already is replaced, as `kubectl
apply` does; a pod that is there stays as it is, and a changed template is not rolled out.
"""

from collections.abc import Mapping

from underhost.agents.manifests.daemons import pinned_to
from underhost.agents.manifests.expand import expand
from underhost.agents.site.join import located
from underhost.agents.site.owners import FINISHED, controller_of
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.pods import DAEMON_SET
from underhost.agents.whatif.steps import Add
from underhost.agents.whatif.world import World
from underhost.schemas.errors import InputError
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.manifests import Manifest
from underhost.schemas.records import NodeHost

_REPLACED = ("nodes", "namespaces", "services", "workloads", "budgets", "vms", "hosts", "clusters", "rules")
"""Parts of a snapshot in which what is added takes the place of what is there."""


def add(world: World, step: Add) -> None:
    """The objects come to the site. Raises BadObjectError for one that the API server would refuse, InputError."""
    before, added = world.snapshot, step.objects
    world.change(**{part: {**getattr(before, part), **new} for part in _REPLACED if (new := getattr(added, part))})
    if added.nodes or added.vsphere:
        site = world.snapshot
        if added.vsphere and site.joining.label:
            raise InputError(f"hosts are told by the node label {site.joining.label}: no inventory can be added")
        joined = located(site)
        rows = {**_by_hand(joined, added), **joined.node_hosts}
        vsphere = site.vsphere or added.vsphere
        world.change(hosts=joined.hosts, node_hosts=rows, rivals=joined.rivals, vsphere=vsphere)
    world.others = {**world.others, **step.others}
    back = world.lost & added.nodes.keys()
    world.lost -= back
    world.release(key for key, stuck in world.stuck.items() if stuck.held and stuck.held.spec.node_name in back)
    _add_pods(world, step)


def _by_hand(joined: Snapshot, added: Snapshot) -> dict[str, NodeHost]:
    """Where nodes of the files run that are joined to VMs of the files by name, which a live site may not allow."""
    taken = {row.vm for row in joined.node_hosts.values()}
    rows = added.node_hosts.items()
    return {name: row for name, row in rows if name not in joined.rivals and row.vm not in taken}


def _add_pods(world: World, step: Add) -> None:
    """The pods given, those that new workloads make, and the DaemonSets' on new nodes."""
    there = world.snapshot.pods
    held = {key: stuck.held for key, stuck in world.stuck.items() if stuck.held is not None}
    given = {key: pod for key, pod in step.objects.pods.items() if key not in there and key not in held}
    always = (DAEMON_SET, "PriorityClass")
    manifests = {key: one for key, one in world.others.items() if key in step.others or one.kind in always}
    nodes = {name: node for name, node in world.snapshot.nodes.items() if name not in world.lost}
    claims = world.snapshot.claims
    made = expand({**there, **held, **given}, nodes, world.snapshot.workloads, manifests, step.allowance, claims)
    fresh = {
        key: pod
        for key, pod in made.pods.items()
        if key not in there and key not in held and (key in given or _is_wanted(pod, step.others, step.objects.nodes))
    }
    world.change(pods={**there, **fresh}, workloads=made.workloads)
    for key, pod in fresh.items():
        if not pod.spec.node_name and pod.status.phase not in FINISHED:
            world.waiting.add(key)
            world.origin[key] = None


def _is_wanted(pod: Pod, others: Mapping[str, Manifest], nodes: Mapping[str, Node]) -> bool:
    """Whether the pod is of a workload that was added, or a DaemonSet's on a node that was."""
    owner = controller_of(pod.metadata.owner_references)
    if owner is None or owner.kind != DAEMON_SET:
        return True
    return f"{DAEMON_SET}/{pod.metadata.namespace}/{owner.name}" in others or pinned_to(pod) in nodes
