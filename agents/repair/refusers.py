"""Whose rule is broken in a finding, and which of these pods are rather given up.

In: findings, and the pods of one as numbers of a model. Out: groups of pods that break the same in one place, those of
them whose own rule it is, and the order in which they go.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

from underhost.agents.affinity.reach import TermReach
from underhost.agents.affinity.separation import INTER_POD_AFFINITY, Row, breaks_own
from underhost.agents.repair.fewest import fewest
from underhost.agents.repair.late import Arrivals
from underhost.agents.rules import node_ports, node_resources_fit, physical_host
from underhost.agents.schedule.places import Places
from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Finding

NOT_ITS_RULE = "it breaks no rule of its own"
REACHES = "the rule reaches pods of another namespace, which crossNamespace: act would let it do"
CAME_FIRST = "it was on the node before there was too little room or its port was taken"
MOST = 512
"""Pods of one group that are compared with one another; the others' turn comes when these have gone."""
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


class Faults:
    """Whose own rule is broken in one group of pods.

    Attributes:
        innocent: why others are not to go for it, by pod.
    """

    def __init__(self, places: Places, finding: Finding, members: Sequence[str], pods: Mapping[str, Pod]) -> None:
        """`pods` are those of the snapshot; `members` are the finding's, all of them running."""
        self._places, self._rule = places, finding.rule
        self._pairs: list[tuple[str, str]] = []  # the second must go, or the first: its own rule is broken
        self.innocent: dict[str, str] = {}
        if finding.rule == node_resources_fit.NAME:
            late = Arrivals(places, pods).without_room(members)
            self._blame(members, late, CAME_FIRST)
        elif finding.rule == node_ports.NAME:
            arrivals = Arrivals(places, pods)
            self._pairs = [pair for pair in _same_ports(places, members) if arrivals.is_late(*pair)]
            self._blame(members, {one for one, _ in self._pairs}, CAME_FIRST)
        elif finding.rule == physical_host.NAME and finding.source is not None:
            self._part(members, finding.source, None)
        elif finding.rule == INTER_POD_AFFINITY and finding.domain is not None:
            self._part(members, INTER_POD_AFFINITY, finding.domain.key)
        elif finding.rule == INTER_POD_AFFINITY:
            self._blame(members, {pod for pod in members if self._stays_within(pod)}, REACHES)

    def preferred(self, able: Sequence[str]) -> list[str]:
        """Who goes, of the `able` ones (in the order of `rather`); more than one only where each of them has to."""
        if self._rule == node_resources_fit.NAME:
            return _make_room(self._places, able)[:1]
        return fewest(able, self._pairs) if self._pairs else list(able[:1])

    def _blame(self, members: Iterable[str], guilty: Collection[str], why: str) -> None:
        self.innocent.update((pod, why) for pod in members if pod not in guilty)

    def _part(self, members: Sequence[str], rule: str, key: str | None) -> None:
        """Pods that a rule keeps apart by `key`, whose domain they share; without one by any, while sharing a host."""
        broken = _broken_terms(self._places, members, rule, key)
        model = self._places.model
        reach, where = TermReach(model.classes, model.options), self._places.where
        self._pairs = [pair for pair in broken if reach.holds(where(pair[0]).cls, where(pair[1]).cls)]
        self._blame(members, {one for one, _ in broken}, NOT_ITS_RULE)
        own = {one for one, _ in self._pairs}
        self._blame([one for one, _ in broken], own, REACHES)

    def _stays_within(self, pod: str) -> bool:
        """Whether what the pod wants near is of its own namespace, or it may reach for more."""
        model = self._places.model
        cls = model.classes[self._places.where(pod).cls]
        return TermReach(model.classes, model.options).keeps_within(
            cls, [one.selector for one in cls.required_affinity]
        )


def _broken_terms(places: Places, pods: Sequence[str], rule: str, key: str | None) -> list[tuple[str, str]]:
    """Pairs: the first carries a term of the rule that the second breaks."""
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
            own, others = [row for row in rows if row.owner][:MOST], [row for row in rows if row.match][:MOST]
            met = ((a, b) for a, b in product(own, others) if a.pod != b.pod)
            found.update((a.pod, b.pod) for a, b in met if breaks_own(a, b, key is None))
    return [(pods[one], pods[other]) for one, other in sorted(found)]


def _same_ports(places: Places, pods: Sequence[str]) -> list[tuple[str, str]]:
    """Every two that clash, either way round."""
    ports = {pod: places.model.classes[places.where(pod).cls].ports for pod in pods[:MOST]}
    return [
        (one, other)
        for one, other in permutations(ports, 2)
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
