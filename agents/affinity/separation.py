"""Which pods must be apart, and which of those that are in one place refuse one another.

In: the selectors and classes of a site, and the pods of one place as `Row`s. Out: the relation "pods of these classes
carry a term that selects pods of those", over the whole site or as one class sees it; and groups of pods that do not
keep apart. Nobody else decides this: placement, the checks, what-if, repair, DRS rules and the extender ask here.

A separation is a required anti-affinity or a DoNotSchedule spread, of any topologyKey; preferences never are. A pod
that carries the term and another pod that it selects refuse one another, whichever came first:

- by required anti-affinity where their nodes are in one domain of the key;
- by PhysicalHost where their nodes are on one known ESXi host and in different domains of the key. Of a host key the
  domain is the live ESXi host, so PhysicalHost has nothing to add there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.site.selectors import Selector, SelectorTable

if TYPE_CHECKING:
    import polars as pl

INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD = "InterPodAffinity", "PodTopologySpread"


# ------------------------------------------------------------------------------------------------------- the relation
class SeparationId(NamedTuple):
    """A separation by what stays while classes come: rule, topologyKey, the id of its selector, and whose rule it is.

    `namespace` is that of the pods that carry the term: terms of several namespaces are several separations, though
    they select the same pods, so that what one asks for changes nothing that is said of another.
    """

    rule: str
    key: str
    selector: int
    namespace: str


class Separation(NamedTuple):
    """Every pod of `owners` must be apart from every other pod of `matched`, by the rule's topologyKey.

    `owners` and `matched` are ids of classes, ascending; a class may be in both. The owners are of one namespace.
    """

    rule: str
    key: str
    owners: tuple[int, ...]
    matched: tuple[int, ...]


class Side(NamedTuple):
    """A separation as one class sees it.

    Attributes:
        namespace: of the pods that carry the term.
        owns: pods of the class carry the term. selected: the term selects pods of the class.
    """

    rule: str
    key: str
    selector: Selector
    namespace: str
    owns: bool
    selected: bool

    @property
    def id(self) -> SeparationId:
        """Which separation it is."""
        return SeparationId(self.rule, self.key, self.selector.id, self.namespace)

    @property
    def mine(self) -> Collection[int]:
        """The classes that the class's own term keeps away."""
        return self.selector.classes if self.owns else ()

    @property
    def theirs(self) -> Collection[int]:
        """The classes whose term keeps the class away."""
        owners = _owners(self.selector, self.rule)
        return owners.get((self.key, self.namespace), ()) if self.selected else ()


def sides_of(cls: PodClass) -> list[Side]:
    """Every separation that the class is on a side of."""
    owned = {
        (rule, term.key, term.selector.id, cls.namespace): Side(
            rule, term.key, term.selector, cls.namespace, True, False
        )
        for rule, terms in ((INTER_POD_AFFINITY, cls.required_anti), (POD_TOPOLOGY_SPREAD, cls.hard))
        for term in terms
        if term.selector is not None
    }
    for selector in cls.selectors:
        for rule in (INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD):
            for key, namespace in _owners(selector, rule):
                at = (rule, key, selector.id, namespace)
                owned[at] = Side(rule, key, selector, namespace, at in owned, True)
    return list(owned.values())


def separation_ids(selectors: SelectorTable) -> list[SeparationId]:
    """Every separation of the site; those whose selector matches no class are among them."""
    return [
        SeparationId(rule, key, selector.id, namespace)
        for selector in selectors.selectors
        for rule in (INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD)
        for key, namespace in _owners(selector, rule)
    ]


def separation_of(selectors: SelectorTable, at: SeparationId) -> Separation:
    """The two sides of a separation, as they are now."""
    selector = selectors.selectors[at.selector]
    owners = tuple(sorted(set(_owners(selector, at.rule)[at.key, at.namespace])))
    return Separation(at.rule, at.key, owners, selector.classes)


def separations(selectors: SelectorTable) -> list[Separation]:
    """Every separation that selects some pod, one for each distinct (rule, key, owners, matched), sorted."""
    found = {separation_of(selectors, at) for at in separation_ids(selectors)}
    return sorted(one for one in found if one.matched)


def _owners(selector: Selector, rule: str) -> "dict[tuple[str, str], list[int]]":
    """By topologyKey and namespace, the classes with a term of the rule that has this selector."""
    return selector.apart if rule == INTER_POD_AFFINITY else selector.spread


# ------------------------------------------------------------------------------------------------------- the decision
class Row(NamedTuple):
    """A pod of one place, as a separation sees it.

    Attributes:
        value: code of its node's domain of the separation's key, -1 where the node lacks the key. pod: its position.
        owner: it carries the term. match: the term selects it.
    """

    value: int
    pod: int
    owner: bool
    match: bool


def refuse(one: Row, other: Row, across: bool) -> bool:
    """Whether two pods of one place refuse one another.

    With `across` the place is a host, and pods in one domain of the key are no concern of it; without, it is a domain
    of the key itself.
    """
    return breaks_own(one, other, across) or breaks_own(other, one, across)


def breaks_own(one: Row, other: Row, across: bool) -> bool:
    """Whether the first pod's own rule is broken by the other: it carries the term that selects the other."""
    if one.value < 0 or other.value < 0 or (across and one.value == other.value):
        return False
    return one.owner and other.match


@overload
def some_refuse(owners: int, matched: int, pods: int, least: int, most: int, across: bool) -> bool: ...


@overload
def some_refuse(
    owners: IntArray, matched: IntArray, pods: IntArray, least: IntArray, most: IntArray, across: bool
) -> BoolArray: ...


@overload
def some_refuse(
    owners: "pl.Expr", matched: "pl.Expr", pods: "pl.Expr", least: "pl.Expr", most: "pl.Expr", across: bool
) -> "pl.Expr": ...


def some_refuse(owners: Any, matched: Any, pods: Any, least: Any, most: Any, across: bool) -> Any:
    """Whether any two pods of a place `refuse` one another, told from numbers alone: of one place, or of many.

    Of many they are arrays or columns. The pods are those on either side whose nodes have the key: how many carry the
    term, how many it selects, how many there are; the least and the greatest code of their nodes' domains. One pod
    alone, though it carries a term that selects itself, refuses nobody.
    """
    found = (owners > 0) & (matched > 0) & (pods > 1)
    return found & (least < most) if across else found


def refusing(rows: Sequence[Row], across: bool) -> list[list[int]]:
    """The pods of one place that refuse one another, as positions in connected groups; [] where all keep apart."""
    rows = [row for row in rows if row.value >= 0]
    if len(rows) < 2:  # as in most places
        return []
    owners, matched = sum(row.owner for row in rows), sum(row.match for row in rows)
    values = [row.value for row in rows]
    if not some_refuse(owners, matched, len(rows), min(values), max(values), across):
        return []
    return groups(rows, across)


def groups(rows: Sequence[Row], across: bool) -> list[list[int]]:
    """The same of a place in which `some_refuse`; the rows are those on either side whose nodes have the key."""
    return _across(rows) if across and len(rows) > 2 else [[row.pod for row in rows]]


def _across(rows: Sequence[Row]) -> list[list[int]]:
    """Connected groups of pods of different values; each side of a pair of values is linked through its first pod."""
    owners: defaultdict[int, list[int]] = defaultdict(list)
    matched: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row.owner:
            owners[row.value].append(row.pod)
        if row.match:
            matched[row.value].append(row.pod)
    links = []
    for value, mine in owners.items():
        for other, theirs in matched.items():
            if value != other:
                links += [(mine[0], pod) for pod in theirs]
                links += [(theirs[0], pod) for pod in mine]
    return connected({pod for link in links for pod in link}, links)


def pairs(rows: Sequence[Row], across: bool) -> Iterator[tuple[int, int]]:
    """Every two pods of one place that refuse one another."""
    return ((one.pod, other.pod) for one, other in combinations(rows, 2) if refuse(one, other, across))


def in_domain_of(domains: Domains, nodes: IndexArray) -> BoolArray:
    """bool[N]: the nodes in a domain of one of these nodes; a node without the key is in none."""
    met = np.zeros(domains.size + 1, bool)  # the last entry is for the code -1
    met[domains.codes[nodes]] = True
    met[-1] = False
    found: BoolArray = met[domains.codes]
    return found


def across_domains(on_host: IntArray, inside: IntArray, present: BoolArray) -> IntArray:
    """int64[k], per node the pods on its host in other domains of the key than the node's own.

    Of the pods whose nodes have the key: `on_host`, how many are on the node's host; `inside`, how many of these in its
    own domain; `present`, whether the node has the key.
    """
    found: IntArray = on_host - inside
    found[~present] = 0
    return found


def in_different_domains(one: IndexArray, other: IndexArray) -> BoolArray:
    """bool[k]: of pairs of nodes of one host, by the codes of their domains of a key, those that it keeps apart."""
    found: BoolArray = (one != other) & (one >= 0) & (other >= 0)
    return found


def connected(members: "Collection[int]", links: "Sequence[tuple[int, int]]") -> list[list[int]]:
    """Connected groups of `members` under `links`, each sorted, the groups by their smallest member."""
    parent = {member: member for member in members}

    def root(of: int) -> int:
        while parent[of] != of:
            parent[of] = parent[parent[of]]
            of = parent[of]
        return of

    for a, b in links:
        a, b = root(a), root(b)
        if a != b:
            parent[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for member in sorted(parent):
        groups.setdefault(root(member), []).append(member)
    return list(groups.values())
