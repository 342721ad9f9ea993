"""Numbers the classes of equal pods: of all pods at first, then of one pod after another.

In: what was read of pods. Out: the number of the class of each, made when it is new. A label that no selector named
before makes other classes only of the pods that carry it, in the namespaces that are selected from (`new_keys`): the
caller finds these pods their classes again. What would make every class anew (a namespace that comes or changes where a
term selects it) is `Outdated`: the caller starts anew. Images are part of what tells classes apart, so that a node's
list of images changes none; Services and workloads change the scheduler's own spreading.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress

from underhost.agents.compiled.builder import ClassBuilder
from underhost.agents.compiled.classes import (
    NO_SPREAD,
    Parsed,
    Parser,
    PodClass,
    RawClass,
    affinity_keys,
    selector_keys,
    short,
    spread_keys,
)
from underhost.agents.compiled.default_spreading import DefaultSelectors, service_selector, workload_selector
from underhost.agents.compiled.images import normalised_image
from underhost.agents.compiled.reader import Reading
from underhost.agents.site import terms
from underhost.agents.site.changes import Outdated, is_classed_alike
from underhost.agents.site.fault import Fault
from underhost.agents.site.selectors import IN, Requirement, Selector, SelectorTable, matches
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Namespace, Pod, Service, Workload

_NAMESPACE, _IMAGE, _LABEL = "namespace", "image", "label"


class Classifier:
    """The classes of one site.

    Attributes:
        classes: by number; they stay when their last pod has gone. table: their selectors.
        with_ports: the numbers of those with host ports. raws: of each class what was read of its pods, but for labels.
    """

    def __init__(self, snapshot: Snapshot, images: Mapping[str, object], parser: Parser) -> None:
        """`images`: those that some node has, as they change; `parser` may know parts. Raises BadObjectError."""
        self._most = parser.most
        self.classes: list[PodClass] = []
        self.with_ports: set[int] = set()
        self.table = SelectorTable()
        self._defaults = DefaultSelectors(snapshot.services, snapshot.workloads)
        self._parser = parser
        self._namespaces: dict[str, dict[str, str]] = {}
        self._builder = ClassBuilder(self.table, self._namespaces, images, self._defaults)
        self._known: dict[object, int] = {}
        self.raws: list[RawClass] = []
        self._index: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        self._indexed = 0
        self._selected_namespaces: set[tuple[Requirement, ...]] = set()
        self._used: set[str] = set()
        self._used_in: defaultdict[str, set[str]] = defaultdict(set)

    def number_all(self, snapshot: Snapshot, reading: Reading) -> list[int]:
        """The classes of all raw classes that were read, by their numbers; to be asked first, and once.

        Raises BadObjectError.
        """
        raws = [RawClass._make(fields) for fields in reading.classes]
        parsed, found = list[Parsed](), list[int]()
        for number, raw in enumerate(raws):
            try:
                parsed.append(self._parsed(raw, terms.labels(raw.labels)))
            except Fault as fault:
                raise fault.within(f"Pod {reading.a_pod_of(number)}") from None
        self._namespaces |= {raw.namespace: {} for raw in raws}
        self._namespaces |= {name: _labels_of(name, one) for name, one in snapshot.namespaces.items()}
        self._used = _selected_keys(parsed) | self._defaults.keys
        for number, (raw, parts) in enumerate(zip(raws, parsed, strict=True)):
            try:
                found.append(self._number(raw, parts.labels, parts))
            except Fault as fault:
                raise fault.within(f"Pod {reading.a_pod_of(number)}") from None
        matched = self.table.match([(cls.namespace, cls.labels) for cls in self.classes])
        for cls, selectors in zip(self.classes, matched, strict=True):
            cls.selectors = selectors
        self._parser = Parser(self._most)  # most parts are of one class alone: of no use any more
        self._builder.forget_parts()
        return found

    def class_of(self, fields: tuple[object, ...], pod: str) -> tuple[int, bool]:
        """The class with these fields of a raw class, and whether it is new.

        Raises Outdated, and BadObjectError that names `pod`.
        """
        raw, before = RawClass._make(fields), len(self.classes)
        if raw.namespace not in self._namespaces:
            self._change_namespace(raw.namespace, {})
        selectors = len(self.table.selectors)
        try:
            found = self._number(raw, terms.labels(raw.labels), None)
        except Fault as fault:
            raise fault.within(f"Pod {pod}") from None
        if found < before:
            return found, False
        self._match(self.classes[found], self.table.selectors[selectors:])
        return found, True

    def stays(self, old: Pod, new: Pod) -> bool:
        """Whether a pod is of the class that it was of, as far as that costs less than to look for its class.

        Labels that no selector reads may be others: a binding gives a pod its host's.
        """
        if not is_classed_alike(old, new):
            return False
        one, other = bytes(old.metadata.labels), bytes(new.metadata.labels)
        if one == other:
            return True
        try:
            was, now = terms.labels(one), terms.labels(other)
        except Fault:
            return False  # said where its class is asked for
        changed = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
        return changed.isdisjoint(self._used) and changed.isdisjoint(self._used_in.get(new.metadata.namespace, ()))

    def change_namespace(self, name: str, namespace: Namespace | None) -> None:
        """A namespace came, changed or went. Raises Outdated, BadObjectError."""
        self._change_namespace(name, {} if namespace is None else _labels_of(name, namespace))

    def _change_namespace(self, name: str, labels: dict[str, str]) -> None:
        before = self._namespaces.get(name)
        for requirements in self._selected_namespaces:
            if (before is not None and matches(requirements, before)) != matches(requirements, labels):
                raise Outdated
        self._namespaces[name] = labels

    # --------------------------------------------------------------------------------------------- labels that matter
    def new_keys(self, namespace: str, affinity: bytes, spread: bytes) -> dict[str | None, set[str]]:
        """The labels that terms of a pod of the namespace read and that do not count yet.

        By namespace whose pods are selected from; None for all of them. What cannot be read names none.
        """
        try:
            pods, constraints = self._parser.glance(affinity, spread)
        except Fault:
            return {}
        return self._new_keys(namespace, pods, constraints)

    def _new_keys(
        self, namespace: str, affinity: terms.Affinity, spread: tuple[terms.SpreadConstraint, ...]
    ) -> dict[str | None, set[str]]:
        if self._used.issuperset(affinity_keys(affinity)) and self._used.issuperset(spread_keys(spread)):
            return {}  # as mostly
        found: defaultdict[str | None, set[str]] = defaultdict(set)
        found[namespace] |= spread_keys(spread)
        for term in _terms_of(affinity):
            names = (None,) if term.namespace_selector is not None else term.namespaces or (namespace,)
            for name in names:
                found[name] |= selector_keys(term.label_selector)
        new = {name: {key for key in keys if not self._counts(key, name)} for name, keys in found.items()}
        return {name: keys for name, keys in new.items() if keys}

    def use(self, keys: Iterable[str], namespace: str | None) -> None:
        """From now on these labels count, in all namespaces or in one.

        The classes of pods that carry one are to be asked for again.
        """
        (self._used if namespace is None else self._used_in[namespace]).update(keys)

    def keys_of_service(self, name: str, namespace: str, service: Service | None) -> set[str]:
        """The labels that a Service selects by and that do not count yet. Raises BadObjectError."""
        return {key for key in service_selector(name, service) if not self._counts(key, namespace)}

    def keys_of_workload(self, workload: Workload | None) -> set[str]:
        """The labels that a workload selects by and that do not count yet. Raises BadObjectError."""
        if workload is None:
            return set()
        requirements = workload_selector(workload) or ()
        return {key for key, _, _ in requirements if not self._counts(key, workload.metadata.namespace)}

    def classes_in(self, namespace: str) -> Sequence[int]:
        """The classes of a namespace."""
        return self._with(_NAMESPACE, namespace)

    def _counts(self, key: str, namespace: str | None) -> bool:
        return key in self._used or (namespace is not None and key in self._used_in.get(namespace, ()))

    # ---------------------------------------------------------------------------------------- what pods are spread by
    def change_service(self, name: str, namespace: str, service: Service | None) -> None:
        """A Service came, changed or went (None): it spreads pods of its namespace. Raises Outdated, BadObjectError."""
        self._defaults.put_service(name, namespace, service)
        self._spread_anew(namespace)

    def change_workload(self, before: Workload | None, workload: Workload | None) -> bool:
        """A workload came, changed or went; whether its pods are of other classes now.

        Raises Outdated, BadObjectError.
        """
        either = workload or before
        assert either is not None
        was = self._defaults.of_workload(either)
        if workload is None:
            self._defaults.drop_workload(either)
        else:
            self._defaults.put_workload(workload)
        now = self._defaults.of_workload(either)
        if was != now:
            self._spread_anew(either.metadata.namespace, either)
        return (was is None) != (now is None)

    def classes_under(self, namespace: str, controllers: Container[tuple[str, str]]) -> list[int]:
        """The classes that pods of these controllers (kind, name) may have; pods of unknown ones share classes."""
        raws = ((number, self.raws[number]) for number in self._with(_NAMESPACE, namespace))
        return [
            number
            for number, raw in raws
            if (raw.spread in NO_SPREAD if raw.owner is None else (raw.owner[0], raw.owner[2]) in controllers)
        ]

    def _spread_anew(self, namespace: str, workload: Workload | None = None) -> None:
        """The classes that the scheduler spreads by its own constraints have others now; those of `workload` alone."""
        selectors = len(self.table.selectors)
        for number in self._with(_NAMESPACE, namespace):
            cls, owner = self.classes[number], self.raws[number].owner
            if workload is not None and (
                owner is None or owner[0] != workload.kind or owner[2] != workload.metadata.name
            ):
                continue
            if cls.system_default or not (cls.hard or cls.soft):
                self._builder.spread_by_default(cls, self.raws[number])
        self._match_selectors(self.table.selectors[selectors:])

    def change_images(self, images: Iterable[str]) -> None:
        """Some node has these images now and none had, or the other way round: only known ones make a class prefer."""
        for number in {cls for image in images for cls in self._with(_IMAGE, image)}:
            cls = self.classes[number]
            cls.images, cls.image_count = self._builder.image_key(self.raws[number])

    def _number(self, raw: RawClass, every: dict[str, str], parts: Parsed | None) -> int:
        """The class with the labels that count of `every`. Raises Fault."""
        used = self._used & every.keys()
        if raw.namespace in self._used_in:
            used |= self._used_in[raw.namespace] & every.keys()
        labels = {key: every[key] for key in sorted(used)}
        owner = self._defaults.known(raw.namespace, raw.owner)
        affinity, spread = short(raw.affinity), short(raw.spread)
        kept = raw.cut(affinity, spread, owner)
        identity = (kept, tuple(labels.items()))
        found = self._known.get(identity)
        if found is not None:
            return found
        if parts is None:
            parts = self._parsed(raw, every)
            if self._new_keys(raw.namespace, parts.affinity, parts.spread):
                raise Outdated
        found = len(self.classes)
        self.classes.append(self._builder.build(found, raw, parts, labels))
        if raw.ports:
            self.with_ports.add(found)
        self._known[identity] = found
        self.raws.append(identity[0])  # an unknown owner may be another pod's as well
        return found

    def _parsed(self, raw: RawClass, labels: dict[str, str]) -> Parsed:
        """The parts. Raises Fault."""
        parts = self._parser.parse(raw, labels)
        for term in _terms_of(parts.affinity):
            if term.namespace_selector is not None:
                with suppress(Fault):  # the builder says what is wrong with it
                    self._selected_namespaces.add(term.namespace_selector.requirements(""))
        return parts

    def _match(self, cls: PodClass, new: Sequence[Selector]) -> None:
        """Tell the older selectors of the class, and the new ones of every class."""
        made = {selector.id for selector in new}
        cls.selectors = [one for one in self.table.matching(cls.namespace, cls.labels) if one.id not in made]
        for selector in cls.selectors:
            selector.classes = (*selector.classes, cls.id)
        self._match_selectors(new)

    def _match_selectors(self, new: Sequence[Selector]) -> None:
        for selector in new:
            matched = [one for one in self._candidates(selector) if selector.matches(one.namespace, one.labels)]
            selector.classes = tuple(one.id for one in matched)
            for one in matched:
                one.selectors.append(selector)

    def _candidates(self, selector: Selector) -> list[PodClass]:
        for key, operator, values in selector.requirements:
            if operator == IN and len(values) == 1:
                return [self.classes[at] for at in self._with(_LABEL, key, values[0])]
        return self.classes

    def _with(self, *what: str) -> Sequence[int]:
        """The classes of a namespace, with an image or with a label; only changes ask, so the first one indexes all."""
        for number in range(self._indexed, len(self.classes)):
            raw = self.raws[number]
            self._index[_NAMESPACE, raw.namespace].append(number)
            for image in {normalised_image(name) for name in raw.images}:
                self._index[_IMAGE, image].append(number)
            for label in self.classes[number].labels.items():
                self._index[_LABEL, *label].append(number)
        self._indexed = len(self.classes)
        return self._index.get(what, ())


def _labels_of(name: str, namespace: Namespace) -> dict[str, str]:
    try:
        return terms.labels(bytes(namespace.metadata.labels))
    except Fault as fault:
        raise fault.within(f"Namespace {name}") from None


def _selected_keys(parsed: Iterable[Parsed]) -> set[str]:
    """The pod labels that any term or constraint reads."""
    affinities = {id(parts.affinity): parts.affinity for parts in parsed}.values()
    spreads = {id(parts.spread): parts.spread for parts in parsed}.values()
    return set[str]().union(*map(affinity_keys, affinities), *map(spread_keys, spreads))


def _terms_of(affinity: terms.Affinity) -> Iterable[terms.PodAffinityTerm]:
    """Every term between pods."""
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            yield from part.required or ()
            yield from (one.pod_affinity_term for one in part.preferred or ())
