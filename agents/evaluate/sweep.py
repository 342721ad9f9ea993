"""Where a separation is broken or undone, over all pods of a site at once.

In: a model, the domains of a key, or the hosts beside them, and separations. Out: the groups of pods that refuse one
another, place by place. What refuses what is decided by `affinity/separation.py`; here pods are listed only where its
`some_refuse` holds. Where pods take part in few separations each, they are sorted by separation and domain. Where they
take part in many, polars counts the pods of each class and domain before it joins them with the separations.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from underhost.agents.affinity.separation import Row, Separation, groups, some_refuse
from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.model import Model
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.evaluate import tables
from underhost.schemas import frames as fr

_FEW_SIDES = 4
"""Separations that a pod takes part in, on average, up to which pods are sorted."""
_PodRow = tuple[int, int, int, int, bool, bool]  # separation, domain, and the fields of a `Row`


class Met(NamedTuple):
    """Pods in one domain that one separation keeps apart: groups of positions in `model.running`.

    `separation` is a position in what was swept.
    """

    separation: int
    domain: int
    groups: list[list[int]]


class _Placed(NamedTuple):
    """Running pods, as arrays beside each other: positions, classes, codes of their domain and of the key's own."""

    pods: IntArray
    classes: IntArray
    domains: IntArray
    values: IntArray


class _Sides(NamedTuple):
    """Classes on a side of a separation, by class, as arrays beside each other."""

    separations: IntArray
    classes: IntArray
    owners: IntArray
    matches: IntArray


def sweep(model: Model, domains: Domains, values: Domains | None, apart: Sequence[Separation]) -> Iterator[Met]:
    """Every domain in which pods refuse one another; with `values`, those of the separations' key, across these.

    Sorted by separation and domain.
    """
    if not apart:
        return
    across = values is not None
    listed = np.fromiter(chain.from_iterable(tables.sides(apart)), np.int64).reshape(-1, 4)
    sides = _Sides(*listed[np.argsort(listed[:, 1], kind="stable")].T)
    placed = _placed(model, domains, values or domains, sides.classes)
    of_class = np.bincount(sides.classes, minlength=len(model.classes))
    few = of_class[placed.classes].sum() <= _FEW_SIDES * len(placed.pods)
    rows = _sorted(placed, sides, of_class, across) if few else _joined(placed, sides, across)
    for (separation, domain), group in groupby(rows, key=itemgetter(0, 1)):
        yield Met(separation, domain, groups([Row._make(row[2:]) for row in group], across))


def _placed(model: Model, domains: Domains, values: Domains, classes: IntArray) -> _Placed:
    """The running pods of these classes on nodes that have the key (and a host)."""
    running = model.running
    concerned = np.zeros(len(model.classes), bool)
    concerned[classes] = True
    codes = domains.codes[running.nodes]
    own = values.codes[running.nodes]
    pods = np.flatnonzero((codes >= 0) & (own >= 0) & concerned[running.classes])
    return _Placed(pods, running.classes[pods], codes[pods], own[pods])


def _sorted(placed: _Placed, sides: _Sides, of_class: IntArray, across: bool) -> Iterable[_PodRow]:
    """The pods of places in which some refuse others, sorted by separation and domain, then by pod.

    `of_class`: how many sides each class is on.
    """
    count = of_class[placed.classes]
    which = np.repeat(np.arange(len(count)), count)  # a row for each pod and side of it
    if not len(which):
        return []
    nth = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    side = (np.cumsum(of_class) - of_class)[placed.classes][which] + nth
    place = sides.separations[side] * (int(placed.domains.max()) + 1) + placed.domains[which]
    order = np.argsort(place, kind="stable")
    which, side, place = which[order], side[order], place[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    pods = np.diff(first, append=len(place))
    owners, matched = np.add.reduceat(sides.owners[side], first), np.add.reduceat(sides.matches[side], first)
    values = placed.values[which]
    least, most = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    met = np.repeat(some_refuse(owners, matched, pods, least, most, across), pods)
    which, side = which[met], side[met]
    columns = sides.separations[side], placed.domains[which], placed.values[which], placed.pods[which]
    flags = sides.owners[side] > 0, sides.matches[side] > 0
    return zip(*(column.tolist() for column in (*columns, *flags)), strict=True)


def _joined(placed: _Placed, sides: _Sides, across: bool) -> Iterable[_PodRow]:
    """The pods of places in which some refuse others, sorted as above.

    Every join is eager: left to itself polars 2.1 reorders lazy inner joins and builds their product.
    """
    import polars as pl  # 0.2 s, which a check of most sites does not wait for

    pods = fr.PLACED.frame(
        {
            fr.POD: placed.pods.astype(np.uint32),
            fr.CLASS: placed.classes.astype(np.uint32),
            fr.DOMAIN: placed.domains.astype(np.int32),
            fr.VALUE: placed.values.astype(np.int32),
        }
    )
    of_class = fr.SIDES.frame(
        {
            fr.SEPARATION: sides.separations.astype(np.uint32),
            fr.CLASS: sides.classes.astype(np.uint32),
            fr.OWNER: sides.owners > 0,
            fr.MATCH: sides.matches > 0,
        }
    )
    where = [fr.CLASS, fr.DOMAIN, fr.VALUE]
    cells = pods.group_by(where).agg(pl.len().alias(fr.COUNT)).join(of_class, on=fr.CLASS)
    count = pl.col(fr.COUNT)
    met = cells.group_by(fr.SEPARATION, fr.DOMAIN).agg(
        count.filter(pl.col(fr.OWNER)).sum().alias(fr.OWNERS),
        count.filter(pl.col(fr.MATCH)).sum().alias(fr.MATCHED),
        count.sum().alias(fr.BOTH),
        pl.col(fr.VALUE).min().alias(fr.LEAST),
        pl.col(fr.VALUE).max().alias(fr.MOST),
    )
    owners, matched, both = pl.col(fr.OWNERS), pl.col(fr.MATCHED), pl.col(fr.BOTH)
    met = met.filter(some_refuse(owners, matched, both, pl.col(fr.LEAST), pl.col(fr.MOST), across))
    rows = cells.join(met, on=[fr.SEPARATION, fr.DOMAIN], how="semi").join(pods, on=where)
    rows = fr.MET.checked(rows.select(list(fr.MET.polars_schema))).sort(fr.SEPARATION, fr.DOMAIN, fr.POD)
    return rows.iter_rows()
