"""Which domains a hard spread counts: nodes decide that, so that a node's change may concern pods far from it.

In: classes as they grow, a live model before and after its nodes change. Out: the classes whose set of eligible domains
is another one. Classes with equal keys and policies are asked once.
"""

from collections import defaultdict

import numpy as np

from underhost.agents.compiled.classes import Constraint, PodClass
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.rules import pod_topology_spread as spread

Kind = tuple[tuple[str, ...], str, object, object]


class Eligible:
    """The hard constraints by what decides their eligible domains."""

    def __init__(self) -> None:
        self._classes: defaultdict[Kind, list[int]] = defaultdict(list)
        self._example: dict[Kind, tuple[PodClass, Constraint]] = {}
        self._known: dict[Kind, set[str]] = {}

    def add(self, cls: PodClass) -> None:
        """A class is new."""
        keys = tuple(sorted({one.key for one in cls.hard}))
        for one in cls.hard:
            chosen = one.honor_affinity and (cls.node_selector or cls.node_terms is not None)
            kind = (
                keys,
                one.key,
                cls.node_key if chosen else None,
                cls.tolerations_key if one.honor_taints else None,
            )
            self._classes[kind].append(cls.id)
            self._example.setdefault(kind, (cls, one))

    def know(self, live: CompiledSite) -> None:
        """Nodes are about to change: what is eligible until then."""
        for kind in self._example.keys() - self._known.keys():
            self._known[kind] = self._of(live, kind)

    def differing(self, live: CompiledSite) -> set[int]:
        """The classes whose eligible domains are others than those known; these are known from now on."""
        found: set[int] = set()
        for kind, before in self._known.items():
            now = self._known[kind] = self._of(live, kind)
            if now != before:
                found.update(self._classes[kind])
        return found

    def _of(self, live: CompiledSite, kind: Kind) -> set[str]:
        """The values of the domains that count."""
        cls, constraint = self._example[kind]
        mask, _ = spread.mask_of(live.state, cls, kind[0], constraint)
        domains = live.model.topology.of(constraint.key)
        codes = domains.codes if mask is None else domains.codes[mask]
        counted = np.zeros(domains.size, bool)
        counted[codes[codes >= 0]] = True
        return {value for value, code in domains.code_of.items() if counted[code]}
