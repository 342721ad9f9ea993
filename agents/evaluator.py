"""The evaluator as the cycle calls it: the pure engine behind two methods. Heavy imports wait for the first call."""

from collections.abc import Mapping, Sequence

from underhost.agents.engine.snapshot import Options, Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.records import Placement


class PolarsEngine:
    """Implements `decisions.Engine` by the functions of `agents.engine`."""

    def check(self, snapshot: Snapshot, options: Options) -> Report:
        """Every finding of the running pods."""
        from underhost.agents.engine.check import check

        return check(snapshot, options)

    def decide(self, snapshot: Snapshot, options: Options, assumed: Mapping[str, str]) -> Sequence[Placement]:
        """Where the pending pods go, given that the assumed ones are placed already."""
        from underhost.agents.engine.schedule import decide

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
            for each in decide(snapshot, options, assumed)
        ]
