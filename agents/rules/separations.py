"""Which pods must be apart, by label: the relation that PhysicalHost, the checks and the DRS rules share.

In: classes of equal pods. Out: `Separation`s, each "pods of these classes carry a term that selects pods of those". A
separation does not say where the pods are; `physical.py` asks that of hosts, `drs_cover.py` of virtual machines. Two
pods are kept apart where their nodes have different values of the key (see the rule `physical_host.py`). Required
anti-affinity and DoNotSchedule spread count, of any topologyKey; preferences never do.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underhost.agents.compiled.classes import PodClass

INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD = "InterPodAffinity", "PodTopologySpread"


class Separation(NamedTuple):
    """Every pod of `owners` must be apart from every other pod of `matched`, by the rule's topologyKey.

    `owners` and `matched` are ids of classes, ascending; a class may be in both.
    """

    rule: str
    key: str
    owners: tuple[int, ...]
    matched: tuple[int, ...]


class Gathering(NamedTuple):
    """Every pod of class `owner` must share the domain of `key` with one pod that all its terms select."""

    owner: int
    key: str
    matched: tuple[int, ...]


def separations(classes: Sequence[PodClass]) -> list[Separation]:
    """The required separations of the classes, one for each distinct (rule, key, selector), sorted."""
    owners: dict[tuple[str, str, int], set[int]] = {}
    matched: dict[tuple[str, str, int], tuple[int, ...]] = {}
    for one in classes:
        for rule, terms in ((INTER_POD_AFFINITY, one.required_anti), (POD_TOPOLOGY_SPREAD, one.hard)):
            for term in terms:
                if term.selector is not None and term.selector.classes:
                    at = (rule, term.key, term.selector.id)
                    owners.setdefault(at, set()).add(one.id)
                    matched[at] = term.selector.classes
    return sorted({Separation(at[0], at[1], tuple(sorted(own)), matched[at]) for at, own in owners.items()})


def gatherings(classes: Sequence[PodClass], keys: Iterable[str]) -> list[Gathering]:
    """The required affinities on one of `keys`, sorted: one pod must match all terms of the owner to count."""
    wanted = frozenset(keys)
    found = set()
    for one in classes:
        terms = one.required_affinity
        on_host = [term for term in terms if term.key in wanted]
        if not on_host:
            continue
        every = [set(term.selector.classes) if term.selector is not None else set() for term in terms]
        common = set.intersection(*every)
        if common:
            found.add(Gathering(one.id, on_host[0].key, tuple(sorted(common))))
    return sorted(found)
