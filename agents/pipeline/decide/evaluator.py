"""The evaluator of a site as an evaluation has it: imported and made at the first call.

That first call comes in the evaluating thread, and only in a worker that evaluates: the import takes a third of a
second, in which the event loop would stand still.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report

if TYPE_CHECKING:
    from underhost.agents.affinity.quorum import Quorum
    from underhost.agents.compiled.state import State
    from underhost.agents.evaluate.evaluator import Evaluator
    from underhost.agents.schedule.pending import PodDecision


class PipelineEvaluator(Protocol):
    """What the pipeline asks of an evaluator. Every method raises BadObjectError."""

    def update(self, snapshot: Snapshot) -> Report:
        """Every finding of the running pods."""

    def state(self, snapshot: Snapshot) -> "State":
        """The compiled site, for deciders; good until the next call."""

    def quorums(self, snapshot: Snapshot) -> "list[Quorum]":
        """Every quorum of the site, for deciders."""

    def decide(self, snapshot: Snapshot, assumed: Mapping[str, str]) -> "Sequence[PodDecision]":
        """Where the pending pods go, given that the assumed ones (pod to node) are placed already.

        A pod that is assumed on a node that is not there waits for another time, and counts nowhere.
        """

    def renew(self) -> None:
        """Forget what is kept of the site: the next call begins anew. May be called from another thread."""


class LazyEvaluator:
    """Implements `PipelineEvaluator` for one site."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @cached_property
    def _evaluator(self) -> "Evaluator":
        # Heavy: see above. The first pods that must be apart would otherwise wait for both; polars imports the second
        # with the first array that it is given.
        import numpy.ma  # noqa: F401
        import polars  # noqa: F401

        from underhost.agents.evaluate.evaluator import Evaluator

        return Evaluator(self._options)

    def update(self, snapshot: Snapshot) -> Report:
        """See `PipelineEvaluator`."""
        return self._evaluator.update(snapshot)

    def state(self, snapshot: Snapshot) -> "State":
        """See `PipelineEvaluator`."""
        return self._evaluator.state(snapshot)

    def quorums(self, snapshot: Snapshot) -> "list[Quorum]":
        """See `PipelineEvaluator`."""
        return self._evaluator.quorums(snapshot)

    def decide(self, snapshot: Snapshot, assumed: Mapping[str, str]) -> "Sequence[PodDecision]":
        """See `PipelineEvaluator`."""
        return self._evaluator.decide(snapshot, assumed)

    def renew(self) -> None:
        """See `PipelineEvaluator`. A call that is under way ends with the evaluator that it began with."""
        self.__dict__.pop("_evaluator", None)
