"""A site whose VMs the mover moves: decider and sink together, on a clock of their own, with a fake vCenter.

Plans are made at once, by the real planner.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from msgspec import structs
from support.build import HOST, Built, a_node, a_pod, a_site, term
from support.fakes.vcenter import FakeMover

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner.plan import planned
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import Campaigns
from underhost.agents.sinks.moves.decider import MoveDecider
from underhost.agents.sinks.moves.drs_turn import DrsTurn
from underhost.agents.sinks.moves.sink import MoveSink
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import Cluster, DrsRule
from underhost.schemas.vsphere import Host as EsxiHost
from underhost.streams.settings.sinks import MoveSettings

START = 1_767_225_600.0
NOW = MoveSettings(wait=0)

A = TypeVar("A")
P = TypeVar("P")


def replicas(app: str, *on: str, namespace: str = "shop") -> list[Built]:
    """Pods of an application, on these nodes, that must be on different hosts."""
    apart = term(HOST, {"app": app})
    return [a_pod(f"{app}-{at}", namespace).labels(app=app).apart(apart).on(node) for at, node in enumerate(on)]


class PlansNow(Generic[A, P]):
    """Implements `PlanMaker` by `make`, when one is taken. `asked` are the terms of all, `took` what each takes."""

    def __init__(self, make: Callable[[Snapshot, Options, A], P]) -> None:
        self._make = make
        self.asked: list[A] = []
        self.slow, self.took = False, 0.0
        self._next: tuple[Snapshot, A] | None = None

    @property
    def is_busy(self) -> bool:
        return self._next is not None

    def begin(self, snapshot: Snapshot, asked: A) -> None:
        self._next = snapshot, asked
        self.asked.append(asked)

    def take(self) -> P | None:
        if self._next is None or self.slow:
            return None
        (snapshot, asked), self._next = self._next, None
        return self._make(snapshot, Options(), asked)

    def forget(self) -> None:
        self._next = None


class MovingSite:
    """Nodes by their hosts, and pods. `now` is the time since the start; `vcenter` is what the sink writes to.

    The wall clock is `ahead` by so many seconds.
    """

    def __init__(self, on: Mapping[str, str], *objects: Built, hosts: int = 4, mib: int = 0, **cluster: Any) -> None:
        self.now = self.ahead = 0.0
        self.vcenter = FakeMover({f"vm-{node}": host for node, host in on.items()})
        self.rules: list[DrsRule] = []
        self.orders: list[Action] = []
        self.outcomes: list[Outcome] = []
        self.campaigns = Campaigns()
        self.plans = PlansNow(planned)
        self._on, self._objects, self._mib = dict(on), list(objects), mib
        self._cluster = Cluster("C0", **cluster)
        self._hosts = {
            f"h{at}": EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0", memory_mib=16384)
            for at in range(1, hosts + 1)
        }

    def host(self, ref: str, **changes: Any) -> None:
        """A host changes."""
        self._hosts[ref] = structs.replace(self._hosts[ref], **changes)

    def remove(self, *pods: str) -> None:
        """Pods go."""
        self._objects = [one for one in self._objects if getattr(one, "name", None) not in pods]

    def snapshot(self) -> Snapshot:
        """The site as the watchers show it."""
        at = {vm.removeprefix("vm-"): host for vm, host in self.vcenter.at.items()}
        nodes = [a_node(node) for node in at]
        site = a_site(*nodes, *self._objects, on=at, hosts=list(self._hosts.values()), clusters=[self._cluster])
        vms = {ref: structs.replace(vm, memory_mib=self._mib) for ref, vm in site.vms.items()}
        rules = {(rule.cluster, rule.name): rule for rule in self.rules}
        return replace(site, vms=vms, rules=rules, vsphere=True)

    def decider(
        self,
        settings: MoveSettings = NOW,
        *,
        enabled: bool = True,
        terms: RepairTerms | None = None,
        drs: DrsTurn | None = None,
        share: int = 60,
        earlier: Iterable[Action] = (),
        outcomes: Collection[Outcome] = (),
    ) -> MoveDecider:
        """The decider of a run that begins now."""
        return MoveDecider(
            settings,
            terms or RepairTerms(evictions=None),
            Evaluator(Options()),
            self.plans,
            enabled=enabled,
            campaigns=self.campaigns,
            drs=drs,
            share=share,
            earlier=earlier,
            outcomes=list(outcomes),
            now=self.now,
            clock=lambda: START + self.now + self.ahead,
        )

    def decide(self, decider: MoveDecider, after: float = 0.0) -> list[Action]:
        """What is ordered after so many seconds."""
        self.now += after
        actions = decider.decide(self.snapshot(), self.now)
        self.orders += actions
        return actions

    async def carry_out(self, decider: MoveDecider, actions: Iterable[Action], *, enabled: bool = True) -> list[str]:
        """What becomes of them."""
        sink = MoveSink(self.vcenter, "s", enabled=enabled, vms=lambda: set(self.vcenter.at), look=0)
        results = []
        for action in actions:
            outcome = await sink.apply(action)
            self.outcomes.append(outcome)
            decider.observe(outcome, self.now)
            results.append(outcome.result)
        return results

    async def run(self, decider: MoveDecider, seconds: float = 60.0, *, enabled: bool = True) -> list[str]:
        """All results of so many seconds, with a look at each."""
        results, end = list[str](), self.now + seconds
        while self.now < end:
            results += await self.carry_out(decider, self.decide(decider), enabled=enabled)
            self.now += 1.0
        return results
