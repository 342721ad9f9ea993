"""Open findings are state: what a report says now against what was open before, as records of `violations`.

In: the findings of a report. Out: `opened`, `updated` and `resolved` records, the last followed by its tombstone. The
evaluator of a site is the only writer of its findings: what is open is read from the table once, when the site becomes
ready, so that a restart resolves what ended meanwhile and opens nothing twice. A finding that no record could hold is
cut: its texts, and the peers that it names, with how many there are. One that changes all the time is updated once in a
second: a tenant whose pods come and go would otherwise have all its findings told anew with each of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile

import msgspec

from underhost.agents.pipeline.decisions import FindingChange
from underhost.schemas.keys import finding_key
from underhost.schemas.records import OPENED, RESOLVED, UPDATED, Finding, FindingEvent
from underhost.schemas.topics import VIOLATIONS
from underhost.streams.derived import outgoing, tombstone
from underhost.streams.ports import Outgoing

PEERS_BYTES, TEXT = 60_000, 10_000
"""Bytes of the names of a finding's peers, and characters of each of its texts, that a record holds at most: a broker
takes 1 MiB, and a group of which pods come and go is told again each time."""
FEW = 100
"""Peers that always fit, whatever their names."""
STRANGERS = 100
"""Peers that are named where the rule is of one namespace and pods are of others: one term may select all of a site."""

PACE = 1.0
"""Seconds between two updates of a finding; the first one is told at once."""

_LIFE = ("state", "first_seen", "updated_at", "snapshot")
_CONTENT = tuple(name for name in FindingEvent.__struct_fields__ if name not in _LIFE)
_SAID = tuple(name for name in _CONTENT if name != "site")


class PublishedFindings:
    """One site's open findings, as they were last published.

    Attributes:
        due: when an update that was held back is to be told, monotonic seconds; None where there is none.
    """

    def __init__(self, site: str, published: Iterable[FindingEvent]) -> None:
        self._site = site
        rows = {row.id: row for row in published}
        self._open = {id_: row for id_, row in rows.items() if row.state != RESOLVED}
        self._told: Mapping[str, Finding] = {}  # what `_open` says, as objects
        self._looked_at: Mapping[str, Finding] = {}
        self._updated: dict[str, float] = {}
        self.due: float | None = None
        # A worker that was killed between a resolution and its tombstone leaves the row: the tombstone is still due.
        self._unburied = sorted(set(rows) - set(self._open))

    @property
    def open(self) -> Collection[str]:
        """The ids of those that are open."""
        return self._open.keys()

    def diff(
        self, findings: Sequence[Finding], snapshot: Mapping[str, int], now: str, monotonic: float
    ) -> FindingChange:
        """What changed; what is open is remembered by `commit` alone. `now` is RFC 3339, `monotonic` in seconds."""
        self._updated = {id_: at for id_, at in self._updated.items() if monotonic < at + PACE}
        self.due = None
        open_, told = dict(self._open), {finding.id: finding for finding in findings}
        records = [tombstone(VIOLATIONS, finding_key(self._site, id_)) for id_ in self._unburied]
        changed = [id_ for id_, finding in told.items() if self._told.get(id_) is not finding]  # of thousands a few
        gone = self._open.keys() - told.keys()
        for id_ in sorted(changed):
            before, event = self._open.get(id_), self._event(fitted(told[id_]), snapshot, now)
            if before is not None and _same(before, event):
                continue
            if before is not None and id_ in self._updated:
                del told[id_]
                self._wait_until(self._updated[id_] + PACE)
                continue
            open_[id_] = event
            records.append(self._record(event))
            if before is not None:
                self._updated[id_] = monotonic
        for id_ in sorted(gone):
            event = msgspec.structs.replace(open_.pop(id_), state=RESOLVED, updated_at=now, snapshot=dict(snapshot))
            records += [self._record(event), tombstone(VIOLATIONS, finding_key(self._site, id_))]
        self._looked_at = told
        return FindingChange(open_, records)

    def _wait_until(self, at: float) -> None:
        self.due = at if self.due is None else min(self.due, at)

    def commit(self, change: FindingChange) -> None:
        """The records of this change are published."""
        self._open, self._unburied, self._told = dict(change.open), [], self._looked_at

    def _event(self, finding: Finding, snapshot: Mapping[str, int], now: str) -> FindingEvent:
        before = self._open.get(finding.id)
        return FindingEvent(
            state=OPENED if before is None else UPDATED,
            site=self._site,
            first_seen=now if before is None else before.first_seen,
            updated_at=now,
            snapshot=dict(snapshot),
            **{name: getattr(finding, name) for name in _SAID},
        )

    def _record(self, event: FindingEvent) -> Outgoing:
        return outgoing(VIOLATIONS, finding_key(self._site, event.id), event)


def _same(one: FindingEvent, other: FindingEvent) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _CONTENT)


def fitted(finding: Finding) -> Finding:
    """The finding, cut where it is larger than a record may be; `pods` then counts all that it is about."""
    kept = len(finding.peers)
    if kept > FEW:
        sizes = accumulate(len(peer) + 3 for peer in finding.peers)
        kept = sum(1 for _ in takewhile(PEERS_BYTES.__ge__, sizes))
    kept = min(kept, STRANGERS) if finding.object is not None else kept
    left_out = len(finding.peers) - kept
    message = _shortened(finding.message) + (f" ({left_out} more are not named)" if left_out else "")
    reason = _shortened(finding.reason)
    if not left_out and (message, reason) == (finding.message, finding.reason):
        return finding
    pods = finding.pods if finding.pods is not None or not left_out else len(finding.peers) + 1
    return msgspec.structs.replace(finding, peers=finding.peers[:kept], message=message, reason=reason, pods=pods)


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}… ({len(text):,} characters)"
