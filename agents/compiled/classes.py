"""Classes of equal pods: pods that every rule treats alike, apart from what they request.

In: the raw parts of pods. Out: `RawClass`, its parts parsed, and what a `PodClass` is; `builder.py` makes it. Labels
that no selector of the snapshot names are left out first: else the unique labels of a StatefulSet's pods would make
every pod a class of its own. Resource vectors are kept apart (`site/requests.py`): applications × sizes would multiply.
"""

import hashlib
from collections.abc import Callable, Sequence
from copy import copy
from typing import Generic, NamedTuple, TypeVar

import msgspec

from underhost.agents.site import terms
from underhost.agents.site.selectors import Selector
from underhost.agents.site.terms import Affinity, LabelSelector, SpreadConstraint, Toleration

T = TypeVar("T")
LARGE = 8192
"""Bytes of an affinity, or of spread constraints, up to which they are kept as they are."""
HOSTNAME_KEY, ZONE_KEY = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
HONOR, IGNORE = "Honor", "Ignore"
NO_SPREAD = (b"[]", b"null")
"""Spread constraints of pods that have none: only these does the scheduler spread by their controllers."""

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

    def cut(self, affinity: bytes, spread: bytes, owner: Owner | None) -> "RawClass":
        """Without labels, and with these: `_replace` takes three times as long."""
        return RawClass(self[0], b"", affinity, self[3], self[4], spread, *self[6:10], owner, *self[11:])


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


class ParsedParts(Generic[T]):
    """Parts of one kind, each parsed once for all that share it; of what is only looked at, the last is kept."""

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self._parse = parse
        self._known: dict[bytes, T] = {}
        self._last: tuple[bytes, T] | None = None

    def of(self, raw: bytes) -> T:
        """What the part says; the same object for equal parts. Raises Fault."""
        at = short(raw)
        found = self._known.get(at)
        if found is None:
            found = self._known[at] = self._read(at, raw)
        return found

    def glance(self, raw: bytes) -> T:
        """The same, of a part whose pod may be of a class that is there: most are. Raises Fault."""
        at = short(raw)
        found = self._known.get(at)
        return self._read(at, raw) if found is None else found

    def _read(self, at: bytes, raw: bytes) -> T:
        if self._last is None or self._last[0] != at:
            self._last = at, self._parse(raw)
        return self._last[1]


class Parser:
    """Parses every distinct raw part once, but for labels: most pods' are their own.

    Attributes:
        affinity, spread: each with the terms or constraints that count by themselves, and how many more there are.

    `most` terms between pods and spread constraints of one pod count: each costs time in every place of the site.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.affinity, self.spread = ParsedParts(self._read_affinity), ParsedParts(self._read_spread)
        self._selectors: dict[bytes, dict[str, str]] = {}
        self._tolerations: dict[bytes, tuple[Toleration, ...]] = {}

    def parse(self, raw: RawClass, labels: dict[str, str]) -> Parsed:
        """The parts, with the labels that are parsed already. Raises Fault."""
        selector = self._selectors.get(raw.node_selector)
        if selector is None:
            selector = self._selectors[raw.node_selector] = terms.labels(raw.node_selector, "spec.nodeSelector")
        tolerations = self._tolerations.get(raw.tolerations)
        if tolerations is None:
            tolerations = self._tolerations[raw.tolerations] = terms.tolerations(raw.tolerations)
        affinity, spread, uncounted = self._counted(self.affinity.of(raw.affinity), self.spread.of(raw.spread))
        return Parsed(labels, affinity, selector, tolerations, spread, uncounted)

    def glance(self, affinity: bytes, spread: bytes) -> tuple[Affinity, tuple[SpreadConstraint, ...]]:
        """The terms and constraints that count. To `parse` such a pod next reads them no second time. Raises Fault."""
        return self._counted(self.affinity.glance(affinity), self.spread.glance(spread))[:2]

    def _counted(
        self, affinity: tuple[Affinity, int], spread: tuple[tuple[SpreadConstraint, ...], int]
    ) -> tuple[Affinity, tuple[SpreadConstraint, ...], int]:
        """What counts of both together, and how many terms and constraints more there are."""
        near, constraints, beyond = counted(affinity[0], spread[0], self.most)
        return near, constraints, beyond + affinity[1] + spread[1]

    def _read_affinity(self, raw: bytes) -> tuple[Affinity, int]:
        """The affinity with the terms that count, and how many more there are. Raises Fault."""
        affinity, _, beyond = counted(terms.affinity(raw), (), self.most)
        return affinity, beyond

    def _read_spread(self, raw: bytes) -> tuple[tuple[SpreadConstraint, ...], int]:
        """The spread constraints that count, and how many more there are. Raises Fault."""
        every = terms.spread_constraints(raw)
        return every[: self.most], max(0, len(every) - self.most)


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
    total = len(spread)
    for part in (near, apart):
        if part is not None:
            total += len(part.required or ()) + len(part.preferred or ())
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
    keys = set(selector.match_labels or ())
    if selector.match_expressions:
        keys.update(one.key for one in selector.match_expressions)
    return keys
