"""What was decided, done and seen of each object lately, in one line each: the memory behind the page's history.

In: records of the derived topics, from their beginning. Out: entries by subject, and the newest of a site. Bounded:
some entries a subject, some subjects; what was not heard of for longest is forgotten first. The topics keep more.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

import msgspec

from underhost.schemas import topics
from underhost.schemas.commands import EVENT, WRITTEN
from underhost.schemas.keys import site_of
from underhost.schemas.page import HistoryEntry
from underhost.schemas.records import Action, FindingEvent, NodeHost, Outcome, Placement, pods_named
from underhost.streams.derived import rfc3339
from underhost.streams.ports import Record

TOPICS = (topics.NODE_HOSTS, topics.PLACEMENTS, topics.VIOLATIONS, topics.ACTIONS, topics.OUTCOMES)
"""What is remembered."""
EACH, MOST, LATEST = 40, 5_000, 300
"""Entries of one subject, subjects, and entries of the list of a whole site, at most. A pod that comes is a subject."""
TOGETHER = 20_000
"""Entries of all subjects of a site, at most: some 20 MB. A pod that comes and is bound makes three."""
NAMED = 20
"""Pods of a finding that an entry names, and that remember each update of it: a finding over hundreds of pods is
updated whenever one of them comes or goes."""

_TONES = {"opened": "bad", "resolved": "good", "failed": "bad", "refused": "bad", "applied": "good"}
_QUIET = ("noop",)


class ActivityLog:
    """The memory of one site."""

    def __init__(self) -> None:
        self._subjects: OrderedDict[str, deque[HistoryEntry]] = OrderedDict()
        self._latest: deque[HistoryEntry] = deque(maxlen=LATEST)
        self._hosts: dict[str, str] = {}
        self._held = 0

    def latest(self) -> list[HistoryEntry]:
        """What happened to the site, newest first, without what only repeats or prepares something."""
        return list(reversed(self._latest))

    def of(self, *subjects: str) -> list[HistoryEntry]:
        """What is remembered of these subjects together, newest first."""
        entries = [entry for subject in dict.fromkeys(subjects) for entry in self._subjects.get(subject, ())]
        return sorted(entries, key=lambda entry: entry.at, reverse=True)

    def of_pod(self, pod: str, node: str) -> list[HistoryEntry]:
        """What is remembered of a pod, and which hosts its node went to, newest first."""
        entries = self.of(f"pod/{pod}", f"node/{node}")
        moves = topics.NODE_HOSTS.short
        return [
            entry
            for entry in entries
            if entry.topic == moves or not entry.subject.startswith(("node/", f"{EVENT}/node/"))
        ]

    def apply(self, record: Record) -> HistoryEntry | None:
        """Take in a record; the entry, where it is one for the whole site's list."""
        topic = topics.BY_NAME.get(record.topic)
        if topic is topics.NODE_HOSTS and record.value is None:
            self._hosts.pop((record.key or b"").decode("utf-8", "replace").rpartition("/")[2], None)
        if topic is None or record.value is None or topic.record is None:
            return None
        try:
            value = msgspec.json.decode(record.value, type=topic.record)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None  # the worker's agents put it into dead-letters
        entry = _ENTRIES[type(value)](self, value, rfc3339(record.timestamp / 1000))
        if entry is None:
            return None
        pods = pods_named(value) if isinstance(value, FindingEvent) and value.state != "updated" else entry.pods
        for subject in _subjects(entry, pods):
            self._keep(subject, entry)
        if isinstance(value, Action) or (isinstance(value, Outcome) and _says_nothing_new(value)):
            return None
        if isinstance(value, FindingEvent) and value.state == "updated":
            return None
        self._latest.append(entry)
        return entry

    def _keep(self, subject: str, entry: HistoryEntry) -> None:
        held = self._subjects.setdefault(subject, deque(maxlen=EACH))
        self._subjects.move_to_end(subject)
        if not held or held[-1] != entry:
            self._held += len(held) < EACH
            held.append(entry)
        while len(self._subjects) > MOST or self._held > TOGETHER:
            self._held -= len(self._subjects.popitem(last=False)[1])

    # ------------------------------------------------------------------------------------------------ one kind each
    def _node_host(self, row: NodeHost, at: str) -> HistoryEntry | None:
        before, now = self._hosts.get(row.node), row.host_name
        self._hosts[row.node] = now
        if before is None or before == now:
            return None
        text = f"{row.node} moved from {before or 'an unknown host'} to {now or 'an unknown host'}"
        return HistoryEntry(row.since or at, topics.NODE_HOSTS.short, f"node/{row.node}", text, node=row.node)

    def _placement(self, row: Placement, at: str) -> HistoryEntry:
        if row.node is not None:
            shared = f", shares its host with {row.physical_conflicts}" if row.physical_conflicts else ""
            score = f" (score {row.total}{shared})" if row.total is not None else ""
            text = f"{row.pod} is to run on {row.node}{score}"
        else:
            why = "; ".join(f"{count} × {reason}" for reason, count in sorted(row.failed.items()))
            text = f"{row.pod} waits: no node takes it{f' ({why})' if why else ''}"
        tone = "" if row.node is not None else "bad"
        subject, snapshot = f"pod/{row.pod}", dict(row.snapshot)
        return HistoryEntry(at, topics.PLACEMENTS.short, subject, text, tone, [row.pod], row.node or "", snapshot)

    def _finding(self, row: FindingEvent, at: str) -> HistoryEntry:
        text = f"Finding {row.state} ({row.severity}): {row.message}"
        subject, snapshot = f"finding/{row.id}", dict(row.snapshot)
        tone, pods = _TONES.get(row.state, ""), pods_named(row)[:NAMED]
        return HistoryEntry(at, topics.VIOLATIONS.short, subject, text, tone, pods, row.node or "", snapshot)

    def _action(self, row: Action, at: str) -> HistoryEntry:
        text, snapshot = f"Ordered: {row.because}", dict(row.snapshot)
        return HistoryEntry(at, topics.ACTIONS.short, row.target, text, "", *_about(row.target), snapshot)

    def _outcome(self, row: Outcome, at: str) -> HistoryEntry:
        if row.kind == EVENT:
            pods, node = _about(row.target)
            told = f"Event {row.target.rpartition('/')[2]} on {node or ', '.join(pods)}"
            text = told if row.result == "applied" else f"{told}: {row.reason} ({row.result})"
            return HistoryEntry(at, topics.OUTCOMES.short, row.target, text, "", pods, node)
        what = f"{_subject(row.kind)} {row.target.partition('/')[2]}"
        how = "" if row.result == "applied" else f" ({row.result})"
        text, tone = f"{what}: {row.reason or row.kind}{how}", _TONES.get(row.result, "")
        return HistoryEntry(at, topics.OUTCOMES.short, row.target, text, tone, *_about(row.target))


def _says_nothing_new(row: Outcome) -> bool:
    """Whether it changed nothing, or only told people what the list says already."""
    return row.result in _QUIET or (row.kind == EVENT and row.result == "applied")


def _subject(kind: str) -> str:
    """What a sentence calls the target of a command."""
    written = WRITTEN.get(kind)
    return written.subject if written is not None and written.subject else kind


def _about(target: str) -> tuple[list[str], str]:
    """The pods and the node that a command is about."""
    kind, _, name = target.partition("/")
    if kind == EVENT:  # event/KIND/NAMESPACE/NAME/REASON
        kind, _, name = name.rpartition("/")[0].partition("/")
        name = name.lstrip("/")
    return [name] if kind == "pod" else [], name if kind == "node" else ""


def _subjects(entry: HistoryEntry, pods: list[str]) -> Iterator[str]:
    """What an entry about these pods is remembered under: its subject; an Event under its object alone."""
    if entry.subject.startswith(f"{EVENT}/"):
        yield from (f"pod/{pod}" for pod in pods)
        yield from (f"node/{node}" for node in filter(None, [entry.node]))
    else:
        yield entry.subject
    if entry.subject.startswith("finding/"):
        yield from (f"pod/{pod}" for pod in pods)
        if entry.node and not pods:
            yield f"node/{entry.node}"


_ENTRIES: dict[type, Callable[..., HistoryEntry | None]] = {
    NodeHost: ActivityLog._node_host,
    Placement: ActivityLog._placement,
    FindingEvent: ActivityLog._finding,
    Action: ActivityLog._action,
    Outcome: ActivityLog._outcome,
}


class ActivityLogs:
    """The memories of every site. `told` is called with (site, entry) for what is new in a site's list."""

    def __init__(self, told: Callable[[str, HistoryEntry], None]) -> None:
        self._told = told
        self._sites: dict[str, ActivityLog] = {}
        self._read: dict[tuple[str, int], int] = {}

    def of(self, site: str) -> ActivityLog:
        """The memory of a site; an empty one where nothing is known of it: whoever asks may name any."""
        return self._sites.get(site) or ActivityLog()

    def apply(self, record: Record) -> None:
        """Take in a record; one that was read before changes nothing."""
        place = (record.topic, record.partition)
        if record.offset < self._read.get(place, 0):
            return
        self._read[place] = record.offset + 1
        site = site_of((record.key or b"").decode("utf-8", "replace"))
        if not site:
            return
        if site not in self._sites:
            self._sites[site] = ActivityLog()
        entry = self._sites[site].apply(record)
        if entry is not None:
            self._told(site, entry)
