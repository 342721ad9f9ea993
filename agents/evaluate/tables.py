"""The evaluator's tables: a site, and what was found in it, as the polars frames of `schemas/frames.py`.

In: a snapshot, its compiled model, findings. Out: one frame a table, made when it is asked for. Columns of numbers are
views of the model's own arrays: a frame of a model that follows its site is good until the model changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from underhost.agents.affinity.separation import Separation
from underhost.agents.compiled.model import Model
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import frames as fr
from underhost.schemas.documents import BudgetFigures
from underhost.schemas.records import Finding

if TYPE_CHECKING:
    import polars as pl

_NOT_JOINED = ("", "")


class FindingSet:
    """The findings of a report, to be compared by their ids with those of another."""

    def __init__(self, found: Sequence[Finding]) -> None:
        self.findings = found
        self._ids = frozenset(map(attrgetter("id"), found))

    def __sub__(self, other: "FindingSet") -> list[Finding]:
        """Those that the other lacks, in their order."""
        lacking = self._ids - other._ids
        return [one for one in self.findings if one.id in lacking] if lacking else []


def pods(model: Model) -> "pl.DataFrame":
    """The pods on nodes of the site, in the order of `model.running`."""
    running = model.running
    return fr.PODS.frame(
        {fr.NAME: running.keys, fr.CLASS: running.classes, fr.REQUEST: running.requests, fr.NODE: running.nodes}
    )


def nodes(snapshot: Snapshot, model: Model) -> "pl.DataFrame":
    """The nodes, in the order of `model.nodes`."""
    compiled, joined = model.nodes, snapshot.node_hosts
    cpu, memory, storage = compiled.allocatable[:3]
    below = [(at.vm, at.host) if (at := joined.get(name)) else _NOT_JOINED for name in compiled.names]
    return fr.NODES.frame(
        {
            fr.NAME: compiled.names,
            fr.UNSCHEDULABLE: compiled.unschedulable,
            fr.CPU: cpu,
            fr.MEMORY: memory,
            fr.STORAGE: storage,
            fr.MAX_PODS: compiled.pods_allowed,
            fr.VM: [vm or None for vm, _ in below],
            fr.HOST: [host or None for _, host in below],
        }
    )


def hosts(snapshot: Snapshot) -> "pl.DataFrame":
    """The ESXi hosts of the inventory."""
    return fr.HOSTS.rows(
        [
            (ref, host.name, host.cluster, host.state, host.cpu_mhz, host.memory_mib)
            for ref, host in snapshot.hosts.items()
        ]
    )


def vms(snapshot: Snapshot) -> "pl.DataFrame":
    """The virtual machines of the inventory."""
    return fr.VMS.rows([(ref, vm.name, vm.host, vm.power, vm.cpus, vm.memory_mib) for ref, vm in snapshot.vms.items()])


def separations(apart: Sequence[Separation]) -> "pl.DataFrame":
    """The classes of each separation, numbered in the order given."""
    return fr.SEPARATIONS.rows([(at, apart[at].rule, apart[at].key, *side) for at, *side in sides(apart)])


def sides(apart: Sequence[Separation]) -> Iterator[tuple[int, int, bool, bool]]:
    """(number of the separation, class, its pods carry the term, the term selects them)."""
    for at, one in enumerate(apart):
        if one.owners == one.matched:  # as of most: replicas keep off one another
            yield from ((at, cls, True, True) for cls in one.owners)
            continue
        owners, matched = set(one.owners), set(one.matched)
        yield from ((at, cls, cls in owners, cls in matched) for cls in sorted(owners | matched))


def budgets(figures: Mapping[str, BudgetFigures]) -> "pl.DataFrame":
    """The disruption budgets of a report, by name."""
    return fr.BUDGETS.rows(
        [(name, one.expected, one.current, one.desired, one.allowed) for name, one in sorted(figures.items())]
    )


def findings(found: Sequence[Finding]) -> "pl.DataFrame":
    """A row for each finding, in their order."""
    domains = [one.domain for one in found]
    columns = {name: [getattr(one, name) for one in found] for name in Finding.__struct_fields__ if name != fr.DOMAIN}
    return fr.FINDINGS.frame(
        {
            **columns,
            fr.DOMAIN_KEY: [domain.key if domain else None for domain in domains],
            fr.DOMAIN_VALUE: [domain.value if domain else None for domain in domains],
        }
    )
