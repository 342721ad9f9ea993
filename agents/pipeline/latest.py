"""The last decisions of each site that this worker decides for or shows, for whoever shows them or answers from them.

In: decisions, as each is published (`state.py`), or as the topics tell of them (`observer.py`). Out: the newest picture
of a site, and a call for each new one. A run that is started again begins with none.
"""

from collections.abc import Callable
from dataclasses import replace

from underhost.agents.pipeline.decisions import Decisions

Listener = Callable[[str, Decisions | None], None]
"""Is told of (site, its newest decisions), None when the site is not ours any more."""


class LatestDecisions:
    """What was decided last, by site."""

    def __init__(self) -> None:
        self._latest: dict[str, Decisions] = {}
        self._listeners: list[Listener] = []

    def sites(self) -> list[str]:
        """The sites that something was decided for, sorted."""
        return sorted(self._latest)

    def of(self, site: str) -> Decisions | None:
        """The newest snapshot of the site with what was last judged of it; None before the first decision."""
        return self._latest.get(site)

    def put(self, site: str, decisions: Decisions) -> None:
        """New decisions are published. What this evaluation was not asked for stands as it was."""
        before = self._latest.get(site)
        if before is not None:
            if decisions.snapshot is before.snapshot and decisions.report is None and decisions.findings is None:
                return  # time has passed, nothing else
            decisions = replace(
                decisions,
                report=decisions.report or before.report,
                findings=decisions.findings or before.findings,
                placements=decisions.placements or before.placements,
            )
        self._latest[site] = decisions
        self._tell(site, decisions)

    def clear(self) -> None:
        """No site is ours any more, for now."""
        sites, self._latest = self.sites(), {}
        for site in sites:
            self._tell(site, None)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Be told of everything new, on the event loop; call what is returned to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, site: str, decisions: Decisions | None) -> None:
        for listener in list(self._listeners):
            listener(site, decisions)
