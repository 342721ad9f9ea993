"""A site whose hosts have their turn: both deciders of the mover with their sinks, on a clock of their own.

Plans are made at once, by the real planner.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs
from support.build import Built
from support.fakes.vcenter import FakeMaintainer
from support.sites.moving import START, MovingSite, PlansNow

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.maintenance.decider import MaintenanceDecider
from underhost.agents.sinks.maintenance.run import MaintenanceRun, MaintenanceTerms
from underhost.agents.sinks.maintenance.sink import MaintenanceSink
from underhost.agents.sinks.moves.decider import MoveDecider
from underhost.agents.sinks.moves.sink import MoveSink
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.maintenance import Chosen, planned_maintenance
from underhost.schemas.commands import MAINTENANCE
from underhost.schemas.records import Action, Outcome
from underhost.schemas.vsphere import Vm
from underhost.streams.settings.sinks import MaintenanceSettings, MoveSettings

MOVES = MoveSettings(automatic=False, per_minute=60)
ALL = Chosen(all=True)


class MaintainedSite(MovingSite):
    """Hosts h1, h2, ... called esx-1, esx-2, ...; `foreign` are VMs by their host that run no node."""

    vcenter: FakeMaintainer

    def __init__(self, on: Mapping[str, str], *objects: Built, hosts: int = 4, mib: int = 0, **cluster: Any) -> None:
        super().__init__(on, *objects, hosts=hosts, mib=mib, **cluster)
        self.vcenter = FakeMaintainer(self.vcenter.at)
        self.foreign: dict[str, str] = {}
        self.rolling = PlansNow(planned_maintenance)

    def snapshot(self) -> Snapshot:
        site = super().snapshot()
        hosts = {
            ref: structs.replace(host, state="maintenance") if ref in self.vcenter.in_maintenance else host
            for ref, host in site.hosts.items()
        }
        others = {f"vm-{name}": Vm(id=f"vm-{name}", name=name, host=host) for name, host in self.foreign.items()}
        return replace(site, hosts=hosts, vms={**site.vms, **others})

    def worker(
        self,
        settings: MaintenanceSettings | None = None,
        *,
        moves: MoveSettings = MOVES,
        enabled: bool = True,
        moves_enabled: bool = True,
        earlier: Iterable[Action] = (),
        outcomes: Collection[Outcome] = (),
    ) -> "MaintainedSite.Worker":
        """The deciders and sinks of a run that begins now; `enabled` false: hosts stay as they are."""
        before = list(earlier), list(outcomes)
        return self.Worker(self, settings or MaintenanceSettings(), moves, (enabled, moves_enabled), before)

    def ask(self, chosen: Chosen = ALL, *, out: bool = False) -> MaintenanceRun:
        """A person asks for maintenance."""
        return self.campaigns.add(MaintenanceRun("s", MaintenanceTerms(chosen, out)))

    class Worker:
        """What carries commands out."""

        def __init__(
            self,
            site: "MaintainedSite",
            settings: MaintenanceSettings,
            moves: MoveSettings,
            enabled: tuple[bool, bool],
            before: tuple[list[Action], list[Outcome]],
        ) -> None:
            self._site, (modes, vmotions) = site, enabled
            evaluator = Evaluator(Options())
            self.mover = MoveDecider(
                moves,
                RepairTerms(evictions=None),
                evaluator,
                site.plans,
                enabled=vmotions,
                campaigns=site.campaigns,
                earlier=before[0],
                outcomes=before[1],
                now=site.now,
                clock=lambda: START + site.now,
            )
            self.decider = MaintenanceDecider(
                settings,
                Room(),
                evaluator,
                site.rolling,
                self.mover.moving,
                site.campaigns,
                enabled=modes,
                before=before,
                clock=lambda: START + site.now,
            )
            self._moves = MoveSink(site.vcenter, "s", enabled=vmotions, vms=lambda: set(site.vcenter.at), look=0)
            self._modes = MaintenanceSink(
                site.vcenter, enabled=modes, within=60, vms=lambda: set(site.vcenter.at), look=0
            )

        def decide(self) -> list[Action]:
            """What is ordered now."""
            snapshot = self._site.snapshot()
            actions = [
                *self.mover.decide(snapshot, self._site.now),
                *self.decider.decide(snapshot, self._site.now),
            ]
            self._site.orders += actions
            return actions

        async def carry_out(self, actions: Iterable[Action]) -> None:
            """What becomes of them."""
            for action in actions:
                outcome = await (self._modes if action.kind == MAINTENANCE else self._moves).apply(action)
                self._site.outcomes.append(outcome)
                for decider in (self.mover, self.decider):
                    if outcome.kind in decider.hears:
                        decider.observe(outcome, self._site.now)

        async def run(self, seconds: float = 60.0) -> None:
            """So many seconds, with a look at each."""
            end = self._site.now + seconds
            while self._site.now < end:
                await self.carry_out(self.decide())
                self._site.now += 1.0
