"""Who refuses whom in a finding, and which of them are rather given up.

In: findings, and the pods of one as numbers of a model. Out: groups of pods that break the same in one place, and the
order in which they go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from underhost.agents.repair.fewest import fewest
from underhost.agents.rules import node_ports, node_resources_fit, physical_host
from underhost.agents.rules.separation import INTER_POD_AFFINITY, Row, pairs
from underhost.agents.schedule.places import Places
from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Finding

Broken = tuple[str, str, str, str, str]  # severity, rule, source, key, value
_OF_NODE = {node_resources_fit.NAME, node_ports.NAME}  # one finding for each pod, but the node's pods are one matter


@dataclass
class BrokenGroup:
    """The pods of a finding, or of all findings about one node's room or ports."""

    finding: Finding
    broken: Broken
    ids: list[str] = field(default_factory=list)
    pods: list[str] = field(default_factory=list)


def groups_of(findings: Iterable[Finding], broken_of: Callable[[Finding], Broken]) -> list[BrokenGroup]:
    """The groups, in the order of their first findings; findings without a pod are nobody's to repair."""
    found: dict[object, BrokenGroup] = {}
    for at, finding in enumerate(findings):
        if finding.pod is not None:
            broken = broken_of(finding)
            group = found.setdefault(broken if finding.rule in _OF_NODE else at, BrokenGroup(finding, broken))
            group.ids.append(finding.id)
            group.pods += [finding.pod, *finding.peers]
    return list(found.values())


def rather(pods: Mapping[str, Pod]) -> list[str]:
    """The pods in the order in which they are given up: lowest priority, youngest, name."""
    names = sorted(sorted(pods), key=lambda name: pods[name].metadata.creation_timestamp or "", reverse=True)
    return sorted(names, key=lambda name: pods[name].spec.priority or 0)


def preferred(places: Places, finding: Finding, able: Sequence[str], members: Sequence[str]) -> list[str]:
    """Who goes, of the `able` ones (in the order of `rather`); more than one only where each of them has to."""
    if finding.rule == node_resources_fit.NAME:
        return _make_room(places, able)[:1]
    if finding.rule == node_ports.NAME:
        return fewest(able, _same_ports(places, members))
    if finding.rule == physical_host.NAME and finding.source is not None:
        return fewest(able, _apart(places, members, finding.source, None))
    if finding.rule == INTER_POD_AFFINITY and finding.domain is not None:
        return fewest(able, _apart(places, members, INTER_POD_AFFINITY, finding.domain.key))
    return list(able[:1])


def _apart(places: Places, pods: Sequence[str], rule: str, key: str | None) -> list[tuple[str, str]]:
    """Pairs that a rule keeps apart by `key`, whose domain they share; without one by any key, while sharing a host."""
    topology = places.model.topology
    where = [places.where(pod) for pod in pods]
    found: set[tuple[int, int]] = set()
    for each in places.separations({one.cls for one in where}):
        if each.rule == rule and (each.key == key if key is not None else not topology.is_host_key(each.key)):
            codes, owners, matched = topology.of(each.key).code_list, frozenset(each.owners), frozenset(each.matched)
            rows = [
                Row(codes[one.node], at, one.cls in owners, one.cls in matched)
                for at, one in enumerate(where)
                if one.cls in owners or one.cls in matched
            ]
            found.update(pairs(rows, key is None))
    return [(pods[one], pods[other]) for one, other in sorted(found)]


def _same_ports(places: Places, pods: Sequence[str]) -> list[tuple[str, str]]:
    ports = {pod: places.model.classes[places.where(pod).cls].ports for pod in pods}
    return [
        (one, other)
        for one, other in combinations(pods, 2)
        if any(node_ports.clash(a, b) for a in ports[one] for b in ports[other])
    ]


def _make_room(places: Places, able: Sequence[str]) -> list[str]:
    """First those that alone make enough room on their node, then those that make most."""
    model, state = places.model, places.state
    node = places.where(able[0]).node
    over = {
        name: int(state.used[row, node] - model.nodes.allocatable[row, node])
        for name, row in model.nodes.resources.items()
        if state.used[row, node] > model.nodes.allocatable[row, node]
    }

    def left(pod: str) -> float:
        held = model.requests[places.where(pod).request].held
        return sum(max(0.0, 1 - held.get(name, 0) / amount) for name, amount in over.items())

    return sorted(able, key=left)
