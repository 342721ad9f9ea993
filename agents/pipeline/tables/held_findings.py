"""The open findings of each site as their topic has them: what deciders order by that tell of findings.

In: the rows of `violations` as a site becomes ready, then its live records. Out: the findings by id, one mapping until
one of them changes. Records come on the event loop; deciders ask in the thread that evaluates.
"""

from collections.abc import Mapping
from threading import Lock

from underhost.agents.pipeline.tables.agents import Tables
from underhost.schemas.records import RESOLVED, FindingEvent
from underhost.schemas.topics import VIOLATIONS


class HeldFindings:
    """Of all sites of a worker that keeps the topic's table."""

    def __init__(self, tables: Tables) -> None:
        self._tables, self._lock = tables, Lock()
        self._open: dict[str, dict[str, FindingEvent]] = {}
        self._shown: dict[str, Mapping[str, FindingEvent]] = {}

    def begin(self, site: str) -> None:
        """Start anew with what the table holds."""
        rows = self._tables.records(VIOLATIONS, FindingEvent, site)
        with self._lock:
            self._open[site] = {row.id: row for row in rows if row.state != RESOLVED}
            self._shown.pop(site, None)

    def observe(self, site: str, row: FindingEvent) -> None:
        """A live record."""
        with self._lock:
            open_ = self._open.setdefault(site, {})
            if row.state == RESOLVED:
                open_.pop(row.id, None)
            else:
                open_[row.id] = row
            self._shown.pop(site, None)

    def of(self, site: str) -> Mapping[str, FindingEvent]:
        """The findings that are open now."""
        with self._lock:
            if site not in self._shown:
                self._shown[site] = dict(self._open.get(site, {}))
            return self._shown[site]
