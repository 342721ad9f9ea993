"""What the evaluator says of a picture, asked once: the cycle publishes the findings, the evictor repairs them.

In: an engine and snapshots. Out: reports. Made by `memory.py`, read by `decisions.py` and the evictor's decider, in one
thread. A report of a snapshot as it would be is not kept: the engine follows it, and comes back with the next picture.
"""

from typing import TYPE_CHECKING, Protocol

from underhost.agents.site.changes import is_same_picture
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report

if TYPE_CHECKING:
    from underhost.agents.compiled.state import State


class Checker(Protocol):
    """The part of an engine that compiles a site and judges the running pods."""

    def check(self, snapshot: Snapshot, options: Options) -> Report:
        """Every finding of the running pods."""

    def state(self, snapshot: Snapshot, options: Options) -> "State":
        """The compiled site."""


class Reports:
    """An engine with its options: what `evaluator.SiteEvaluator` asks for."""

    def __init__(self, engine: Checker, options: Options) -> None:
        self._engine, self._options = engine, options
        self._last: tuple[Snapshot, Report] | None = None

    def update(self, snapshot: Snapshot) -> Report:
        """The report; the last one again where nothing of the picture has changed but markers or outcomes came."""
        if self._last is not None and is_same_picture(self._last[0], snapshot):
            return self._last[1]
        report = self._engine.check(snapshot, self._options)
        self._last = (snapshot, report)
        return report

    def state(self, snapshot: Snapshot) -> "State":
        """The compiled site."""
        return self._engine.state(snapshot, self._options)
