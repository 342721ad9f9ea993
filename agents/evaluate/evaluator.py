"""The evaluator of a site: it keeps the site compiled between snapshots and judges only what a change can affect.

In: one snapshot of a site after another. Out: the compiled site, its `Report`, and where pending pods go: the same as
`check.check` and `schedule.decide` say of each snapshot alone. Nobody else compiles a site: deciders and plans ask the
evaluator for its compiled site. A change that the site cannot follow (`Outdated`) makes it compile anew.
"""

from collections.abc import Mapping
from typing import Protocol

from underhost.agents.affinity.quorum import Quorum, quorums
from underhost.agents.compiled.follower import Follower
from underhost.agents.compiled.model import Model, compile
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.judges import Judges
from underhost.agents.evaluate.marker import Marker
from underhost.agents.schedule.pending import PodDecision, decide
from underhost.agents.site.changes import Outdated, is_same_picture
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report


class SiteEvaluator(Protocol):
    """What deciders ask of the evaluator of their site; every method raises BadObjectError."""

    def update(self, snapshot: Snapshot) -> Report:
        """The report of a snapshot, which may also be one that is only thought of."""

    def state(self, snapshot: Snapshot) -> State:
        """The compiled site, good until the next call."""

    def quorums(self, snapshot: Snapshot) -> list[Quorum]:
        """Every quorum of the site, sorted."""


class Evaluator:
    """The evaluator of one site, for one thread at a time. Every method raises BadObjectError.

    A snapshot may also be one that is only thought of: the next call brings the site back to what is.

    Attributes:
        rebuilt: how often the whole site was compiled.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._before: Snapshot | None = None
        self._site: CompiledSite
        self._follower: Follower
        self._judging: tuple[Judges, Marker] | None = None
        self._whole: tuple[Snapshot, Model] | None = None
        self._last: tuple[Snapshot, Report] | None = None
        self.rebuilt = 0

    def update(self, snapshot: Snapshot) -> Report:
        """The report of the snapshot; the last one again where no object has changed."""
        if self._last is None or not is_same_picture(self._last[0], snapshot):
            self._last = None
            self._last = snapshot, self._judge(snapshot)
        return self._last[1]

    def decide(self, snapshot: Snapshot, assumed: Mapping[str, str] | None = None) -> list[PodDecision]:
        """As `schedule.decide`."""
        if self._is_whole(snapshot):
            return decide(snapshot, self._options, assumed, State(self._compiled(snapshot)))
        self._follow(snapshot)
        names, placed = self._options.scheduler_names, assumed or {}
        if not any(
            key not in placed and pod.scheduler in names and not pod.terminating
            for key, pod in self._site.pending.items()
        ):
            return []
        self._site.show_waiting(snapshot)
        with self._site.state.trial():
            return decide(snapshot, self._options, assumed, self._site.state)

    def state(self, snapshot: Snapshot) -> State:
        """The compiled site with the counters of its pods, good until the next call. Try pods in `State.trial` only."""
        if self._is_whole(snapshot):
            return State(self._compiled(snapshot))
        self._follow(snapshot)
        self._site.show_waiting(snapshot)
        return self._site.state

    def quorums(self, snapshot: Snapshot) -> list[Quorum]:
        """Every quorum of the site, sorted."""
        self.update(snapshot)
        if self._judging is None or self._is_whole(snapshot):
            return quorums(snapshot)
        return list(self._judging[0].quorums.members.all(snapshot))

    def _is_whole(self, snapshot: Snapshot) -> bool:
        """Whether nothing is kept: preferences are scored over all nodes, and claims are only in dumps."""
        return self._options.drift or bool(snapshot.claims)

    def _compiled(self, snapshot: Snapshot) -> Model:
        """The model of a snapshot that nothing is kept of but for the next question."""
        if self._whole is None or self._whole[0] is not snapshot:
            self.rebuilt += 1
            self._whole = snapshot, compile(snapshot, self._options)
        return self._whole[1]

    def _follow(self, snapshot: Snapshot) -> None:
        """Bring the compiled site to the snapshot. After an error the next call starts anew."""
        before, self._before = self._before, None
        if before is not snapshot:
            try:
                if before is None or (before.site, before.vsphere) != (snapshot.site, snapshot.vsphere):
                    raise Outdated  # other settings: every word of a finding may be another one
                self._follower.follow(before, snapshot)
            except Outdated:
                self.rebuilt += 1
                self._site, self._judging = CompiledSite(snapshot, self._options), None
                self._follower = Follower(self._site, snapshot)
        self._before = snapshot

    def _judge(self, snapshot: Snapshot) -> Report:
        if self._is_whole(snapshot):
            return check(snapshot, self._options, self._compiled(snapshot))
        self._follow(snapshot)
        self._before = None
        if self._judging is None:
            judges = Judges(self._site.model, self._site.state, self._options)
            self._site.show_waiting(snapshot)
            judges.judge_all(snapshot)
            judges.index(snapshot, self._site)
            self._follower.observer = marker = Marker(self._site, judges)
            self._judging = judges, marker
        else:
            judges, marker = self._judging
            judges.judge(snapshot, self._site, marker.take())
        self._before = snapshot
        return judges.report(snapshot, len(self._site.places))
