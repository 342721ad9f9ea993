"""Which workload a pod belongs to, as far as the input tells.

In: a snapshot, the manifests and what their selectors ask of labels. Out: `Kind/namespace/name`. Unlike `owners.py` it
also reads what a partial dump leaves to guess: the Deployment in a ReplicaSet's name, the workload that would adopt a
pod without a controller, the machine of a virt-launcher.
"""

from collections.abc import Mapping

from underhost.agents.manifests.replicas import POD_HASH, VMI, VMI_SET
from underhost.agents.site import terms
from underhost.agents.site.owners import controller_of
from underhost.agents.site.selectors import Requirement, matches
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Metadata, Pod
from underhost.schemas.manifests import Manifest

VM = "VirtualMachine"
Selectors = Mapping[str, list[tuple[str, tuple[Requirement, ...]]]]


class Owners:
    """`selectors`: by namespace, the workloads that take pods without a controller for their own."""

    def __init__(self, snapshot: Snapshot, manifests: Mapping[str, Manifest], selectors: Selectors) -> None:
        self._snapshot, self._manifests, self._selectors = snapshot, manifests, selectors
        self._known: dict[tuple[str, str, str], str] = {}

    def object_of(self, key: str, pod: Pod) -> str:
        """The workload over a pod, `Pod/namespace/name` where there is none. Raises Fault for labels that are none."""
        namespace, owner = pod.metadata.namespace, controller_of(pod.metadata.owner_references)
        if owner is None:
            return self._adopter(namespace, pod.metadata) or f"Pod/{key}"
        known = self._known.get((namespace, owner.kind, owner.name))
        if known is None:
            known = self._over(pod, namespace, owner.kind, owner.name)
            self._known[(namespace, owner.kind, owner.name)] = known
        return known

    def _adopter(self, namespace: str, metadata: Metadata) -> str | None:
        selectors = self._selectors.get(namespace)
        if not selectors:
            return None
        labels = terms.labels(bytes(metadata.labels))
        return min((key for key, requirements in selectors if matches(requirements, labels)), default=None)

    def _over(self, pod: Pod, namespace: str, kind: str, name: str) -> str:
        """Up the chain of controllers, as far as the input holds them."""
        for _ in range(5):  # no chain of real controllers is as long; one that bites its tail must end
            key = f"{kind}/{namespace}/{name}"
            held = self._manifests.get(key) or self._snapshot.workloads.get(key)
            if held is None:
                return self._guess(pod, namespace, kind, name)
            over = controller_of(held.metadata.owner_references)
            if over is None or not self._holds(f"{over.kind}/{namespace}/{over.name}"):
                break
            kind, name = over.kind, over.name
        return f"{kind}/{namespace}/{name}"

    def _holds(self, key: str) -> bool:
        return key in self._manifests or key in self._snapshot.workloads

    def _guess(self, pod: Pod, namespace: str, kind: str, name: str) -> str:
        """The owner that the input lacks, by what its name and the pod's labels tell."""
        if kind == "ReplicaSet":
            digest = terms.labels(bytes(pod.metadata.labels)).get(POD_HASH)
            if digest and name.endswith(f"-{digest}"):
                return f"Deployment/{namespace}/{name.removesuffix(f'-{digest}')}"
        if kind == VMI:
            machine = f"{VM}/{namespace}/{name}"
            if machine in self._manifests:
                return machine
            adopter = self._adopter(namespace, pod.metadata)
            if adopter is not None and adopter.startswith(VMI_SET):
                return adopter
        return f"{kind}/{namespace}/{name}"
