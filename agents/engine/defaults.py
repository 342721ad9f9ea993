"""The selector of the scheduler's own spreading: which pods belong together when a pod has no constraints.

In: Services and owners. Out: requirements per (namespace, labels, owner). Called by the compiler. Source:
plugins/helper/spread.go `DefaultSelector`.
"""

from collections import defaultdict
from collections.abc import Mapping

from underhost.agents.engine import terms
from underhost.agents.engine.classes import Owner, RawClass
from underhost.agents.engine.fault import Fault
from underhost.agents.engine.selectors import IN, Requirement
from underhost.schemas.kubernetes import Service, Workload

_API = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}
_NULL = (b"null", b"{}")


class DefaultSelectors:
    """Call with a raw class and its labels: the requirements, or None where the scheduler does not spread.

    Raises BadObjectError at construction for a Service or workload whose selector is wrong.
    """

    def __init__(self, services: Mapping[str, Service], workloads: Mapping[str, Workload]) -> None:
        self.keys: set[str] = set()
        self._services: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
        self._owners: dict[tuple[str, str, str], tuple[Requirement, ...]] = {}
        for name, service in services.items():
            raw = bytes(service.spec.selector)
            try:
                selector = terms.labels(raw, "spec.selector")
            except Fault as fault:
                raise fault.within(f"Service {name}") from None
            if selector:
                self._services[service.metadata.namespace].append(selector)
                self.keys.update(selector)
        for workload in workloads.values():
            if workload.kind in _API:
                self._add_owner(workload)

    def _add_owner(self, workload: Workload) -> None:
        raw, kind, meta = bytes(workload.spec.selector), workload.kind, workload.metadata
        if raw in _NULL:
            return
        try:
            if kind == "ReplicationController":
                plain = terms.labels(raw, "spec.selector")
                requirements: tuple[Requirement, ...] = tuple((k, IN, (v,)) for k, v in sorted(plain.items()))
            else:
                requirements = terms.label_selector(raw, "spec.selector") or ()
        except Fault as fault:
            raise fault.within(f"{kind} {meta.namespace}/{meta.name}") from None
        self._owners[(kind, meta.namespace, meta.name)] = requirements
        self.keys.update(key for key, _, _ in requirements)

    def known(self, namespace: str, owner: Owner | None) -> Owner | None:
        """The owner if its selector is known: only then does it make a pod differ from others."""
        if owner is None:
            return None
        kind, version, name = owner
        return owner if (kind, namespace, name) in self._owners and version == _API[kind] else None

    def __call__(self, raw: RawClass, labels: Mapping[str, str]) -> tuple[Requirement, ...] | None:
        merged: dict[str, str] = {}
        for selector in self._services.get(raw.namespace, ()):
            if terms.meets(labels, selector):
                merged.update(selector)
        requirements: tuple[Requirement, ...] = tuple((key, IN, (value,)) for key, value in sorted(merged.items()))
        owner = self.known(raw.namespace, raw.owner)
        if owner is not None:
            own = self._owners[(owner[0], raw.namespace, owner[2])]
            requirements += tuple(one for one in own if one not in requirements)
        return requirements or None
