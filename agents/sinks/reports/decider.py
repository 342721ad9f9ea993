"""Reports: which are missing, which say something else than is open now, and which nobody needs any more.

In: the open findings of a site as the topic has them, and snapshots that tell whose the pods are. Out: `report`
commands, and now and then one that lists all reports there should be, so that what an earlier run has left, or a person
deleted, is put right. Only the reports of findings that have changed are made anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from underhost.agents.sinks.orders import DONE, FAILED, REFUSED, order
from underhost.agents.sinks.ports import Decider
from underhost.agents.sinks.reports.contents import DIGEST, ReportPlace, places_of, report
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import REPORT
from underhost.schemas.records import Action, FindingEvent, Outcome
from underhost.schemas.topics import PODS, WORKLOADS

QUIET = 1.0
"""Seconds between two writes of one report: findings that come and go by the hundred cost one write."""
SWEEP = 600.0
"""Seconds between two looks at all reports that are there."""
LOST, AFTER_FAILURE, AFTER_REFUSAL = 60.0, 10.0, 600.0
"""Seconds after which a command without an answer, one that failed, and one that was refused is ordered again."""
PATIENCE = 5.0
"""Seconds that a finding waits for the picture that it was found in."""
SWEEPS = "reports/"
"""Prefix of the target of the command that lists all reports; the site's name follows."""

_NEEDED = (PODS.short, WORKLOADS.short)


@dataclass
class _LastReport:
    """The last command for a report: a digest of the content ("": removed), and when another may follow.

    `tries` counts commands for the same content: each is another command, or the second would count as answered.
    """

    digest: str
    action: str
    quiet: float
    again: float | None
    tries: int = 1


class ReportDecider(Decider):
    """`findings` gives the open findings by id."""

    kind = REPORT

    def __init__(self, site: str, findings: Callable[[], Mapping[str, FindingEvent]]) -> None:
        self._site, self._findings = site, findings
        self._seen: dict[str, FindingEvent] = {}
        self._places: dict[str, dict[ReportPlace, list[str]]] = {}
        self._rows: dict[ReportPlace, dict[str, list[str]]] = {}
        self._stale: set[ReportPlace] = set()
        self._written: dict[ReportPlace, _LastReport] = {}
        self._open: Mapping[str, FindingEvent] | None = None
        self._awaited: dict[str, float] = {}
        self._sweeps, self._swept, self._sweep_at = 0, "", float("-inf")

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """The reports that are other than what was ordered last; now and then a look at all that are there."""
        self.due = None
        self._look(snapshot, now)
        self._stale.update(place for place, one in self._written.items() if one.again is not None and now >= one.again)
        actions = []
        for place in sorted(self._stale):
            last = self._written.get(place)
            if last is not None and now < last.quiet:
                self.wait_until(last.quiet)
                continue
            self._stale.discard(place)
            rows = self._rows.get(place, {})
            body = report(place, self._site, rows, self._seen, snapshot) if rows else None
            digest = body["metadata"]["annotations"][DIGEST] if body is not None else ""
            if last is not None and last.digest == digest and (last.again is None or now < last.again):
                continue
            tries = last.tries + 1 if last is not None and last.digest == digest else 1
            because = f"{len(rows)} {'finding is' if len(rows) == 1 else 'findings are'} open, try {tries}"
            action = order(REPORT, place.target(self._site), {"report": body}, because, snapshot.offsets)
            self._written[place] = _LastReport(digest, action.id, now + QUIET, now + LOST, tries)
            actions.append(action)
        if now >= self._sweep_at:
            actions.append(self._sweep(snapshot, now))
        for at in (self._sweep_at, *(one.again for one in self._written.values() if one.again is not None)):
            self.wait_until(at)
        return actions

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of a command; an older one's outcome says nothing."""
        if outcome.id == self._swept:
            if outcome.result == FAILED:  # some are not as they were written, or nobody knows
                self._sweep_at = now + AFTER_FAILURE
                for one in self._written.values():
                    one.again = now
                self.due = now
            return
        place, last = next(
            ((place, one) for place, one in self._written.items() if one.action == outcome.id), (None, None)
        )
        if place is None or last is None:
            return
        if outcome.result not in DONE:
            last.again = now + (AFTER_REFUSAL if outcome.result == REFUSED else AFTER_FAILURE)
        elif last.digest:
            last.again = None
        else:
            del self._written[place]

    def _look(self, snapshot: Snapshot, now: float) -> None:
        """Which findings are other than at the last look, and whose they are."""
        open_ = self._findings()
        if open_ is self._open:
            return
        seen, late = self._seen, False
        for id_ in [id_ for id_ in seen if id_ not in open_]:
            self._forget(id_)
        for id_, row in open_.items():
            if seen.get(id_) is row:
                continue
            is_ahead = any(snapshot.offsets.get(topic, -1) < row.snapshot.get(topic, -1) for topic in _NEEDED)
            if is_ahead and now < self._awaited.setdefault(id_, now + PATIENCE):
                late = True  # whose its pods are is in a picture that is still to come
                continue
            self._awaited.pop(id_, None)
            self._forget(id_)
            seen[id_], self._places[id_] = row, places_of(row, snapshot)
            for place, pods in self._places[id_].items():
                self._rows.setdefault(place, {})[id_] = pods
                self._stale.add(place)
        self._open = None if late else open_
        if late:
            self.wait_until(now + QUIET)

    def _forget(self, id_: str) -> None:
        """A finding is not open any more, or another one now."""
        self._seen.pop(id_, None)
        for place in self._places.pop(id_, ()):
            del self._rows[place][id_]
            if not self._rows[place]:
                del self._rows[place]
            self._stale.add(place)

    def _sweep(self, snapshot: Snapshot, now: float) -> Action:
        """The command that lists all reports; what is under way is only not to be removed."""
        keep = {
            place.target(self._site).partition("/")[2]: "" if one.again is not None else one.digest
            for place, one in sorted(self._written.items())
        }
        self._sweeps += 1
        because = f"look {self._sweeps} at all reports"
        action = order(REPORT, f"{SWEEPS}{self._site}", {"keep": keep}, because, snapshot.offsets)
        self._swept, self._sweep_at = action.id, now + SWEEP
        return action
