"""Label selectors: parsed once, deduplicated, and matched to classes of pods through an index.

In: requirements (key, operator, values) and namespaces. Out: `Selector`s with the classes they match. Which labels a
class has is left to `compiled/classes.py`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from underhost.agents.site.fault import Fault, shown

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
LABEL_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_OPERATORS = (*LABEL_OPERATORS, GT, LT)

Requirement = tuple[str, str, tuple[str, ...]]
Namespaces = frozenset[str] | None  # None: every namespace

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64 = 1 << 63


def integer(text: str) -> int | None:
    """The number as Go's strconv.ParseInt(text, 10, 64) reads it, or None where it refuses."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text) if len(text) < 40 else _INT64
    return number if -_INT64 <= number < _INT64 else None


def matches_value(requirement: Requirement, value: str | None) -> bool:
    """Whether a label's value (None: the label is missing) meets the requirement."""
    _, operator, values = requirement
    if operator == IN:
        return value is not None and value in values
    if operator == NOT_IN:
        return value is None or value not in values
    if operator == EXISTS:
        return value is not None
    if operator == DOES_NOT_EXIST:
        return value is None
    if value is None:
        return False
    number, bound = integer(value), integer(values[0])
    if number is None or bound is None:
        return False
    return number > bound if operator == GT else number < bound


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether the labels meet every requirement."""
    return all(matches_value(requirement, labels.get(requirement[0])) for requirement in requirements)


def written(requirements: Iterable[Requirement]) -> str:
    """Requirements as `kubectl -l` takes them: `app in (db, web),!old`."""
    return ",".join(map(_written, requirements))


def _written(requirement: Requirement) -> str:
    key, operator, values = requirement
    if operator in (IN, NOT_IN):
        return f"{key} {operator.lower()} ({', '.join(values)})"
    if operator == EXISTS:
        return key
    if operator == DOES_NOT_EXIST:
        return f"!{key}"
    return f"{key}{'>' if operator == GT else '<'}{', '.join(values)}"


def label_requirements(
    match_labels: Mapping[str, str] | None, expressions: Sequence[tuple[str, str, Sequence[str]]], field: str
) -> tuple[Requirement, ...]:
    """The requirements of a LabelSelector, `matchLabels` sorted first; () is the selector that matches everything.

    Raises Fault for what the API server refuses: an unknown operator, values missing or given where there are none.
    """
    found: list[Requirement] = [(key, IN, (value,)) for key, value in sorted((match_labels or {}).items())]
    for at, (key, operator, values) in enumerate(expressions):
        place = f"{field}.matchExpressions[{at}]"
        if operator not in LABEL_OPERATORS:
            raise Fault(f"{place}.operator", f"{shown(operator)} is none of {', '.join(LABEL_OPERATORS)}")
        if operator in (IN, NOT_IN) and not values:
            raise Fault(f"{place}.values", f"operator {operator} needs a value")
        if operator in (EXISTS, DOES_NOT_EXIST) and values:
            raise Fault(f"{place}.values", f"operator {operator} takes no value")
        found.append((key, operator, tuple(values)))
    return tuple(found)


FEW = 4
"""Namespaces of a selector up to which it is looked for in each of them."""


class Selector:
    """Which pods: the namespaces and the requirements on labels. Equal selectors are one object.

    Attributes:
        id: position in the table. namespaces: names, or None for every namespace.
        requirements: all must hold; () matches every pod of the namespaces.
        classes: ids of the classes that match, ascending; set by `SelectorTable.match`.
        apart, spread: by topologyKey and namespace, the ids of the namespace's classes with a term of it: required
            anti-affinity, strict spread. near: by topologyKey, those with required affinity. preferred: likewise, the
            weight by class.
    """

    __slots__ = ("apart", "classes", "id", "namespaces", "near", "preferred", "requirements", "spread")

    def __init__(self, id_: int, namespaces: Namespaces, requirements: tuple[Requirement, ...]) -> None:
        self.id, self.namespaces, self.requirements = id_, namespaces, requirements
        self.classes: tuple[int, ...] = ()
        self.apart: dict[tuple[str, str], list[int]] = {}
        self.spread: dict[tuple[str, str], list[int]] = {}
        self.near: dict[str, list[int]] = {}
        self.preferred: dict[str, dict[int, int]] = {}

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is selected."""
        return (self.namespaces is None or namespace in self.namespaces) and matches(self.requirements, labels)


class SelectorTable:
    """All selectors of a snapshot, each once, with an index from namespaces and labels to those that name them."""

    def __init__(self) -> None:
        self.selectors: list[Selector] = []
        self._known: dict[tuple[Namespaces, tuple[Requirement, ...]], Selector] = {}
        self._by_label: defaultdict[tuple[str | None, str, str], list[Selector]] = defaultdict(list)
        self._by_key: defaultdict[tuple[str | None, str], list[Selector]] = defaultdict(list)
        self._general: defaultdict[str | None, list[Selector]] = defaultdict(list)
        self._of_many = False

    def add(self, namespaces: Namespaces, requirements: tuple[Requirement, ...]) -> Selector:
        """The selector with this meaning, made if it is new."""
        key = (namespaces, requirements)
        selector = self._known.get(key)
        if selector is None:
            selector = self._known[key] = Selector(len(self.selectors), namespaces, requirements)
            self.selectors.append(selector)
            self._index(selector)
        return selector

    def _index(self, selector: Selector) -> None:
        """Nobody looks through the selectors of namespaces that a pod is not in, unless they name many."""
        few = selector.namespaces is not None and len(selector.namespaces) <= FEW
        self._of_many |= not few
        chosen = min((r for r in selector.requirements if r[1] == IN), key=lambda r: len(r[2]), default=None)
        named = next((key for key, operator, _ in selector.requirements if operator == EXISTS), None)
        for place in selector.namespaces or () if few else (None,):
            if chosen is not None:  # labels have one value of a key, so it is found once however many values it names
                for value in set(chosen[2]):
                    self._by_label[place, chosen[0], value].append(selector)
            elif named is not None:
                self._by_key[place, named].append(selector)
            else:
                self._general[place].append(selector)

    def match(self, classes: Sequence[tuple[str, Mapping[str, str]]]) -> list[list[Selector]]:
        """Match (namespace, labels) of every class; sets `classes` on the selectors.

        Returns the selectors that match, per class.
        """
        matched: list[list[Selector]] = []
        members: defaultdict[int, list[int]] = defaultdict(list)
        for id_, (namespace, labels) in enumerate(classes):
            mine = self.matching(namespace, labels)
            for selector in mine:
                members[selector.id].append(id_)
            matched.append(mine)
        for selector in self.selectors:
            selector.classes = tuple(members.get(selector.id, ()))
        return matched

    def matching(self, namespace: str, labels: Mapping[str, str]) -> list[Selector]:
        """The selectors that match a pod with these labels."""
        found: list[Selector] = []
        for place in (namespace, None) if self._of_many else (namespace,):
            for key, value in labels.items():
                found += self._by_label.get((place, key, value), ())
                found += self._by_key.get((place, key), ())
            found += self._general.get(place, ())
        return [selector for selector in found if selector.matches(namespace, labels)]
