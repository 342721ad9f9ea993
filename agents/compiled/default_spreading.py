"""The selector of the scheduler's own spreading: which pods belong together when a pod has no constraints.

In: Services and owners. Out: requirements per (namespace, labels, owner). Source: plugins/helper/spread.go
`DefaultSelector`.
"""

from collections import defaultdict
from collections.abc import Mapping

from underhost.agents.compiled.classes import Owner, RawClass
from underhost.agents.site import terms
from underhost.agents.site.fault import faults_of
from underhost.agents.site.selectors import IN, Requirement
from underhost.schemas.kubernetes import Service, Workload

_API = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}
_NULL = (b"null", b"{}")


class DefaultSelectors:
    """Call with a raw class and its labels: the requirements, or None where the scheduler does not spread.

    Raises BadObjectError at construction for a Service or workload whose selector is wrong.
    """

    def __init__(self, services: Mapping[str, Service], workloads: Mapping[str, Workload]) -> None:
        self.keys: set[str] = set()
        self._services: defaultdict[str, dict[str, dict[str, str]]] = defaultdict(dict)
        self._owners: dict[tuple[str, str, str], tuple[Requirement, ...]] = {}
        for name, service in services.items():
            self.put_service(name, service.metadata.namespace, service)
        for workload in workloads.values():
            self.put_workload(workload)

    def put_service(self, name: str, namespace: str, service: Service | None) -> None:
        """A Service came, changed or went (None). `keys` only grow. Raises BadObjectError."""
        self._services[namespace].pop(name, None)
        selector = service_selector(name, service)
        if selector:
            self._services[namespace][name] = selector
            self.keys.update(selector)

    def put_workload(self, workload: Workload) -> None:
        """A workload came or changed. Raises BadObjectError."""
        self.drop_workload(workload)
        requirements = workload_selector(workload)
        if requirements is not None:
            self._owners[(workload.kind, workload.metadata.namespace, workload.metadata.name)] = requirements
            self.keys.update(key for key, _, _ in requirements)

    def drop_workload(self, workload: Workload) -> None:
        """A workload went."""
        self._owners.pop((workload.kind, workload.metadata.namespace, workload.metadata.name), None)

    def of_workload(self, workload: Workload) -> tuple[Requirement, ...] | None:
        """What the workload's pods are spread by; None where it makes no difference."""
        return self._owners.get((workload.kind, workload.metadata.namespace, workload.metadata.name))

    def known(self, namespace: str, owner: Owner | None) -> Owner | None:
        """The owner if its selector is known: only then does it make a pod differ from others."""
        if owner is None:
            return None
        kind, version, name = owner
        return owner if (kind, namespace, name) in self._owners and version == _API[kind] else None

    def __call__(self, raw: RawClass, labels: Mapping[str, str]) -> tuple[Requirement, ...] | None:
        merged: dict[str, str] = {}
        for selector in self._services.get(raw.namespace, {}).values():
            if terms.meets(labels, selector):
                merged.update(selector)
        requirements: tuple[Requirement, ...] = tuple((key, IN, (value,)) for key, value in sorted(merged.items()))
        owner = self.known(raw.namespace, raw.owner)
        if owner is not None:
            own = self._owners[(owner[0], raw.namespace, owner[2])]
            requirements += tuple(one for one in own if one not in requirements)
        return requirements or None


def service_selector(name: str, service: Service | None) -> dict[str, str]:
    """The labels that a Service selects; none for one that is gone. Raises BadObjectError."""
    if service is None:
        return {}
    with faults_of(f"Service {name}"):
        return terms.labels(bytes(service.spec.selector), "spec.selector")


def workload_selector(workload: Workload) -> tuple[Requirement, ...] | None:
    """What a workload selects; None where the scheduler does not read it. Raises BadObjectError."""
    raw, kind, meta = bytes(workload.spec.selector), workload.kind, workload.metadata
    if kind not in _API or raw in _NULL:
        return None
    with faults_of(f"{kind} {meta.namespace}/{meta.name}"):
        if kind == "ReplicationController":
            plain = terms.labels(raw, "spec.selector")
            return tuple((k, IN, (v,)) for k, v in sorted(plain.items()))
        return terms.label_selector(raw, "spec.selector") or ()
