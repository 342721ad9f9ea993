"""Classes of equal pods: pods that every rule treats alike, apart from what they request.

In: pods. Out: `PodClass` objects, with terms whose selectors are in the `SelectorTable`. Called by the compiler. Labels
that no selector of the snapshot names are left out first: else the unique labels of a StatefulSet's pods would make
every pod a class of its own. Resource vectors are kept apart (`requests.py`): applications × sizes would multiply.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from underhost.agents.engine import terms
from underhost.agents.engine.nodes import normalised_image
from underhost.agents.engine.selectors import IN, Namespaces, Requirement, Selector, SelectorTable, matches
from underhost.agents.engine.terms import Affinity, LabelSelector, PodAffinityTerm, SpreadConstraint, Toleration

HOSTNAME_KEY, ZONE_KEY = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
HONOR, IGNORE = "Honor", "Ignore"

Port = tuple[str, str, int]  # host IP, protocol, port
Disk = tuple[str, tuple[str, ...], bool]  # kind, identity, read-only
Owner = tuple[str, str, str]  # kind, apiVersion, name of the controller


class Term(NamedTuple):
    """A term of pod affinity or anti-affinity; `selector` None matches no pod."""

    selector: Selector | None
    key: str


class WeightedTerm(NamedTuple):
    """A preferred term; the weight of anti-affinity is negative."""

    selector: Selector | None
    key: str
    weight: int


class Constraint(NamedTuple):
    """A spread constraint. `selector` None counts no pod; `self_match`: the class's own pods match its selector."""

    selector: Selector | None
    key: str
    max_skew: int
    min_domains: int
    self_match: bool
    honor_affinity: bool
    honor_taints: bool


class RawClass(NamedTuple):
    """What makes a pod equal to another, before anything is parsed; equal bytes mean equal meaning."""

    namespace: str
    labels: bytes
    affinity: bytes
    node_selector: bytes
    tolerations: bytes
    spread: bytes
    images: tuple[str, ...]
    containers: int
    ports: tuple[Port, ...]
    disks: tuple[Disk, ...]
    owner: Owner | None
    live: bool
    node_name: str


class PodClass:
    """Pods equal for every rule. All attributes but `selectors` are set once.

    Attributes:
        id: position in `Model.classes`. namespace, labels: the labels that some selector names.
        live: False for pods that are being deleted.
        node_name: the absent node that the pods are bound to, or "".
        node_selector, node_terms, preferred_node: of node affinity; `node_terms` None where there is no required part.
        node_key: equal for classes with equal node affinity. tolerations, tolerations_key likewise.
        required_affinity, required_anti, preferred: terms between pods.
        hard, soft: spread constraints; `system_default` tells that `soft` are the scheduler's own.
        images: known images of the containers, with repetition; image_count: number of containers.
        ports, disks: host ports and inline disks.
        selectors: the selectors of the snapshot that match these pods.
    """

    __slots__ = (
        "disks",
        "hard",
        "id",
        "image_count",
        "images",
        "labels",
        "live",
        "namespace",
        "node_key",
        "node_name",
        "node_selector",
        "node_terms",
        "ports",
        "preferred",
        "preferred_node",
        "required_affinity",
        "required_anti",
        "selectors",
        "soft",
        "system_default",
        "tolerations",
        "tolerations_key",
    )

    def __init__(self, id_: int, raw: RawClass, labels: dict[str, str]) -> None:
        self.id, self.namespace, self.labels = id_, raw.namespace, labels
        self.live, self.node_name, self.ports, self.disks = raw.live, raw.node_name, raw.ports, raw.disks
        self.node_selector: dict[str, str] = {}
        self.node_terms: tuple[terms.NodeSelectorTerm, ...] | None = None
        self.preferred_node: tuple[terms.PreferredSchedulingTerm, ...] | None = None
        self.node_key: tuple[bytes, bytes] = (b"", b"")
        self.tolerations: tuple[Toleration, ...] = ()
        self.tolerations_key = raw.tolerations
        self.required_affinity: tuple[Term, ...] = ()
        self.required_anti: tuple[Term, ...] = ()
        self.preferred: tuple[WeightedTerm, ...] = ()
        self.hard: tuple[Constraint, ...] = ()
        self.soft: tuple[Constraint, ...] = ()
        self.system_default = False
        self.images: tuple[str, ...] = ()
        self.image_count = 0
        self.selectors: list[Selector] = []


class Parsed(NamedTuple):
    """The parsed parts of a raw class."""

    labels: dict[str, str]
    affinity: Affinity
    node_selector: dict[str, str]
    tolerations: tuple[Toleration, ...]
    spread: tuple[SpreadConstraint, ...]


class Parser:
    """Parses every distinct raw part once."""

    def __init__(self) -> None:
        self._labels: dict[bytes, dict[str, str]] = {}
        self._affinity: dict[bytes, Affinity] = {}
        self._selectors: dict[bytes, dict[str, str]] = {}
        self._tolerations: dict[bytes, tuple[Toleration, ...]] = {}
        self._spread: dict[bytes, tuple[SpreadConstraint, ...]] = {}

    def parse(self, raw: RawClass) -> Parsed:
        """The parts. Raises Fault."""
        labels = self._labels.get(raw.labels)
        if labels is None:
            labels = self._labels[raw.labels] = terms.labels(raw.labels)
        affinity = self._affinity.get(raw.affinity)
        if affinity is None:
            affinity = self._affinity[raw.affinity] = terms.affinity(raw.affinity)
        selector = self._selectors.get(raw.node_selector)
        if selector is None:
            selector = self._selectors[raw.node_selector] = terms.labels(raw.node_selector, "spec.nodeSelector")
        tolerations = self._tolerations.get(raw.tolerations)
        if tolerations is None:
            tolerations = self._tolerations[raw.tolerations] = terms.tolerations(raw.tolerations)
        spread = self._spread.get(raw.spread)
        if spread is None:
            spread = self._spread[raw.spread] = terms.spread_constraints(raw.spread)
        return Parsed(labels, affinity, selector, tolerations, spread)

    def selected_keys(self) -> set[str]:
        """The pod labels that any term or constraint parsed so far reads."""
        keys: set[str] = set()
        for affinity in self._affinity.values():
            keys |= affinity_keys(affinity)
        for constraints in self._spread.values():
            keys |= spread_keys(constraints)
        return keys


def affinity_keys(affinity: Affinity) -> set[str]:
    """The pod labels that the terms read."""
    keys: set[str] = set()
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            for term in part.required or ():
                keys |= _keys(term.label_selector)
            for weighted in part.preferred or ():
                keys |= _keys(weighted.pod_affinity_term.label_selector)
    return keys


def spread_keys(constraints: tuple[SpreadConstraint, ...]) -> set[str]:
    """The pod labels that the constraints read."""
    keys: set[str] = set()
    for constraint in constraints:
        keys |= _keys(constraint.label_selector)
        keys.update(constraint.match_label_keys or ())
    return keys


def _keys(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*(selector.match_labels or ()), *(e.key for e in selector.match_expressions or ())}


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

    def know_images(self, known_images: Mapping[str, object]) -> None:
        """The images that some node has, from now on."""
        self._images = known_images

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
            self._default_spread(found, raw, labels)
        return found

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

    def _default_spread(self, found: PodClass, raw: RawClass, labels: Mapping[str, str]) -> None:
        requirements = self._default_selector(raw, labels)
        if not requirements:
            return
        selector = self._table.add(frozenset((raw.namespace,)), requirements)
        found.system_default = True
        found.soft = tuple(
            Constraint(selector, key, skew, 1, matches(requirements, labels), True, False)
            for key, skew in ((HOSTNAME_KEY, 3), (ZONE_KEY, 5))
        )
