"""Decisions and records as the rooms of the page are told them."""

from collections.abc import Iterable

from underhost.agents.pipeline.decisions import Decisions, FindingChange
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import Topic
from underhost.streams.derived import outgoing
from underhost.streams.ports import Record

MONDAY = "2026-01-05T08:00:00.000Z"


def a_finding(id_: str, *pods: str, state: str = "opened", severity: str = "physical") -> FindingEvent:
    """A finding about these pods."""
    first, *rest = pods
    return FindingEvent(
        id_, state, "prod", severity, "PhysicalHost", "r", f"{id_} is wrong", MONDAY, MONDAY, {}, first, "n1", rest
    )


def decided(snapshot: Snapshot, *findings: FindingEvent) -> Decisions:
    """What is known once the snapshot is judged."""
    return Decisions(snapshot, findings=FindingChange({event.id: event for event in findings}, []))


def records(*written: tuple[Topic, str, object], start: int = 0) -> Iterable[Record]:
    """Records of one partition, one after another, a second apart; (topic, key, value)."""
    for offset, (topic, key, value) in enumerate(written, start=start):
        data = outgoing(topic, key, value).value  # type: ignore[arg-type]
        yield Record(topic.name, 0, offset, 1_767_600_000_000 + offset * 1000, key.encode(), data, ())
