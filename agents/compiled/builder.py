"""Builds classes: which namespaces and which pods each term of a class selects.

In: raw classes and their parsed parts. Out: `PodClass` objects, with terms whose selectors are in the `SelectorTable`
and know the classes that name them.
"""

from collections.abc import Callable, Mapping

import msgspec

from underhost.agents.compiled.classes import (
    HONOR,
    HOSTNAME_KEY,
    IGNORE,
    ZONE_KEY,
    Constraint,
    Parsed,
    PodClass,
    RawClass,
    Term,
    WeightedTerm,
)
from underhost.agents.compiled.images import normalised_image
from underhost.agents.site import terms
from underhost.agents.site.selectors import IN, Namespaces, Requirement, SelectorTable, matches
from underhost.agents.site.terms import PodAffinityTerm, SpreadConstraint


class ClassBuilder:
    """Resolves a class's terms: which namespaces and which pods they select.

    `namespaces` gives the labels of every namespace (one that the input lacks has none). `default_selector` gives the
    requirements of the scheduler's own spreading for a class, or None.
    """

    def __init__(
        self,
        table: SelectorTable,
        namespaces: Mapping[str, Mapping[str, str]],
        known_images: Mapping[str, object],
        default_selector: Callable[[RawClass, Mapping[str, str]], tuple[Requirement, ...] | None],
    ) -> None:
        self._table, self._namespaces = table, namespaces
        self._images, self._default_selector = known_images, default_selector
        self._terms: dict[tuple[str, int], Term] = {}  # by identity: the parser keeps every part alive
        self._node_keys: dict[int, bytes] = {}

    def forget_parts(self) -> None:
        """The parsed parts are kept alive no more: what is known by their identity is forgotten."""
        self._terms.clear()
        self._node_keys.clear()

    def image_key(self, raw: RawClass) -> tuple[tuple[str, ...], int]:
        """The images that some node has, sorted, and how many containers there are (0 where it does not matter)."""
        known = tuple(sorted(name for name in map(normalised_image, raw.images) if name in self._images))
        return known, raw.containers if known else 0

    def build(self, id_: int, raw: RawClass, parsed: Parsed, labels: dict[str, str]) -> PodClass:
        """The class. Raises Fault."""
        found = PodClass(id_, raw, labels)
        found.node_selector, found.tolerations = parsed.node_selector, parsed.tolerations
        found.images, found.image_count = self.image_key(raw)
        affinity, namespace = parsed.affinity, raw.namespace
        node = affinity.node_affinity
        if node is not None:
            found.node_terms = None if node.required is None else tuple(node.required.node_selector_terms or ())
            found.preferred_node = tuple(node.preferred) if node.preferred else None
        found.node_key = (raw.node_selector, b"" if node is None else self._encoded(node))
        near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
        field = "spec.affinity.podAffinity"
        weighted: list[WeightedTerm] = []
        if near is not None:
            found.required_affinity = tuple(self._term(t, namespace, field) for t in near.required or ())
            for one in near.preferred or ():
                weighted.append(WeightedTerm(*self._term(one.pod_affinity_term, namespace, field), one.weight))
        field = "spec.affinity.podAntiAffinity"
        if apart is not None:
            found.required_anti = tuple(self._term(t, namespace, field) for t in apart.required or ())
            for one in apart.preferred or ():
                weighted.append(WeightedTerm(*self._term(one.pod_affinity_term, namespace, field), -one.weight))
        found.preferred = tuple(weighted)
        if parsed.spread:
            resolved = [self._constraint(c, namespace, labels) for c in parsed.spread]
            hard = [c.when_unsatisfiable == terms.DO_NOT_SCHEDULE for c in parsed.spread]
            found.hard = tuple(c for c, is_hard in zip(resolved, hard, strict=True) if is_hard)
            found.soft = tuple(c for c, is_hard in zip(resolved, hard, strict=True) if not is_hard)
        else:
            self.spread_by_default(found, raw)
        found.uncounted = parsed.uncounted
        _introduce(found)
        return found

    def spread_by_default(self, found: PodClass, raw: RawClass) -> None:
        """The scheduler's own constraints, for a class without any, as Services and owners are now."""
        found.soft, found.system_default = (), False
        requirements = self._default_selector(raw, found.labels)
        if requirements:
            selector = self._table.add(frozenset((raw.namespace,)), requirements)
            found.system_default = True
            found.soft = tuple(
                Constraint(selector, key, skew, 1, matches(requirements, found.labels), True, False)
                for key, skew in ((HOSTNAME_KEY, 3), (ZONE_KEY, 5))
            )

    def _encoded(self, node: terms.NodeAffinity) -> bytes:
        encoded = self._node_keys.get(id(node))
        if encoded is None:
            encoded = self._node_keys[id(node)] = msgspec.json.encode(node)
        return encoded

    def _term(self, term: PodAffinityTerm, namespace: str, field: str) -> Term:
        key = (namespace, id(term))
        found = self._terms.get(key)
        if found is None:
            if term.label_selector is None:
                found = Term(None, term.topology_key)
            else:
                requirements = term.label_selector.requirements(f"{field}.labelSelector")
                namespaces = self._term_namespaces(term, namespace, field)
                found = Term(self._table.add(namespaces, requirements), term.topology_key)
            self._terms[key] = found
        return found

    def _term_namespaces(self, term: PodAffinityTerm, own: str, field: str) -> Namespaces:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (own,))
        requirements = term.namespace_selector.requirements(f"{field}.namespaceSelector")
        if not requirements:
            return None
        selected = (name for name, labels in self._namespaces.items() if matches(requirements, labels))
        return frozenset((*(term.namespaces or ()), *selected))

    def _constraint(self, constraint: SpreadConstraint, namespace: str, labels: Mapping[str, str]) -> Constraint:
        requirements = None
        if constraint.label_selector is not None:
            requirements = constraint.label_selector.requirements("spec.topologySpreadConstraints.labelSelector")
            for key in constraint.match_label_keys or ():
                if key in labels and (key, IN, (labels[key],)) not in requirements:
                    requirements = ((key, IN, (labels[key],)), *requirements)
        return Constraint(
            # an empty selector counts nothing upstream, yet it matches the pod itself
            selector=self._table.add(frozenset((namespace,)), requirements) if requirements else None,
            key=constraint.topology_key,
            max_skew=constraint.max_skew,
            min_domains=constraint.min_domains or 1,
            self_match=requirements is not None and matches(requirements, labels),
            honor_affinity=constraint.node_affinity_policy != IGNORE,
            honor_taints=constraint.node_taints_policy == HONOR,
        )


def _introduce(cls: PodClass) -> None:
    """Tell the selectors whose terms name them."""
    for term in cls.required_anti:
        if term.selector is not None:
            term.selector.apart.setdefault((term.key, cls.namespace), []).append(cls.id)
    for constraint in cls.hard:
        if constraint.selector is not None:
            constraint.selector.spread.setdefault((constraint.key, cls.namespace), []).append(cls.id)
    for term in cls.required_affinity:
        if term.selector is not None:
            term.selector.near.setdefault(term.key, []).append(cls.id)
    for one in cls.preferred:
        if one.selector is not None:
            weights = one.selector.preferred.setdefault(one.key, {})
            weights[cls.id] = weights.get(cls.id, 0) + one.weight
