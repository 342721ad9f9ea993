"""Which pods share a topology domain although a separation keeps them apart: set-wise, over all pods at once.

In: a model and its separations. Out: groups of pods, as positions in `model.running`. Called by `violations.py` with
the terms' own topologies and by `physical.py` with the ESXi hosts. Frames in, few rows out: pods are listed only where
a separation is broken.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from underhost.agents.engine import frames as fr
from underhost.agents.engine.domains import Domains
from underhost.agents.engine.findings import connected
from underhost.agents.engine.model import Model
from underhost.agents.engine.separations import Separation


class Group(NamedTuple):
    """Pods that refuse one another in one domain, connected through one or more separations of one rule and key.

    `pods` are positions in `model.running`, sorted by name; `separations` those that hold between some of them.
    """

    domain: int
    pods: list[int]
    separations: list[Separation]


def together(model: Model, domains: Domains, apart: Sequence[Separation]) -> list[Group]:
    """Connected groups of pods that must be apart and share a domain of `domains`, by domain and smallest pod."""
    if not apart or not len(model.running.keys):
        return []
    met = _met(_placed(model, domains), _sides(apart, owners=True), _sides(apart, owners=False))
    by_domain: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for separation, domain, pod in met.iter_rows():
        by_domain[domain].append((separation, pod))
    keys = model.running.keys
    found = []
    for domain, rows in sorted(by_domain.items()):
        for pods, separations in _connect(rows):
            names = sorted(pods, key=keys.__getitem__)
            found.append(Group(domain, names, [apart[one] for one in separations]))
    return sorted(found, key=lambda group: (group.domain, keys[group.pods[0]]))


def _placed(model: Model, domains: Domains) -> pl.DataFrame:
    codes = domains.codes[model.running.nodes]
    frame = pl.DataFrame(
        {
            fr.POD: np.arange(len(codes), dtype=np.uint32),
            fr.CLASS: model.running.classes.astype(np.uint32),
            fr.DOMAIN: codes.astype(np.int32),
        },
        schema=fr.PLACED,
    )
    return frame.filter(pl.col(fr.DOMAIN) >= 0) if domains.missing else frame


def _sides(apart: Sequence[Separation], owners: bool) -> pl.DataFrame:
    sides = [one.owners if owners else one.matched for one in apart]
    return pl.DataFrame(
        {
            fr.SEPARATION: np.repeat(np.arange(len(sides), dtype=np.uint32), [len(side) for side in sides]),
            fr.CLASS: np.array([one for side in sides for one in side], np.uint32),
        },
        schema=fr.SIDE,
    )


def _met(placed: pl.DataFrame, owners: pl.DataFrame, matched: pl.DataFrame) -> pl.DataFrame:
    """The pods of every (separation, domain) that holds an owner and another pod it selects.

    Every join is eager: left to itself polars 2.1 reorders lazy inner joins and builds their product.
    """
    both = owners.join(matched, on=[fr.SEPARATION, fr.CLASS], how="semi")
    cells = placed.group_by(fr.CLASS, fr.DOMAIN).agg(pl.len().alias(fr.COUNT))
    members = cells.join(pl.concat([owners, matched]).unique(), on=fr.CLASS)

    def counted(side: pl.DataFrame, name: str) -> pl.DataFrame:
        return cells.join(side, on=fr.CLASS).group_by(fr.SEPARATION, fr.DOMAIN).agg(pl.col(fr.COUNT).sum().alias(name))

    place = [fr.SEPARATION, fr.DOMAIN]
    met = counted(owners, fr.OWNERS).join(counted(matched, fr.MATCHED), on=place)
    met = met.join(counted(both, fr.BOTH), on=place, how="left")
    # owners + matched − both pods are there; one alone that selects itself refuses nobody
    met = met.filter(pl.col(fr.OWNERS) + pl.col(fr.MATCHED) > pl.col(fr.BOTH).fill_null(0) + 1)
    rows = members.join(met, on=place, how="semi").join(placed, on=[fr.CLASS, fr.DOMAIN])
    return rows.select(fr.SEPARATION, fr.DOMAIN, fr.POD)


def _connect(rows: Iterable[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """(pods, separations) of each connected group.

    Within one separation and domain every owner refuses every selected pod, so all of its pods are connected.
    """
    pods_of: defaultdict[int, list[int]] = defaultdict(list)
    for separation, pod in rows:
        pods_of[separation].append(pod)
    edges = [(pods[0], pod) for pods in pods_of.values() for pod in pods[1:]]
    groups = connected({pod for pods in pods_of.values() for pod in pods}, edges)
    group_of = {pod: at for at, group in enumerate(groups) for pod in group}
    separations: list[list[int]] = [[] for _ in groups]
    for separation, pods in sorted(pods_of.items()):
        separations[group_of[pods[0]]].append(separation)
    return list(zip(groups, separations, strict=True))
