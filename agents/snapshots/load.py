"""Objects of files in, a Snapshot out: what the offline commands judge.

It joins nodes to hosts and, where asked, lets manifests become their pods; reading the files is the streams' business
(`streams/files/reader.py`).
"""

from underhost.agents.manifests.allowance import Allowance
from underhost.agents.manifests.expand import Expansion, expand
from underhost.agents.site.join import located
from underhost.agents.site.snapshot import BY_VM, Joining, Snapshot
from underhost.agents.whatif.steps import Add
from underhost.schemas.vsphere import Inventory
from underhost.streams.files.objects import Objects


def snapshot_of(
    objects: Objects, site: str = "default", *, manifests: bool = True, joining: Joining = BY_VM
) -> tuple[Snapshot, list[str]]:
    """The picture that the files give, and notes (one line each) about what was done to the input.

    `manifests`: pods are completed as the API server would, and the pods that Deployments and the like still lack are
    added, pending; a check of what runs leaves both out. Raises BadObjectError for a manifest that the API refuses;
    `objects.within(error)` names its file.
    """
    made = Expansion(objects.pods, objects.workloads)
    if manifests:
        made = expand(objects.pods, objects.nodes, objects.workloads, objects.others, claims=objects.claims)
    inventory = objects.inventory or Inventory()
    snapshot = Snapshot(
        site=site,
        nodes=objects.nodes,
        pods=made.pods,
        namespaces=objects.namespaces,
        services=objects.services,
        workloads=made.workloads,
        budgets=objects.budgets,
        vms={vm.ref: vm for vm in inventory.vms},
        hosts={host.ref: host for host in inventory.hosts},
        clusters={cluster.name: cluster for cluster in inventory.clusters},
        rules={(cluster.name, rule.name): rule for cluster in inventory.clusters for rule in cluster.rules},
        claims=objects.claims,
        volumes=objects.volumes,
        storage_classes=objects.storage_classes,
        csi_nodes=objects.csi_nodes,
        attachments=objects.attachments,
        vsphere=objects.inventory is not None,
        joining=joining,
        checked=not manifests,
    )
    snapshot = located(snapshot)
    return snapshot, [*objects.notes, *made.notes, *_claims(snapshot)]


def added_of(objects: Objects, allowance: Allowance | None = None) -> Add:
    """The step of a plan that adds what a file holds; `allowance` bounds the pods that its manifests make."""
    return Add(snapshot_of(objects, manifests=False)[0], objects.others, allowance)


def _claims(snapshot: Snapshot) -> list[str]:
    """A note where pods are to be placed whose volumes nobody judges, because the input holds no claim at all."""
    if snapshot.claims:
        return []
    count = sum(b"persistentVolumeClaim" in bytes(pod.spec.volumes) for pod in snapshot.unplaced.values())
    what = "VolumeBinding, VolumeZone and NodeVolumeLimits are not judged"
    return [f"{what}: {count} pending pods have volumes of claims"] if count else []
