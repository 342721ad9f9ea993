"""When nothing may be written to a site's clusters: an inventory that is not believed, data that is too old.

In: the markers that every worker reads with the objects, and the sources of this process, which know first. Out: a
`Standstill`, which the cycle asks before anything is ordered and the gate before each write; findings that say so.
What a source does not believe is its own matter (`streams/watching/doubts.py`); it says it in its markers, so that
workers which watch nothing themselves, and every next run, stand still as well until a person says `underhost resume
SITE`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from underhost.agents.evaluate import findings as f
from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.signs import SKEWED
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.orders import FAILED, outcome
from underhost.agents.sinks.registry import COMMANDS, host_based
from underhost.schemas.records import Action, Domain, Finding, Outcome
from underhost.schemas.severities import UNKNOWN_HOST, UNKNOWN_NODE
from underhost.schemas.topics import KUBERNETES, VSPHERE
from underhost.streams.faust.membership import LOOK
from underhost.streams.settings.model import Settings

SHRUNK, STALE = "shrunk", "stale"


_NAMES = {KUBERNETES: "Kubernetes", VSPHERE: "vSphere"}
_UNKNOWN = {KUBERNETES: UNKNOWN_NODE, VSPHERE: UNKNOWN_HOST}
"""Severity of the finding that a source's data is too old: what is not known because of it."""


@dataclass(frozen=True)
class Standstill:
    """What may not be ordered or written now; all is well where it is empty.

    Attributes:
        doubts: what each source does not believe. Nothing at all is written while there is one.
        stale: why the data of each source is too old. Nothing at all is written on an old picture of Kubernetes, on one
            of vSphere nothing that rests on it: `kinds`.
        standby: the kinds that another worker carries out, with the reason. Nothing is the matter with the site.
    """

    doubts: Mapping[str, str] = field(default_factory=dict)
    stale: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    standby: Mapping[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> str:
        """Why nothing at all may be written, "" where something may."""
        return "; ".join(filter(None, (_joined(self.doubts), self.stale.get(KUBERNETES, ""))))

    def forbids(self, kind: str) -> str:
        """Why no command of this kind may be ordered or carried out, "" where it may."""
        if not (self.doubts or self.stale or self.standby):
            return ""  # asked several times for each command, and nearly always so
        stale = _joined(self.stale) if kind in self.kinds else ""
        return self.everything or self.standby.get(kind, "") or stale

    def why(self) -> dict[str, str]:
        """The reasons by what is the matter: `shrunk`, `stale`."""
        return {name: why for name, why in ((SHRUNK, _joined(self.doubts)), (STALE, _joined(self.stale))) if why}

    def findings(self, site: str) -> list[Finding]:
        """One finding for each source that is not believed, and one for each whose data is too old."""
        found = [_not_believed(site, source, doubt) for source, doubt in sorted(self.doubts.items())]
        return found + [_too_old(site, source, why, self.kinds) for source, why in sorted(self.stale.items())]


def _joined(reasons: Mapping[str, str]) -> str:
    return "; ".join(reason for _, reason in sorted(reasons.items()))


class Guards:
    """Knows the standstill of each site. `watchers` are this process's, `standby` see `Standstill`."""

    def __init__(
        self,
        settings: Settings,
        sites: Sites,
        watchers: Watchers | None = None,
        standby: Callable[[Iterable[str]], Mapping[str, str]] = lambda kinds: {},
    ) -> None:
        self._settings, self._sites, self._watchers, self._standby = settings, sites, watchers, standby
        self._kinds = host_based(settings)
        kubernetes, vsphere = settings.kubernetes, settings.vsphere
        # Markers come now and then; what is heard of a watcher elsewhere is as old as the last one.
        self._patience = {
            KUBERNETES: kubernetes.stale_after + kubernetes.sign_of_life,
            VSPHERE: vsphere.stale_bound + vsphere.sign_of_life,
        }

    def standstill(self, site: str, kinds: Iterable[str] = tuple(COMMANDS)) -> Standstill:
        """What may not be written for the site now; of these kinds, where that differs by kind."""
        doubts, stale = self._sites.doubts(site), self.silent(site)
        if site == self._settings.site and self._watchers is not None:
            doubts |= self._watchers.doubts()
            stale |= self._watchers.stale()
        return Standstill(doubts, stale, self._kinds, self._standby(kinds) if site == self._settings.site else {})

    def must_list(self, site: str, kind: str) -> bool:
        """Whether a source of this process has not listed yet that commands of this kind rest on.

        Until then how old the picture is can only be told from markers of another run, by clocks that may be set.
        """
        if site != self._settings.site or self._watchers is None:
            return False
        is_listing = self._watchers.is_listing
        return is_listing(KUBERNETES) or (kind in self._kinds and is_listing(VSPHERE))

    def stopped(self, sites: Iterable[str]) -> dict[str, str]:
        """Why not everything is written that should be, by site; empty when all is."""
        reasons = {site: "; ".join(self.standstill(site).why().values()) for site in sites}
        return {f"site {site}": f"writes stop: {reason}" for site, reason in reasons.items() if reason}

    def skewed(self, sites: Iterable[str]) -> dict[str, str]:
        """Whose clock differs too much from ours, by site and source. It stops nothing: silence is told without it."""
        found = {}
        for site in sites:
            for source in _NAMES:
                seconds = self._sites.signs.skew(site, source)
                if abs(seconds) >= SKEWED:
                    where = "behind" if seconds > 0 else "ahead of"
                    found[f"clock of source {source} of site {site}"] = f"{abs(seconds):.0f} s {where} this worker's"
        return found

    def silent(self, site: str) -> dict[str, str]:
        """The sources that have given no sign of life for too long."""
        return {
            source: f"nothing has been heard of {_NAMES[source]} for over {patience:g} s"
            for source, patience in self._patience.items()
            if self._sites.silence(site, source) >= patience
        }


class InventoryGate(Gate):
    """Refuses what the standstill of one site forbids, and lets through what this process has a picture for."""

    def __init__(self, guards: Guards, site: str) -> None:
        self._guards, self._site = guards, site

    def refuses(self, action: Action) -> Outcome | None:
        """See `Gate.refuses`. Failed and not refused: it is ordered again soon after writes go on."""
        why = self._guards.standstill(self._site, (action.kind,)).forbids(action.kind)
        return outcome(action, FAILED, f"writes stop: {why}") if why else None

    def is_unsure(self, action: Action) -> bool:
        """See `Gate.is_unsure`: what people are told of an earlier run's records, say, waits for our own lists."""
        return self._guards.must_list(self._site, action.kind)

    async def settled(self, action: Action) -> None:
        """See `Gate.settled`; it may not be by then, and is asked again."""
        await asyncio.sleep(LOOK)


def _not_believed(site: str, source: str, doubt: str) -> Finding:
    message = f"{doubt}. Site {site} gets no write at all until somebody looks and says: underhost resume {site}"
    return _finding(
        site, UNKNOWN_NODE, source, SHRUNK, "the inventory is empty or has shrunk by more than 40 %", message
    )


def _too_old(site: str, source: str, why: str, kinds: Iterable[str]) -> Finding:
    stopped = f"no write that rests on where VMs run ({', '.join(sorted(kinds))})" if source == VSPHERE else "no write"
    message = f"{why}: until it is heard of again, site {site} gets {stopped}."
    return _finding(site, _UNKNOWN[source], source, STALE, f"{_NAMES[source]} data is too old", message)


def _finding(site: str, severity: str, source: str, what: str, reason: str, message: str) -> Finding:
    return Finding(
        id=f.finding_id(site, severity, f.INVENTORY, source, what, ""),
        severity=severity,
        rule=f.INVENTORY,
        reason=reason,
        message=message,
        domain=Domain(key="source", value=source),
    )
