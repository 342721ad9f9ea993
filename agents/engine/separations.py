"""Which pods must be apart, by label: the relation that PhysicalHost, the checks and the DRS rules share.

In: classes of equal pods. Out: `Separation`s, each "pods of these classes carry a term that selects pods of those". A
separation does not say where the pods are; `physical.py` asks that of hosts, `drs_cover.py` of virtual machines.
Required anti-affinity and DoNotSchedule spread count, of any topologyKey; preferences never do.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underhost.agents.engine.classes import PodClass

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
    """The required separations of the classes, one for each distinct (rule, key, selector), sorted.

    A spread constraint separates only pods that it counts: those that its own selector matches and that are not being
    deleted. Terminating pods still count for anti-affinity.
    """
    owners: dict[tuple[str, str, int], set[int]] = {}
    matched: dict[tuple[str, str, int], tuple[int, ...]] = {}
    for one in classes:
        for term in one.required_anti:
            if term.selector is not None and term.selector.classes:
                at = (INTER_POD_AFFINITY, term.key, term.selector.id)
                owners.setdefault(at, set()).add(one.id)
                matched[at] = term.selector.classes
        if not one.live:
            continue
        for constraint in one.hard:
            if constraint.selector is not None and constraint.self_match:
                at = (POD_TOPOLOGY_SPREAD, constraint.key, constraint.selector.id)
                owners.setdefault(at, set()).add(one.id)
                matched[at] = tuple(id_ for id_ in constraint.selector.classes if classes[id_].live)
    found = {Separation(at[0], at[1], tuple(sorted(own)), matched[at]) for at, own in owners.items()}
    return sorted(found)


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
