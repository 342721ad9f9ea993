"""When nothing may be written to a site's clusters: an inventory that is not believed, vSphere data that is too old.

In: the markers that every worker reads with the objects, and the sources of this process, which know first. Out: a
`Standstill`, which the cycle asks before anything is ordered and the gate before each write; findings that say so.
What a source does not believe is its own matter (`streams/watching/doubts.py`); it says it in its markers, so that
workers which watch nothing themselves, and every next run, stand still as well until a person says `underhost resume
SITE`.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from underhost.agents.evaluate import findings as f
from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.sites import VSPHERE, Sites
from underhost.agents.sinks.orders import FAILED, outcome
from underhost.agents.sinks.registry import host_based
from underhost.schemas.records import Action, Domain, Finding, Outcome
from underhost.schemas.severities import UNKNOWN_HOST, UNKNOWN_NODE
from underhost.streams.settings.model import Settings

SHRUNK, STALE = "shrunk", "stale"


@dataclass(frozen=True)
class Standstill:
    """What may not be ordered or written now; all is well where it is empty.

    Attributes:
        doubts: what each source does not believe. Nothing at all is written while there is one.
        stale: why the vSphere data is too old. Nothing is written then that rests on it: `kinds`.
        standby: the kinds that another worker carries out, with the reason. Nothing is the matter with the site.
    """

    doubts: Mapping[str, str] = field(default_factory=dict)
    stale: str = ""
    kinds: frozenset[str] = frozenset()
    standby: Mapping[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> str:
        """Why nothing at all may be written, "" where something may."""
        return "; ".join(doubt for _, doubt in sorted(self.doubts.items()))

    def forbids(self, kind: str) -> str:
        """Why no command of this kind may be ordered or carried out, "" where it may."""
        return self.everything or self.standby.get(kind, "") or (self.stale if kind in self.kinds else "")

    def why(self) -> dict[str, str]:
        """The reasons by what is the matter: `shrunk`, `stale`."""
        return {name: why for name, why in ((SHRUNK, self.everything), (STALE, self.stale)) if why}

    def findings(self, site: str) -> list[Finding]:
        """One finding for each source that is not believed, and one for stale data."""
        found = [_not_believed(site, source, doubt) for source, doubt in sorted(self.doubts.items())]
        if self.stale:
            held = ", ".join(sorted(self.kinds))
            message = f"{self.stale}: until it does, site {site} gets no write that rests on where VMs run ({held})."
            found.append(_finding(site, UNKNOWN_HOST, VSPHERE, STALE, "vSphere data is too old", message))
        return found


class Guards:
    """Knows the standstill of each site.

    `wall` is the time in seconds since 1970, `watchers` are this process's, `standby` see `Standstill`.
    """

    def __init__(
        self,
        settings: Settings,
        sites: Sites,
        watchers: Watchers | None = None,
        wall: Callable[[], float] = time.time,
        standby: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._settings, self._sites, self._watchers, self._wall = settings, sites, watchers, wall
        self._standby = standby
        self._kinds = host_based(settings)
        vsphere = settings.vsphere
        # Markers come now and then; what is heard of a watcher elsewhere is as old as the last one.
        self._patience = vsphere.stale_bound + vsphere.sign_of_life

    def standstill(self, site: str) -> Standstill:
        """What may not be written for the site now."""
        doubts = self._sites.doubts(site)
        stale = self._stale(site)
        if site == self._settings.site and self._watchers is not None:
            doubts |= self._watchers.doubts()
            stale = self._watchers.stale() or stale
        return Standstill(doubts, stale, self._kinds, self._standby() if site == self._settings.site else {})

    def stopped(self, sites: Iterable[str]) -> dict[str, str]:
        """Why not everything is written that should be, by site; empty when all is."""
        reasons = {site: "; ".join(self.standstill(site).why().values()) for site in sites}
        return {f"site {site}": f"writes stop: {reason}" for site, reason in reasons.items() if reason}

    def _stale(self, site: str) -> str:
        seen = self._sites.seen(site, VSPHERE)
        if not seen or self._wall() - seen / 1000 < self._patience:
            return ""
        return f"nothing has been heard of vCenter for over {self._patience:g} s"


class InventoryGate(Gate):
    """Refuses what the standstill of one site forbids."""

    def __init__(self, guards: Guards, site: str) -> None:
        self._guards, self._site = guards, site

    def refuses(self, action: Action) -> Outcome | None:
        """See `Gate.refuses`. Failed and not refused: it is ordered again soon after writes go on."""
        why = self._guards.standstill(self._site).forbids(action.kind)
        return outcome(action, FAILED, f"writes stop: {why}") if why else None


def _not_believed(site: str, source: str, doubt: str) -> Finding:
    message = f"{doubt}. Site {site} gets no write at all until somebody looks and says: underhost resume {site}"
    return _finding(
        site, UNKNOWN_NODE, source, SHRUNK, "the inventory is empty or has shrunk by more than 40 %", message
    )


def _finding(site: str, severity: str, source: str, what: str, reason: str, message: str) -> Finding:
    return Finding(
        id=f.finding_id(site, severity, f.INVENTORY, source, what, ""),
        severity=severity,
        rule=f.INVENTORY,
        reason=reason,
        message=message,
        domain=Domain(key="source", value=source),
    )
