"""Random sites with disruption budgets, and what the loss of each host takes of them, by brute force.

The site knows by itself what each budget covers and asks for: only `said_of` asks the product. `overdrawn` loses every
host (and every node whose host is unknown), one after another, and tries every placement of VMs on hosts and of pods on
nodes for one that keeps the budget.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.build import HOST, ZONE, Built, a_budget, a_node, a_pod, a_site, a_workload, app, term

from underhost.agents.evaluate.check import check
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.severities import CO_LOCATED
from underhost.schemas.vsphere import Host

Told = tuple[str, str, str]
"""A budget, `host` or `node`, and its name."""
POOL, DEDICATED = "pool", "dedicated"


@dataclass
class Team:
    """The pods of one application: where they may be, and where they are.

    Attributes:
        replicas: as its owner says; 0 where it has none. living: how many pods have not finished.
        healthy: the node of each pod that is ready and stays. nodes: where each of these may be.
        is_apart: a rule keeps them apart. is_gathered: a rule holds them together.
    """

    replicas: int
    living: int = 0
    healthy: list[str] = field(default_factory=list)
    nodes: list[frozenset[str]] = field(default_factory=list)
    is_apart: bool = False
    is_gathered: bool = False


def said_of(site: "BudgetedSite") -> set[Told]:
    """What a check says of it, in the form of `BudgetedSite.overdrawn`."""
    found = check(site.snapshot, Options()).findings
    ours = [one for one in found if one.severity == CO_LOCATED and one.rule == "PodDisruptionBudget"]
    return {(one.object or "", one.domain.key, one.domain.value) for one in ours if one.domain is not None}


class BudgetedSite:
    """One random site, the same for the same seed: `snapshot`, and the budgets that are in it."""

    def __init__(self, seed: int) -> None:
        self._pick = pick = random.Random(seed)
        self._objects: list[Built] = []
        self._hosts = [
            Host(
                id=f"h{at}",
                name=f"esx-h{at}",
                cluster=pick.choice(["C0", "C0", "C0", "C1"]),
                state=pick.choice(["connected"] * 9 + ["maintenance"]),
            )
            for at in range(pick.randrange(1, 5))
        ]
        self.nodes = [f"n{at}" for at in range(pick.choice([1, 2, 3, 4, 5, 5, 6]))]
        self.host = {node: "" if pick.random() < 0.15 else pick.choice(self._hosts).id for node in self.nodes}
        self._pool = {node: pick.choice("aab") for node in self.nodes}
        self._zone = {node: pick.choice("xxy") for node in self.nodes}
        self._taint = {node: pick.choice([""] * 5 + [DEDICATED, "node.kubernetes.io/not-ready"]) for node in self.nodes}
        for name in self.nodes:
            node = a_node(name).labels({POOL: self._pool[name], ZONE: self._zone[name]})
            node = node.cordoned() if pick.random() < 0.1 else node
            self._objects.append(node.tainted(f"{self._taint[name]}=yes:NoSchedule") if self._taint[name] else node)
        self._budgets: list[tuple[str, list[Team], int | str, bool]] = []
        for at in range(pick.randrange(1, 5)):
            self._budget(f"b{at}")
        pick.shuffle(self._objects)
        hosted = {node: host for node, host in self.host.items() if host or pick.random() < 0.5}
        self.snapshot: Snapshot = a_site(*self._objects, on=hosted, hosts=self._hosts)

    def overdrawn(self) -> set[Told]:
        """Whose loss takes more pods than the budget allows, though another placement keeps it."""
        found = set[Told]()
        names = {host.id: host.name for host in self._hosts}
        for name, teams, bound, is_least in self._budgets:
            size, desired = _asked(teams, bound, is_least)
            if size <= desired:
                continue  # whatever is lost, too few are left
            for place in {self._place(node) for node in self.nodes}:
                lost = sum(self._counted(team, place) for team in teams)
                if size - lost < desired and self._can_be_kept(teams, size, size - desired):
                    kind, at = place
                    found.add((f"PodDisruptionBudget/shop/{name}", kind, names.get(at, at) if kind == "host" else at))
        return found

    def _place(self, node: str) -> tuple[str, str]:
        return ("host", self.host[node]) if self.host[node] else ("node", node)

    def _counted(self, team: Team, place: tuple[str, str]) -> int:
        """How many the place holds; as one where another finding names them together."""
        here = sum(self._place(node) == place for node in team.healthy)
        is_told = team.is_apart or (not team.is_gathered and team.replicas and here == len(team.healthy))
        return min(here, 1) if is_told else here

    # ---------------------------------------------------------------------------------------------- other placements
    def _can_be_kept(self, teams: list[Team], size: int, spare: int) -> bool:
        reaches = [nodes for team in teams for nodes in team.nodes]
        anywhere = frozenset().union(*reaches)
        every = sorted([*reaches, *[anywhere] * (size - len(reaches))], key=len)
        return any(_fits(every, places, spare) for places in self._arrangements(anywhere))

    def _arrangements(self, nodes: frozenset[str]) -> Iterator[list[frozenset[str]]]:
        """Every way in which the VMs can lie on usable hosts of their clusters: the nodes of each place."""
        cluster = {host.id: host.cluster for host in self._hosts}
        usable = [host for host in self._hosts if host.state == "connected"]
        alone = [frozenset((node,)) for node in nodes if not self.host[node]]
        moving = sorted(node for node in nodes if self.host[node])
        choices = [[host.id for host in usable if host.cluster == cluster[self.host[node]]] for node in moving]
        seen = set[frozenset[frozenset[str]]]()
        placed = [(node, hosts) for node, hosts in zip(moving, choices, strict=True) if hosts]
        for chosen in itertools.product(*(hosts for _, hosts in placed)):
            on: dict[str, set[str]] = {}
            for (node, _), host in zip(placed, chosen, strict=True):
                on.setdefault(host, set()).add(node)
            places = frozenset(frozenset(held) for held in on.values())
            if places not in seen:
                seen.add(places)
                yield [*alone, *places]

    # ---------------------------------------------------------------------------------------------------- its budgets
    def _budget(self, name: str) -> None:
        pick = self._pick
        teams = [self._team(name, at) for at in range(pick.choice([1, 1, 1, 2]))]
        bound: int | str = pick.choice([0, 1, 1, 1, 1, 2, 2, 3, "20%", "34%", "50%"])
        is_least = pick.random() < 0.4
        if any(not team.replicas for team in teams):  # percentages and maxUnavailable need owners
            bound, is_least = pick.randrange(1, 5), True
        bounds = {"min_available": bound} if is_least else {"max_unavailable": bound}
        self._objects.append(a_budget(name, {"budget": name}, **bounds))  # type: ignore[arg-type]
        self._budgets.append((name, teams, bound, is_least))

    def _team(self, budget: str, at: int) -> Team:
        pick, name = self._pick, f"{budget}-{at}"
        team = Team(replicas=pick.choice([0, 1, 2, 3, 3, 3, 4, 4, 5]))
        pool, tolerates = pick.choice(["", "", "", "a"]), pick.random() < 0.5
        key = pick.choice([""] * 6 + ["apart", ZONE, ZONE, HOST])
        team.is_apart, team.is_gathered = key == "apart", key in (ZONE, HOST)
        if team.replicas:
            self._objects.append(a_workload("StatefulSet", name, team.replicas))
        crowded = pick.sample(self.nodes, pick.randrange(1, len(self.nodes) + 1))
        where = pick.choice(crowded)
        for number in range((team.replicas or pick.randrange(0, 5)) + pick.choice([0, 0, 0, 1])):
            pod = a_pod(f"{name}-{number}").labels(app=name, budget=budget)
            pod = pod.owned_by(f"StatefulSet/{name}") if team.replicas else pod
            pod = pod.spec(nodeSelector={POOL: pool}) if pool else pod
            pod = pod.tolerates({"key": DEDICATED, "operator": "Exists"}) if tolerates else pod
            pod = pod.apart(term(HOST, app(name))) if team.is_apart else pod
            pod = pod.near(term(key, app(name))) if team.is_gathered else pod
            node = where if team.is_gathered else pick.choice(crowded)
            state = pick.choice(["healthy"] * 16 + ["waits", "is not ready", "goes", "has finished"])
            pod = {
                "healthy": pod.on(node),
                "waits": pod,
                "is not ready": pod.on(node).ready(False),
                "goes": pod.on(node).deleted(),
                "has finished": pod.on(node).finished().ready(False),
            }[state]
            self._objects.append(pod)
            team.living += state != "has finished"
            if state == "healthy":
                team.healthy.append(node)
                reach = {one for one in self.nodes if not pool or self._pool[one] == pool}
                reach -= {one for one in self.nodes if self._taint[one] == DEDICATED and not tolerates}
                reach = {one for one in reach if key != ZONE or self._zone[one] == self._zone[node]}
                team.nodes.append(frozenset({node} & reach if key == HOST else reach))
        return team


def _asked(teams: list[Team], bound: int | str, is_least: bool) -> tuple[int, int]:
    """How many pods there are once all are healthy, and how many of them must stay."""
    replicas, healthy = sum(team.replicas for team in teams), sum(len(team.healthy) for team in teams)
    if is_least and isinstance(bound, int):
        return max(replicas, healthy, sum(team.living for team in teams)), bound
    wanted = bound if isinstance(bound, int) else -(-int(bound.removesuffix("%")) * replicas // 100)
    return max(replicas, healthy), wanted if is_least else max(0, replicas - wanted)


def _fits(pods: list[frozenset[str]], places: list[frozenset[str]], spare: int) -> bool:
    """Whether each pod finds a place with one of its nodes, no place with more pods than may be away."""
    loads = {tuple([0] * len(places))}
    for nodes in pods:
        loads = {
            (*load[:at], load[at] + 1, *load[at + 1 :])
            for load in loads
            for at, place in enumerate(places)
            if load[at] < spare and not nodes.isdisjoint(place)
        }
    return bool(loads)
