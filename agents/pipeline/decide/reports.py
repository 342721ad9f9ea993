"""What the evaluator says of a picture, asked once: the cycle publishes the findings, the evictor repairs them.

In: an engine and snapshots. Out: reports. Made by `memory.py`, read by `decisions.py` and the evictor's decider, in one
thread. A report of a snapshot as it would be is not kept: the engine follows it, and comes back with the next picture.
"""

from typing import Protocol

from underhost.agents.site.changes import is_same_picture
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report


class Checker(Protocol):
    """The part of an engine that judges the running pods."""

    def check(self, snapshot: Snapshot, options: Options) -> Report:
        """Every finding of the running pods."""


class Reports:
    """The last report of one site."""

    def __init__(self, engine: Checker, options: Options) -> None:
        self._engine, self._options = engine, options
        self._last: tuple[Snapshot, Report] | None = None

    def of(self, snapshot: Snapshot) -> Report:
        """The report; the last one again where nothing of the picture has changed but markers or outcomes came."""
        if self._last is not None and is_same_picture(self._last[0], snapshot):
            return self._last[1]
        report = self._engine.check(snapshot, self._options)
        self._last = (snapshot, report)
        return report

    def suppose(self, snapshot: Snapshot) -> Report:
        """The report of a snapshot that is only thought of."""
        return self._engine.check(snapshot, self._options)
