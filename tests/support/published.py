"""Decisions and records, as the page and the alerts are told them."""

from collections.abc import Iterable

import msgspec

from underhost.agents.pipeline.decisions import Decisions, FindingChange
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, FindingEvent
from underhost.schemas.topics import Topic
from underhost.streams.derived import outgoing
from underhost.streams.ports import Record

MONDAY = "2026-01-05T08:00:00.000Z"


SHARED = FindingEvent(
    id="9f2c",
    state="opened",
    site="prod",
    severity="physical",
    rule="PhysicalHost",
    reason="replicas that must be apart share a host",
    message="db-0 and db-1 share esx-3.",
    first_seen="2026-11-21T03:00:00.000Z",
    updated_at="2026-11-21T03:00:00.000Z",
    snapshot={"pods": 4},
    pod="shop/db-0",
    node="n1",
    peers=["shop/db-1"],
    domain=Domain("host", "esx-3"),
)
"""Two replicas on one host, as people are told at night."""
RESOLVED = msgspec.structs.replace(SHARED, state="resolved", updated_at="2026-11-21T03:05:00.000Z")
"""Five minutes later."""


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
