"""How a run of the pipeline stands: is it ready, may its picture be trusted, is everything written that should be.

In: the parts of a run. Out: reasons in words, by what they are about; nothing where all is well.
"""

from collections.abc import Callable, Collection

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.decide.cycles import Cycles
from underhost.agents.pipeline.gates.guards import Guards
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.sites import Sites
from underhost.schemas.commands import BIND
from underhost.streams.faust.membership import Membership

WAITING = "it waits for its partitions and their tables"


class Readiness:
    """Of one run. `recovered`: its tables are there; `behind`: how far it is from what the topics held, if it is."""

    def __init__(
        self,
        roles: Collection[str],
        sites: Sites,
        watchers: Watchers,
        cycles: Cycles,
        guards: Guards,
        latest: LatestDecisions,
        membership: Membership,
        *,
        recovered: Callable[[], bool],
        behind: Callable[[], str | None],
    ) -> None:
        self._roles, self._sites, self._watchers, self._cycles = roles, sites, watchers, cycles
        self._guards, self._latest, self._membership = guards, latest, membership
        self._recovered, self._behind = recovered, behind

    def _worker(self) -> str | None:
        """Why the worker as a whole can say nothing."""
        return self._membership.doubt() or (None if self._recovered() else WAITING)

    def unsure(self, site: str) -> str | None:
        """Why nothing may be said of the site now; None when its picture is complete and trusted."""
        if (why := self._worker()) is not None:
            return why
        if role.EVALUATOR not in self._roles:
            return "this worker does not evaluate"
        why = self._sites.unready(site) or self._cycles.failure(site)
        if why is None and self._latest.of(site) is None:
            why = "nothing has been decided yet"
        return why or self._guards.standstill(site).forbids(BIND) or None

    def unready(self) -> dict[str, str]:
        """Why it is not ready, by what is not; empty when everything is decided for."""
        if (why := self._worker() or self._behind()) is not None:
            return {"worker": why}
        reasons = {f"source {name}": reason for name, reason in self._watchers.unlisted().items()}
        for site in self._sites.held():
            reason = self._sites.unready(site) or self._cycles.failure(site)
            if reason is not None:
                reasons[f"site {site}"] = reason
        return reasons

    def stopped(self) -> dict[str, str]:
        """Why not everything is written that should be, by site; empty when all is."""
        standstills = {site: self._guards.standstill(site) for site in self._sites.held()}
        reasons = {site: "; ".join(still.why().values()) for site, still in standstills.items()}
        return {f"site {site}": f"writes stop: {reason}" for site, reason in reasons.items() if reason}
