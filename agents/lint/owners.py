"""Which workload a pod belongs to, as far as the input tells.

In: a snapshot, the manifests and the subjects of these. Out: `Kind/namespace/name`. Unlike `site/owners.py` it also
reads what a partial dump leaves to guess: the Deployment in a ReplicaSet's name, the workload that would adopt a pod
without a controller, the machine of a virt-launcher.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from underhost.agents.lint.subjects import Subject
from underhost.agents.manifests.parts import VM, VMI, VMI_SET
from underhost.agents.manifests.replicas import deployment_by_name, would_adopt
from underhost.agents.site.owners import controller_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Pod, Workload
from underhost.schemas.manifests import Manifest


class Owners:
    """`templates` are the subjects of the manifests: those with a selector take pods without a controller."""

    def __init__(self, snapshot: Snapshot, manifests: Mapping[str, Manifest], templates: Iterable[Subject]) -> None:
        self._held: dict[str, Manifest | Workload] = {**snapshot.workloads, **manifests}
        self._manifests = manifests
        self._adopting: defaultdict[str, list[Subject]] = defaultdict(list)
        for subject in templates:
            if subject.adopts:
                self._adopting[subject.namespace].append(subject)
        self._known: dict[tuple[str, str, str], str] = {}

    def object_of(self, key: str, pod: Pod) -> str:
        """The workload over a pod, `Pod/namespace/name` where there is none. Raises Fault for labels that are none."""
        namespace, owner = pod.metadata.namespace, controller_of(pod.metadata.owner_references)
        if owner is None:
            return self._adopter(pod) or f"Pod/{key}"
        known = self._known.get((namespace, owner.kind, owner.name))
        if known is None:
            known = self._over(pod, owner.kind, owner.name)
            self._known[(namespace, owner.kind, owner.name)] = known
        return known

    def _adopter(self, pod: Pod) -> str | None:
        taking = (
            one.object
            for one in self._adopting.get(pod.metadata.namespace, ())
            if would_adopt(one.kind, one.object.rpartition("/")[2], one.adopts, pod)
        )
        return min(taking, default=None)

    def _over(self, pod: Pod, kind: str, name: str) -> str:
        """Up the chain of controllers, as far as the input holds them."""
        namespace = pod.metadata.namespace
        for _ in range(5):  # no chain of real controllers is as long; one that bites its tail must end
            held = self._held.get(f"{kind}/{namespace}/{name}")
            if held is None:
                return self._guess(pod, kind, name)
            over = controller_of(held.metadata.owner_references)
            if over is None or f"{over.kind}/{namespace}/{over.name}" not in self._held:
                break
            kind, name = over.kind, over.name
        return f"{kind}/{namespace}/{name}"

    def _guess(self, pod: Pod, kind: str, name: str) -> str:
        """The owner that the input lacks, by what its name and the pod's labels tell."""
        namespace = pod.metadata.namespace
        if kind == "ReplicaSet" and (deployment := deployment_by_name(name, pod)):
            return f"Deployment/{namespace}/{deployment}"
        if kind == VMI:
            machine = f"{VM}/{namespace}/{name}"
            if machine in self._manifests:
                return machine
            adopter = self._adopter(pod)
            if adopter is not None and adopter.startswith(VMI_SET):
                return adopter
        return f"{kind}/{namespace}/{name}"
