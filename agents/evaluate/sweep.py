"""Where a separation is broken or undone, over all pods of a site at once: polars expressions over (class, domain).

In: a model, the domains of a key, or the hosts beside them, and separations. Out: the groups of pods that refuse one
another, place by place. What refuses what is decided by `affinity/separation.py`; here pods are listed only where its
`some_refuse` holds.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from underhost.agents.affinity.separation import Row, Separation, groups, some_refuse
from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.model import Model
from underhost.agents.evaluate import tables
from underhost.schemas import frames as fr

if TYPE_CHECKING:
    import polars as pl


class Met(NamedTuple):
    """Pods in one domain that one separation keeps apart: groups of positions in `model.running`.

    `separation` is a position in what was swept.
    """

    separation: int
    domain: int
    groups: list[list[int]]


def sweep(model: Model, domains: Domains, values: Domains | None, apart: Sequence[Separation]) -> Iterator[Met]:
    """Every domain in which pods refuse one another; with `values`, those of the separations' key, across these.

    Sorted by separation and domain. Every join is eager: left to itself polars 2.1 reorders lazy inner joins and builds
    their product.
    """
    if not apart or not len(model.running.keys):
        return
    import polars as pl  # 0.2 s: a site without separations does not wait for it

    sides = fr.SIDES.rows(list(tables.sides(apart)))
    placed = _placed(model, domains, values, sides[fr.CLASS].to_numpy())
    where = [fr.CLASS, fr.DOMAIN, fr.VALUE]
    cells = placed.group_by(where).agg(pl.len().alias(fr.COUNT)).join(sides, on=fr.CLASS)
    count = pl.col(fr.COUNT)
    met = cells.group_by(fr.SEPARATION, fr.DOMAIN).agg(
        count.filter(pl.col(fr.OWNER)).sum().alias(fr.OWNERS),
        count.filter(pl.col(fr.MATCH)).sum().alias(fr.MATCHED),
        count.sum().alias(fr.BOTH),
        pl.col(fr.VALUE).min().alias(fr.LEAST),
        pl.col(fr.VALUE).max().alias(fr.MOST),
    )
    owners, matched, both = pl.col(fr.OWNERS), pl.col(fr.MATCHED), pl.col(fr.BOTH)
    met = met.filter(some_refuse(owners, matched, both, pl.col(fr.LEAST), pl.col(fr.MOST), values is not None))
    rows = cells.join(met, on=[fr.SEPARATION, fr.DOMAIN], how="semi").join(placed, on=where)
    rows = fr.MET.checked(rows.select(list(fr.MET.polars_schema))).sort(fr.SEPARATION, fr.DOMAIN, fr.POD)
    for (separation, domain), group in groupby(rows.iter_rows(), key=lambda row: (row[0], row[1])):
        yield Met(separation, domain, groups([Row._make(row[2:]) for row in group], values is not None))


def _placed(model: Model, domains: Domains, values: Domains | None, classes: npt.NDArray[np.uint32]) -> "pl.DataFrame":
    """The running pods of these classes on nodes that have the key (and a host)."""
    concerned = np.zeros(len(model.classes), bool)
    concerned[classes] = True
    codes = domains.codes[model.running.nodes]
    own = codes if values is None else values.codes[model.running.nodes]
    there = (codes >= 0) & (own >= 0) & concerned[model.running.classes]
    return fr.PLACED.frame(
        {
            fr.POD: np.flatnonzero(there).astype(np.uint32),
            fr.CLASS: model.running.classes[there].astype(np.uint32),
            fr.DOMAIN: codes[there].astype(np.int32),
            fr.VALUE: own[there].astype(np.int32),
        }
    )
