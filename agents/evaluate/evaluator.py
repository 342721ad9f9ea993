"""The evaluator that stays: it keeps a site compiled between cycles and judges only what a change can affect.

In: one snapshot of a site after another. Out: the same `Report` as `check.check`, and the same decisions as
`schedule.decide`. What changed is found by identity: an object that is the same Python object as before is not looked
at (of a `View` only the keys that it names). Every rule, every word of a finding is that of the full check. What cannot
follow a change (`Outdated`) is compiled anew.
"""

from collections.abc import Mapping

from underhost.agents.compiled.classifier import Outdated
from underhost.agents.compiled.live import Live
from underhost.agents.compiled.model import Model, compile
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.first_marks import marks_of
from underhost.agents.evaluate.follow import Following
from underhost.agents.evaluate.judges import Judges
from underhost.agents.schedule.pending import PodDecision, decide
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report


class Resident:
    """The evaluator of one site. `rebuilt` counts how often it had to compile the whole site."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._before: Snapshot | None = None
        self._live: Live
        self._judges: Judges
        self._following: Following
        self.rebuilt = 0

    def update(self, snapshot: Snapshot) -> Report:
        """The report of the snapshot. Raises BadObjectError; the next update then starts anew."""
        if self._is_whole(snapshot):
            self._before = None
            return check(snapshot, self._options)
        before, self._before = self._before, None
        if before is None or before.site != snapshot.site:
            self._begin(snapshot)
        else:
            try:
                self._following.follow(before, snapshot)
            except Outdated:
                self._begin(snapshot)
        self._before = snapshot
        return self._report(snapshot)

    def decide(self, snapshot: Snapshot, assumed: Mapping[str, str] | None = None) -> list[PodDecision]:
        """As `schedule.decide`. Raises BadObjectError."""
        if self._is_whole(snapshot):
            return decide(snapshot, self._options, assumed)
        if self._before is not snapshot:
            self.update(snapshot)
        names, placed = self._options.scheduler_names, assumed or {}
        if not any(
            pod.scheduler in names and not pod.terminating and key not in placed
            for key, pod in self._live.pending.items()
        ):
            return []
        self._live.show_waiting(snapshot)
        with self._live.state.trial():
            return decide(snapshot, self._options, assumed, self._live.state)

    def model(self, snapshot: Snapshot) -> Model:
        """The site compiled, good until the next call, for whoever places pods himself. Raises BadObjectError."""
        if self._is_whole(snapshot):
            return compile(snapshot, self._options)
        if self._before is not snapshot:
            self.update(snapshot)
        self._live.show_waiting(snapshot)
        return self._live.model

    def _is_whole(self, snapshot: Snapshot) -> bool:
        """Whether nothing is kept: preferences are scored over all nodes, and claims are only in dumps."""
        return self._options.drift or bool(snapshot.claims)

    def _report(self, snapshot: Snapshot) -> Report:
        store = self._judges.store
        return Report(
            findings=store.findings(),
            budgets=self._judges.budgets.figures(),
            summary={
                "pods": len(self._live.places),
                "nodes": len(snapshot.nodes),
                "hosts": snapshot.count_hosts(),
                **{severity: store.counts[severity] for severity in f.SEVERITIES},
            },
        )

    # ------------------------------------------------------------------------------------------------------- anew
    def _begin(self, snapshot: Snapshot) -> None:
        """Compile the site and judge all of it."""
        self.rebuilt += 1
        live = self._live = Live(snapshot, self._options)
        judges = self._judges = Judges(live, self._options)
        self._following = Following(live, judges)
        for name, budget in snapshot.budgets.items():
            judges.budgets.change_budget(name, budget, None)
        for key, pod in snapshot.pods.items():
            judges.budgets.change_pod(key, pod, None)
            place = live.places.get(key)
            if place is not None:
                if place.absent:
                    judges.unbound(snapshot, key, True)
                judges.bound(snapshot, key, pod, place)
        judges.hosts.use(snapshot)
        judges.judge(snapshot, marks_of(snapshot, live, judges.relations))
