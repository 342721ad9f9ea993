"""What people ask a run for that moves VMs: begun only where VMs are moved here, and the picture is whole.

In: terms, from whoever asks over HTTP. Out: a `Campaign`, which the mover's decider carries out; a `MaintenanceRun`,
which that of maintenance does.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from underhost.agents.pipeline.leases.roles import RoleLeases
from underhost.agents.sinks.maintenance.run import MaintenanceRun, MaintenanceTerms
from underhost.agents.sinks.moves.campaign import Campaign, Campaigns
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.commands import MOVE
from underhost.schemas.errors import Unreachable

if TYPE_CHECKING:
    from underhost.agents.planner.terms import RepairTerms


class PipelineRepairs:
    """Of one run, which acts on `site`. `kinds` of commands have a sink here; `unsure` tells why nothing may be said of
    a site, `nudge` has its deciders asked."""

    def __init__(
        self,
        site: str,
        kinds: Collection[str],
        campaigns: Campaigns,
        leases: RoleLeases,
        unsure: Callable[[str], str | None],
        nudge: Callable[[str], None],
    ) -> None:
        self._site, self._kinds, self._campaigns = site, kinds, campaigns
        self._leases, self._unsure, self._nudge = leases, unsure, nudge

    def begin_repair(self, site: str, terms: "RepairTerms") -> Campaign:
        """Begin to carry out a repair. Raises Unreachable where another worker moves the VMs of the site, or nobody."""
        self._require(site)
        campaign = self._campaigns.add(Campaign(site, terms))
        self._nudge(site)
        return campaign

    def repair(self, id_: str) -> Campaign | None:
        """A repair that was begun in this run."""
        return self._campaigns.find(id_, Campaign)

    def begin_maintenance(self, site: str, terms: MaintenanceTerms) -> MaintenanceRun:
        """Begin to carry out a maintenance. Raises as `begin_repair`."""
        self._require(site)
        run = self._campaigns.add(MaintenanceRun(site, terms))
        self._nudge(site)
        return run

    def maintenance(self, id_: str = "") -> MaintenanceRun | None:
        """A maintenance that was begun in this run; without an id the last one."""
        return self._campaigns.find(id_, MaintenanceRun) if id_ else self._campaigns.last(MaintenanceRun)

    def suspend(self) -> None:
        """The site may be another worker's: whoever follows a maintenance is told that nobody goes on with it."""
        run = self._campaigns.under_way(MaintenanceRun)
        if run is not None:
            run.abandon()

    def _require(self, site: str) -> None:
        """Raises Unreachable where VMs of the site are not moved here now."""
        if (why := self._why_not(site)) is not None:
            raise Unreachable(why)

    def _why_not(self, site: str) -> str | None:
        role = COMMANDS[MOVE].role
        if site != self._site:
            return f"this worker acts on site {self._site} alone"
        if MOVE not in self._kinds:
            return f"this worker moves no VMs: it has no agent {role}, or no vSphere"
        return self._unsure(site) or self._leases.of(role).doubt()
