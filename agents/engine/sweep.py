"""Which pods share a topology domain although a separation keeps them apart: set-wise, over all pods at once.

In: a model and its separations. Out: groups of pods, as positions in `model.running`. Called by `violations.py` with
the terms' own topologies and by `physical.py` with the ESXi hosts. Frames in, few rows out: pods are listed only where
a separation is broken or undone. The rules in `agents/rules` ask the same of one class; tests hold both equal.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import polars as pl

from underhost.agents.engine import frames as fr
from underhost.agents.engine.domains import Domains
from underhost.agents.engine.findings import connected
from underhost.agents.engine.model import Model
from underhost.agents.engine.separations import Separation


class Meeting(NamedTuple):
    """Pods in one domain that one separation keeps apart, connected through it; positions in `model.running`."""

    domain: int
    separation: Separation
    pods: list[int]


class Group(NamedTuple):
    """Pods that refuse one another in one domain, connected through one or more separations.

    `pods` are positions in `model.running`, sorted by name.
    """

    domain: int
    pods: list[int]
    separations: list[Separation]


def broken(model: Model, domains: Domains, apart: Sequence[Separation]) -> list[Meeting]:
    """Where pods share a domain of the key that must keep them apart: every owner refuses every other selected pod."""
    found = []
    for (separation, domain), rows in _met(model, domains, None, apart):
        found.append(Meeting(domain, apart[separation], [pod for _, pod, _, _ in rows]))
    return found


def undone(model: Model, hosts: Domains, domains: Domains, apart: Sequence[Separation]) -> list[Meeting]:
    """Where pods share a host although they are in different domains of the key that keeps them apart."""
    found = []
    for (separation, host), rows in _met(model, hosts, domains, apart):
        for pods in _different(rows):
            found.append(Meeting(host, apart[separation], pods))
    return found


def merge(model: Model, meetings: Iterable[Meeting]) -> list[Group]:
    """Meetings that share a pod and a domain are one group; sorted by domain and smallest pod."""
    by_domain: defaultdict[int, list[Meeting]] = defaultdict(list)
    for meeting in meetings:
        by_domain[meeting.domain].append(meeting)
    keys = model.running.keys
    found = []
    for domain, here in by_domain.items():
        edges = [(meeting.pods[0], pod) for meeting in here for pod in meeting.pods[1:]]
        groups = connected({pod for meeting in here for pod in meeting.pods}, edges)
        group_of = {pod: at for at, group in enumerate(groups) for pod in group}
        separations: list[set[Separation]] = [set() for _ in groups]
        for meeting in here:
            separations[group_of[meeting.pods[0]]].add(meeting.separation)
        for pods, held in zip(groups, separations, strict=True):
            found.append(Group(domain, sorted(pods, key=keys.__getitem__), sorted(held)))
    return sorted(found, key=lambda group: (group.domain, keys[group.pods[0]]))


_Row = tuple[int, int, bool, bool]  # value, pod, owner, match


def _met(
    model: Model, domains: Domains, values: Domains | None, apart: Sequence[Separation]
) -> Iterable[tuple[tuple[int, int], list[_Row]]]:
    """The pods of every (separation, domain) that holds an owner and another pod it selects.

    With `values`, those that hold pods of at least two values. Every join is eager: left to itself polars 2.1 reorders
    lazy inner joins and builds their product.
    """
    if not apart or not len(model.running.keys):
        return
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
    rows = cells.join(placed, on=where).select(list(fr.MET)).sort(fr.SEPARATION, fr.DOMAIN, fr.POD)
    for key, group in groupby(rows.iter_rows(), key=lambda row: (row[0], row[1])):
        yield key, [row[2:] for row in group]


def _placed(model: Model, domains: Domains, values: Domains | None) -> pl.DataFrame:
    codes = domains.codes[model.running.nodes]
    own = codes if values is None else values.codes[model.running.nodes]
    frame = pl.DataFrame(
        {
            fr.POD: np.arange(len(codes), dtype=np.uint32),
            fr.CLASS: model.running.classes.astype(np.uint32),
            fr.DOMAIN: codes.astype(np.int32),
            fr.VALUE: own.astype(np.int32),
        },
        schema=fr.PLACED,
    )
    return frame.filter((pl.col(fr.DOMAIN) >= 0) & (pl.col(fr.VALUE) >= 0))


def _sides(apart: Sequence[Separation]) -> pl.DataFrame:
    rows: list[tuple[int, int, bool, bool]] = []
    for at, one in enumerate(apart):
        owners, matched = set(one.owners), set(one.matched)
        rows += [(at, cls, cls in owners, cls in matched) for cls in sorted(owners | matched)]
    return pl.DataFrame(rows, schema=fr.SIDES, orient="row")


def _different(rows: Sequence[_Row]) -> list[list[int]]:
    """Connected groups of pods: an owner and a match are connected where their values differ."""
    owners: defaultdict[int, list[int]] = defaultdict(list)
    matched: defaultdict[int, list[int]] = defaultdict(list)
    for value, pod, owner, match in rows:
        if owner:
            owners[value].append(pod)
        if match:
            matched[value].append(pod)
    edges = []
    for value, mine in owners.items():
        for other, theirs in matched.items():
            if value != other:
                edges += [(mine[0], pod) for pod in theirs]
                edges += [(theirs[0], pod) for pod in mine]
    return connected({pod for edge in edges for pod in edge}, edges)
