"""Open findings as state: what is published when a report changes, and after a restart."""

import msgspec
import pytest

from underhost.agents.pipeline.decide import open_findings
from underhost.agents.pipeline.decide.open_findings import PEERS_BYTES, PublishedFindings, fitted
from underhost.schemas.records import Finding, FindingEvent
from underhost.streams.ports import Outgoing
from underhost.streams.watching.records import LARGEST

MONDAY, TUESDAY = "2026-01-05T08:00:00.000Z", "2026-01-06T08:00:00.000Z"


def finding(id_: str, *, pod: str = "shop/db-0", peers: tuple[str, ...] = ("shop/db-1",)) -> Finding:
    return Finding(id_, "physical", "PhysicalHost", "reason", "message", pod=pod, peers=list(peers))


def told(records: list[Outgoing]) -> list[tuple[str, str, str, str] | tuple[str, None]]:
    """(key, state, firstSeen, updatedAt) of each record, (key, None) of a tombstone."""
    lines: list[tuple[str, str, str, str] | tuple[str, None]] = []
    for record in records:
        if record.value is None:
            lines.append((record.key, None))
        else:
            event = msgspec.json.decode(record.value, type=FindingEvent)
            lines.append((record.key, event.state, event.first_seen, event.updated_at))
    return lines


def event_of(record: Outgoing) -> FindingEvent:
    assert record.value is not None
    return msgspec.json.decode(record.value, type=FindingEvent)


def published(findings: PublishedFindings, *now: Finding, at: str, monotonic: float = 0.0) -> list[Outgoing]:
    change = findings.diff(now, {"pods": 7}, at, monotonic)
    findings.commit(change)
    return change.records


def test_a_new_finding_opens_once() -> None:
    findings = PublishedFindings("prod", [])
    assert told(published(findings, finding("f1"), at=MONDAY)) == [("prod/f1", "opened", MONDAY, MONDAY)]
    assert published(findings, finding("f1"), at=TUESDAY) == []


def test_a_finding_whose_members_change_is_updated_and_keeps_when_it_was_first_seen() -> None:
    findings = PublishedFindings("prod", [])
    published(findings, finding("f1"), at=MONDAY)
    grown = finding("f1", peers=("shop/db-1", "shop/db-2"))
    assert told(published(findings, grown, at=TUESDAY)) == [("prod/f1", "updated", MONDAY, TUESDAY)]


def test_a_finding_that_ended_is_resolved_and_then_deleted() -> None:
    findings = PublishedFindings("prod", [])
    published(findings, finding("f1"), finding("f2"), at=MONDAY)
    assert told(published(findings, finding("f2"), at=TUESDAY)) == [
        ("prod/f1", "resolved", MONDAY, TUESDAY),
        ("prod/f1", None),
    ]


def test_what_is_not_committed_is_said_again() -> None:
    findings = PublishedFindings("prod", [])
    first = findings.diff([finding("f1")], {"pods": 7}, MONDAY, 0.0)
    assert findings.diff([finding("f1")], {"pods": 7}, MONDAY, 0.0).records == first.records


def test_a_restart_opens_nothing_twice_and_resolves_what_ended_meanwhile() -> None:
    before = PublishedFindings("prod", []).diff([finding("f1"), finding("f2")], {"pods": 7}, MONDAY, 0.0)
    restarted = PublishedFindings("prod", before.open.values())
    assert told(published(restarted, finding("f2"), at=TUESDAY)) == [
        ("prod/f1", "resolved", MONDAY, TUESDAY),
        ("prod/f1", None),
    ]


def test_a_tombstone_that_a_kill_prevented_is_published_by_the_next_run() -> None:
    opened = PublishedFindings("prod", []).diff([finding("f1")], {"pods": 7}, MONDAY, 0.0)
    resolved = PublishedFindings("prod", opened.open.values()).diff([], {"pods": 8}, TUESDAY, 0.0)
    rows = [msgspec.json.decode(record.value, type=FindingEvent) for record in resolved.records if record.value]
    restarted = PublishedFindings("prod", rows)
    assert told(published(restarted, at=TUESDAY)) == [("prod/f1", None)]
    assert published(restarted, at=TUESDAY) == []


def test_equal_reports_give_equal_bytes_whatever_their_order() -> None:
    one = PublishedFindings("prod", []).diff([finding("f1"), finding("f2")], {"pods": 7, "nodes": 3}, MONDAY, 0.0)
    other = PublishedFindings("prod", []).diff([finding("f2"), finding("f1")], {"nodes": 3, "pods": 7}, MONDAY, 0.0)
    assert one.records == other.records
    assert one.records[0].value == (
        b'{"firstSeen":"2026-01-05T08:00:00.000Z","id":"f1","message":"message","peers":["shop/db-1"],"pod":"shop/db-0",'
        b'"reason":"reason","rule":"PhysicalHost","severity":"physical","site":"prod","snapshot":{"nodes":3,"pods":7},'
        b'"state":"opened","updatedAt":"2026-01-05T08:00:00.000Z"}'
    )


def test_a_finding_of_more_pods_than_a_record_holds_says_how_many_there_are() -> None:
    peers = tuple(f"shop/{'long-name-' * 20}{number:05d}" for number in range(10_000))
    findings = PublishedFindings("prod", [])
    [record] = published(findings, finding("f1", peers=peers), at=MONDAY)
    event = msgspec.json.decode(record.value or b"", type=FindingEvent)
    assert len(record.value or b"") < LARGEST
    assert event.peers == list(peers[: len(event.peers)])
    assert PEERS_BYTES - 300 < sum(len(peer) + 3 for peer in event.peers) <= PEERS_BYTES
    assert (event.pods, event.message) == (10_001, f"message ({10_000 - len(event.peers)} more are not named)")
    assert published(findings, finding("f1", peers=peers), at=TUESDAY) == [], "what was cut is compared as cut"


def test_a_text_that_no_person_reads_to_its_end_is_cut_with_its_length() -> None:
    long = msgspec.structs.replace(finding("f1"), message="é" * 500_000)
    [record] = published(PublishedFindings("prod", []), long, at=MONDAY)
    message = msgspec.json.decode(record.value or b"", type=FindingEvent).message
    assert (message[:2], message[-22:]) == ("éé", "é… (500,000 characters)"[-22:])
    assert len(record.value or b"") < LARGEST


def test_a_finding_that_stands_is_not_put_in_words_again(monkeypatch: pytest.MonkeyPatch) -> None:
    findings, fitting = PublishedFindings("prod", []), list[str]()
    one, other = finding("f1"), finding("f2")
    published(findings, one, at=MONDAY)
    monkeypatch.setattr(open_findings, "fitted", lambda each: fitting.append(each.id) or fitted(each))
    assert told(published(findings, one, other, at=TUESDAY)) == [("prod/f2", "opened", TUESDAY, TUESDAY)]
    assert fitting == ["f2"]


def test_a_finding_whose_record_was_not_published_is_told_again() -> None:
    findings, one = PublishedFindings("prod", []), finding("f1")
    findings.diff([one], {"pods": 7}, MONDAY, 0.0)
    assert told(published(findings, one, at=TUESDAY)) == [("prod/f1", "opened", TUESDAY, TUESDAY)]


def test_a_finding_that_changes_all_the_time_is_updated_once_in_a_second() -> None:
    findings = PublishedFindings("prod", [])
    published(findings, finding("f1", peers=()), at=MONDAY)
    seen: list[tuple[float, str, float | None]] = []
    for step in range(12):
        number, seconds = min(step, 9), step * 0.25  # it changes nine times, and then no more
        change = findings.diff([finding("f1", peers=(f"p{number}",))], {"pods": 7}, TUESDAY, seconds)
        findings.commit(change)
        seen += [(seconds, event.peers[0], findings.due) for event in map(event_of, change.records)]
    assert seen == [(0.0, "p0", None), (1.0, "p4", None), (2.0, "p8", None)]
    assert findings.due == 3.0
    [last] = map(event_of, published(findings, finding("f1", peers=("p9",)), at=TUESDAY, monotonic=3.0))
    assert (last.peers, findings.due) == (["p9"], None)


def test_a_finding_ends_at_once_though_an_update_of_it_waits() -> None:
    findings = PublishedFindings("prod", [])
    for peer in ("a", "b", "c"):
        published(findings, finding("f1", peers=(peer,)), at=MONDAY)
    assert told(published(findings, at=TUESDAY, monotonic=0.1)) == [
        ("prod/f1", "resolved", MONDAY, TUESDAY),
        ("prod/f1", None),
    ]
    assert findings.due is None
