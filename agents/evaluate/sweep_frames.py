"""The sweep over many pods, as polars expressions over (class, domain) counts.

In: a model, topologies and separations. Out: the pods of every (separation, domain) that is broken or undone. A test
holds both equal.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import polars as pl

from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.model import Model
from underhost.agents.evaluate.sweep import Met
from underhost.agents.rules.separations import Separation
from underhost.schemas import frames as fr


def sweep(model: Model, domains: Domains, values: Domains | None, apart: Sequence[Separation]) -> Met:
    """The pods of every (separation, domain) that holds an owner and another pod it selects.

    With `values`, those that hold pods of at least two values. Every join is eager: left to itself polars 2.1 reorders
    lazy inner joins and builds their product.
    """
    placed, sides = _placed(model, domains, values), _sides(apart)
    where = [fr.CLASS, fr.DOMAIN, fr.VALUE]
    cells = placed.group_by(where).agg(pl.len().alias(fr.COUNT)).join(sides, on=fr.CLASS)
    owner, match, count = pl.col(fr.OWNER), pl.col(fr.MATCH), pl.col(fr.COUNT)
    met = cells.group_by(fr.SEPARATION, fr.DOMAIN).agg(
        count.filter(owner).sum().alias(fr.OWNERS),
        count.filter(match).sum().alias(fr.MATCHED),
        count.sum().alias(fr.BOTH),
        pl.col(fr.VALUE).min().alias(fr.LEAST),
        pl.col(fr.VALUE).max().alias(fr.MOST),
    )
    # one pod alone, though it be owner and match at once, refuses nobody
    wanted = (pl.col(fr.OWNERS) > 0) & (pl.col(fr.MATCHED) > 0) & (pl.col(fr.BOTH) > 1)
    if values is not None:
        wanted &= pl.col(fr.LEAST) < pl.col(fr.MOST)
    cells = cells.join(met.filter(wanted), on=[fr.SEPARATION, fr.DOMAIN], how="semi")
    rows = cells.join(placed, on=where).select(list(fr.MET.polars_schema))
    rows = fr.MET.checked(rows).sort(fr.SEPARATION, fr.DOMAIN, fr.POD)
    for key, group in groupby(rows.iter_rows(), key=lambda row: (row[0], row[1])):
        yield key, [row[2:] for row in group]


def _placed(model: Model, domains: Domains, values: Domains | None) -> pl.DataFrame:
    codes = domains.codes[model.running.nodes]
    own = codes if values is None else values.codes[model.running.nodes]
    frame = fr.PLACED.frame(
        {
            fr.POD: np.arange(len(codes), dtype=np.uint32),
            fr.CLASS: model.running.classes.astype(np.uint32),
            fr.DOMAIN: codes.astype(np.int32),
            fr.VALUE: own.astype(np.int32),
        }
    )
    return frame.filter((pl.col(fr.DOMAIN) >= 0) & (pl.col(fr.VALUE) >= 0))


def _sides(apart: Sequence[Separation]) -> pl.DataFrame:
    rows: list[tuple[object, ...]] = []
    for at, one in enumerate(apart):
        if one.owners == one.matched:
            rows += [(at, cls, True, True) for cls in one.owners]
            continue
        owners, matched = set(one.owners), set(one.matched)
        rows += [(at, cls, cls in owners, cls in matched) for cls in sorted(owners | matched)]
    return fr.SIDES.rows(rows)
