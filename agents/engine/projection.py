"""Which labels of pods matter: only those that some selector of the snapshot names.

In: pods, Services and workloads. Out: a pod's labels cut down to the keys named so far, as bytes. Called by the reader
before it numbers classes: the unique labels of a StatefulSet's pods would make every pod a raw class of its own, each
to be parsed and kept. Keys only grow, so a cut is always wide enough; the compiler cuts exactly.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from underhost.agents.engine import terms
from underhost.agents.engine.classes import affinity_keys, spread_keys
from underhost.agents.engine.fault import Fault
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Pod, Service, Workload

T = TypeVar("T")
_EMPTY = b"{}"


class Projection:
    """The keys that selectors name, and labels cut down to them."""

    def __init__(self) -> None:
        self.keys: tuple[str, ...] = ()
        self._seen: set[tuple[str, bytes]] = set()
        self._cut: dict[bytes, bytes] = {}

    def learn(self, pods: Iterable[Pod], services: Mapping[str, Service], workloads: Mapping[str, Workload]) -> bool:
        """Whether these name a key that was not known."""
        keys, specs = set(self.keys), [pod.spec for pod in pods]
        affinities = {bytes(spec.affinity) for spec in specs if spec.affinity is not EMPTY_OBJECT}
        raws = (spec.topology_spread_constraints for spec in specs)
        spreads = {bytes(raw) for raw in raws if raw is not EMPTY_LIST}
        for affinity in self._new("affinity", affinities, terms.affinity):
            keys |= affinity_keys(affinity)
        for constraints in self._new("spread", spreads, terms.spread_constraints):
            keys |= spread_keys(constraints)
        selectors = {bytes(service.spec.selector) for service in services.values()}
        for labels in self._new("labels", selectors, terms.labels):
            keys.update(labels)
        selectors = {bytes(workload.spec.selector) for workload in workloads.values()}
        for labels in self._new("labels", selectors, terms.labels):  # a ReplicationController's
            keys.update(labels)
        for requirements in self._new("selector", selectors, lambda raw: terms.label_selector(raw, "") or ()):
            keys.update(key for key, _, _ in requirements)
        if len(keys) == len(self.keys):
            return False
        self.keys = tuple(sorted(keys))
        self._cut.clear()
        return True

    def _new(self, kind: str, raws: Iterable[bytes], parse: Callable[[bytes], T]) -> Iterable[T]:
        """Each part that was not seen before. One that is wrong names no key: the compiler refuses it, by its name."""
        for data in raws:
            if (kind, data) not in self._seen:
                self._seen.add((kind, data))
                try:
                    yield parse(data)
                except Fault:
                    continue

    def of(self, raw: bytes) -> bytes:
        """The labels that count, in the order of their keys; labels that are wrong as they are."""
        cut = self._cut.get(raw)
        if cut is None:
            try:
                labels = terms.labels(raw)
            except Fault:
                return raw
            found = {key: labels[key] for key in self.keys if key in labels}
            cut = self._cut[raw] = msgspec.json.encode(found) if found else _EMPTY
        return cut

    def rest(self) -> None:
        """Forget the labels met: most of them are never met again."""
        self._cut.clear()
