"""Which pods share a topology domain although a separation keeps them apart: set-wise, over all pods at once.

In: a model and its separations. Out: groups of pods, as positions in `model.running`. Large sites are swept with polars
(`sweep_frames.py`), and pods are listed only where a separation is broken or undone. The rules in `agents/rules` ask
the same of one class of pods; tests hold all of these equal.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.model import Model
from underhost.agents.evaluate.findings import connected
from underhost.agents.rules.separations import Separation


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
        for pods in different(rows):
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


Row = tuple[int, int, bool, bool]  # value, pod, owner, match
Met = Iterable[tuple[tuple[int, int], list[Row]]]  # by (separation, domain)
FEW = 4_000  # pods up to which a walk is quicker than the import of polars


def _met(model: Model, domains: Domains, values: Domains | None, apart: Sequence[Separation]) -> Met:
    """The pods of every (separation, domain) that holds an owner and another pod it selects.

    With `values`, those that hold pods of at least two values.
    """
    if not apart or not len(model.running.keys):
        return []
    if len(model.running.keys) <= FEW:
        return walk(model, domains, values, apart)
    from underhost.agents.evaluate.sweep_frames import sweep

    return sweep(model, domains, values, apart)


def walk(model: Model, domains: Domains, values: Domains | None, apart: Sequence[Separation]) -> Met:
    """The same as `sweep_frames.sweep`, pod by pod."""
    codes, own = domains.code_list, (values or domains).code_list
    nodes = model.running.nodes.tolist()
    found = []
    for at, one in enumerate(apart):
        owners, matched = set(one.owners), set(one.matched)
        rows: defaultdict[int, list[Row]] = defaultdict(list)
        for cls in sorted(owners | matched):
            for pod in model.pods_of(cls).tolist():
                domain, value = codes[nodes[pod]], own[nodes[pod]]
                if domain >= 0 and value >= 0:
                    rows[domain].append((value, pod, cls in owners, cls in matched))
        for domain, here in sorted(rows.items()):
            if meets(here, values is not None):
                found.append(((at, domain), sorted(here, key=lambda row: row[1])))
    return found


def meets(rows: Sequence[Row], differ: bool) -> bool:
    """Whether an owner and another pod that it selects are among the rows; with `differ`, of two values or more."""
    return (
        len(rows) > 1
        and any(row[2] for row in rows)
        and any(row[3] for row in rows)
        and (not differ or len({row[0] for row in rows}) > 1)
    )


def different(rows: Sequence[Row]) -> list[list[int]]:
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
