"""The evaluator as the cycle calls it: the resident engine of one site. Heavy imports wait for the first call."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.records import Placement

if TYPE_CHECKING:
    from underhost.agents.compiled.state import State
    from underhost.agents.evaluate.evaluator import Evaluator


class PolarsEngine:
    """Implements `decisions.Engine` for one site: what is compiled stays from one evaluation to the next."""

    def __init__(self) -> None:
        self._resident: tuple[Options, Evaluator] | None = None

    def check(self, snapshot: Snapshot, options: Options) -> Report:
        """Every finding of the running pods."""
        return self._engine(options).update(snapshot)

    def state(self, snapshot: Snapshot, options: Options) -> "State":
        """The compiled site, for deciders; good until the next call."""
        return self._engine(options).state(snapshot)

    def decide(self, snapshot: Snapshot, options: Options, assumed: Mapping[str, str]) -> Sequence[Placement]:
        """Where the pending pods go, given that the assumed ones are placed already."""
        return [
            Placement(
                pod=each.pod,
                uid=each.uid,
                node=each.node,
                total=each.total,
                physical_conflicts=each.physical_conflicts,
                failed=dict(each.failed),
                snapshot=dict(snapshot.offsets),
            )
            for each in self._engine(options).decide(snapshot, assumed)
        ]

    def _engine(self, options: Options) -> "Evaluator":
        from underhost.agents.evaluate.evaluator import Evaluator

        if self._resident is None or self._resident[0] != options:
            self._resident = options, Evaluator(options)
        return self._resident[1]
