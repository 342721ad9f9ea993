"""Classes of equal pods: pods that every rule treats alike, apart from what they request.

In: the raw parts of pods. Out: `RawClass`, its parts parsed, and what a `PodClass` is; `builder.py` makes it.
Labels that no selector of the snapshot names are left out first: else the unique labels of a StatefulSet's pods would
make every pod a class of its own. Resource vectors are kept apart (`requests.py`): applications × sizes would multiply.
"""

import hashlib
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, TypeVar

import msgspec

from underhost.agents.site import terms
from underhost.agents.site.selectors import Selector
from underhost.agents.site.terms import Affinity, LabelSelector, SpreadConstraint, Toleration

T = TypeVar("T")
LARGE = 8192
"""Bytes of an affinity, or of spread constraints, up to which they are kept as they are."""
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
    features: tuple[str, ...]


class PodClass:
    """Pods equal for every rule. All attributes but `selectors` are set once.

    Attributes:
        id: position in `Model.classes`. namespace, labels: the labels that some selector names.
        live: False for pods that are being deleted.
        node_name: the absent node that a pod is bound to, see `bound_to`; else "".
        node_selector, node_terms, preferred_node: of node affinity; `node_terms` None where there is no required part.
        node_key: equal for classes with equal node affinity. tolerations, tolerations_key likewise.
        required_affinity, required_anti, preferred: terms between pods.
        hard, soft: spread constraints; `system_default` tells that `soft` are the scheduler's own.
        images: known images of the containers, with repetition; image_count: number of containers.
        ports, disks: host ports and inline disks. features: those of the kubelet that the pods need, by name.
        selectors: the selectors of the snapshot that match these pods.
        uncounted: terms between pods and spread constraints beyond a pod's share.
    """

    __slots__ = (
        "disks",
        "features",
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
        "uncounted",
    )

    def __init__(self, id_: int, raw: RawClass, labels: dict[str, str]) -> None:
        self.id, self.namespace, self.labels = id_, raw.namespace, labels
        self.live, self.node_name, self.ports, self.disks = raw.live, "", raw.ports, raw.disks
        self.features = raw.features
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
        self.uncounted = 0

    def bound_to(self, node_name: str) -> "PodClass":
        """The same class for pods that are bound to a node that is not there."""
        found = copy(self)
        found.node_name = node_name
        return found


class Parsed(NamedTuple):
    """The parsed parts of a raw class; `uncounted`: terms and constraints that were left out."""

    labels: dict[str, str]
    affinity: Affinity
    node_selector: dict[str, str]
    tolerations: tuple[Toleration, ...]
    spread: tuple[SpreadConstraint, ...]
    uncounted: int = 0


class Parser:
    """Parses every distinct raw part once, but for labels: most pods' are their own.

    `most` terms between pods and spread constraints of one pod count: each costs time in every place of the site.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._affinity: dict[bytes, tuple[Affinity, int]] = {}
        self._selectors: dict[bytes, dict[str, str]] = {}
        self._tolerations: dict[bytes, tuple[Toleration, ...]] = {}
        self._spread: dict[bytes, tuple[tuple[SpreadConstraint, ...], int]] = {}

    def parse(self, raw: RawClass, labels: dict[str, str]) -> Parsed:
        """The parts, with the labels that are parsed already. Raises Fault."""
        known = self.affinity(raw.affinity)
        selector = self._selectors.get(raw.node_selector)
        if selector is None:
            selector = self._selectors[raw.node_selector] = terms.labels(raw.node_selector, "spec.nodeSelector")
        tolerations = self._tolerations.get(raw.tolerations)
        if tolerations is None:
            tolerations = self._tolerations[raw.tolerations] = terms.tolerations(raw.tolerations)
        constraints = self.spread(raw.spread)
        affinity, spread, uncounted = counted(known[0], constraints[0], self.most)
        return Parsed(labels, affinity, selector, tolerations, spread, uncounted + known[1] + constraints[1])

    def affinity(self, raw: bytes) -> tuple[Affinity, int]:
        """The affinity with the terms that count, and how many more there are. Raises Fault."""
        known = self._affinity.get(short(raw))
        if known is None:
            affinity, _, beyond = counted(terms.affinity(raw), (), self.most)
            known = self._affinity[short(raw)] = affinity, beyond
        return known

    def spread(self, raw: bytes) -> tuple[tuple[SpreadConstraint, ...], int]:
        """The spread constraints that count, and how many more there are. Raises Fault."""
        known = self._spread.get(short(raw))
        if known is None:
            every = terms.spread_constraints(raw)
            known = self._spread[short(raw)] = every[: self.most], max(0, len(every) - self.most)
        return known


def short(part: bytes) -> bytes:
    """What stands for a part that is looked up again: of a large one a digest, which keeps nothing of it."""
    return part if len(part) <= LARGE else hashlib.blake2b(part).digest()


def counted(
    affinity: Affinity, spread: tuple[SpreadConstraint, ...], most: int
) -> tuple[Affinity, tuple[SpreadConstraint, ...], int]:
    """The first `most` terms between pods and spread constraints, what is required before preferences; how many more.

    The terms are the very same objects.
    """
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    parts = [part for part in (near, apart) if part is not None]
    total = sum(len(part.required or ()) + len(part.preferred or ()) for part in parts) + len(spread)
    if total <= most:
        return affinity, spread, 0
    left = most

    def first(terms_: Sequence[T] | None) -> list[T]:
        nonlocal left
        kept = list(terms_ or ())[:left]
        left -= len(kept)
        return kept

    required = [first(part.required if part is not None else None) for part in (apart, near)]
    kept = tuple(first(spread))
    preferred = [first(part.preferred if part is not None else None) for part in (apart, near)]
    apart, near = (terms.PodAffinity(*both) for both in zip(required, preferred, strict=True))
    return msgspec.structs.replace(affinity, pod_affinity=near, pod_anti_affinity=apart), kept, total - most


def affinity_keys(affinity: Affinity) -> set[str]:
    """The pod labels that the terms read."""
    keys: set[str] = set()
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            for term in part.required or ():
                keys |= selector_keys(term.label_selector)
            for weighted in part.preferred or ():
                keys |= selector_keys(weighted.pod_affinity_term.label_selector)
    return keys


def spread_keys(constraints: tuple[SpreadConstraint, ...]) -> set[str]:
    """The pod labels that the constraints read."""
    keys: set[str] = set()
    for constraint in constraints:
        keys |= selector_keys(constraint.label_selector)
        keys.update(constraint.match_label_keys or ())
    return keys


def selector_keys(selector: LabelSelector | None) -> set[str]:
    """The labels that a selector reads."""
    if selector is None:
        return set()
    return {*(selector.match_labels or ()), *(e.key for e in selector.match_expressions or ())}
