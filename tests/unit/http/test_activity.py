"""What is remembered of each object: one line a record, bounded, in the words of a person."""

import pytest
from support.published import a_finding, records

from underhost.agents.http import activity as activity_module
from underhost.agents.http.activity import ActivityLog, ActivityLogs
from underhost.schemas.page import HistoryEntry
from underhost.schemas.records import Action, NodeHost, Outcome, Placement
from underhost.schemas.topics import ACTIONS, NODE_HOSTS, OUTCOMES, PLACEMENTS, VIOLATIONS, Topic

POD, NODE = "prod/pod/shop/db-0", "prod/node//n1"


def on_host(host: str) -> tuple[Topic, str, object]:
    return NODE_HOSTS, NODE, NodeHost("n1", "vm-1", f"id-{host}", host, "name", "")


STORY = (
    on_host("esx-1"),
    (PLACEMENTS, POD, Placement("shop/db-0", "u", None, None, 0, {"too full": 2}, {"pods": 1})),
    (PLACEMENTS, POD, Placement("shop/db-0", "u", "n1", 512, 1, {}, {"pods": 2})),
    (ACTIONS, NODE, Action("a", "label", "node/n1", {}, "node n1 runs on host esx-1", {})),
    (OUTCOMES, POD, Outcome("b", "bind", "pod/shop/db-0", "applied", "bound to n1")),
    (OUTCOMES, NODE, Outcome("a", "label", "node/n1", "dry-run", "would set host=esx-1")),
    (OUTCOMES, NODE, Outcome("a", "label", "node/n1", "noop", "is as it should be")),
    on_host("esx-2"),
    (VIOLATIONS, "prod/f1", a_finding("f1", "shop/db-0", "shop/db-1")),
    (VIOLATIONS, "prod/f1", a_finding("f1", "shop/db-0", "shop/db-1", state="updated")),
    (VIOLATIONS, "prod/f1", a_finding("f1", "shop/db-0", "shop/db-1", state="resolved")),
)


def told(entries: list[HistoryEntry]) -> list[tuple[str, str, str]]:
    """(subject, tone, text), oldest first."""
    return [(entry.subject, entry.tone, entry.text) for entry in reversed(entries)]


def after(*written: tuple[Topic, str, object]) -> ActivityLog:
    activity_log = ActivityLog()
    for record in records(*written):
        activity_log.apply(record)
    return activity_log


def test_a_sites_list_has_what_happened_and_nothing_that_only_prepares_or_repeats() -> None:
    assert told(after(*STORY).latest()) == [
        ("pod/shop/db-0", "bad", "shop/db-0 waits: no node takes it (2 × too full)"),
        ("pod/shop/db-0", "", "shop/db-0 is to run on n1 (score 512, shares its host with 1)"),
        ("pod/shop/db-0", "good", "Pod shop/db-0: bound to n1"),
        ("node/n1", "", "Node n1: would set host=esx-1 (dry-run)"),
        ("node/n1", "", "n1 moved from esx-1 to esx-2"),
        ("finding/f1", "bad", "Finding opened (physical): f1 is wrong"),
        ("finding/f1", "good", "Finding resolved (physical): f1 is wrong"),
    ]


def test_a_pod_has_its_own_decisions_outcomes_and_findings_and_its_nodes_if_asked() -> None:
    activity_log = after(*STORY)
    peer = activity_log.of("pod/shop/db-1")
    assert [text for _, _, text in told(peer)] == [
        "Finding opened (physical): f1 is wrong",
        "Finding updated (physical): f1 is wrong",
        "Finding resolved (physical): f1 is wrong",
    ]
    both = activity_log.of("pod/shop/db-0", "node/n1")
    assert [entry.at for entry in both] == sorted((entry.at for entry in both), reverse=True)
    assert "Ordered: node n1 runs on host esx-1" in [entry.text for entry in both]
    assert [entry.snapshot for entry in both if entry.text.startswith("shop/db-0 is to run")] == [{"pods": 2}]


def test_of_a_finding_over_many_pods_the_first_ones_hear_of_updates() -> None:
    pods = [f"shop/db-{number:02}" for number in range(30)]
    activity_log = after(
        *((VIOLATIONS, "prod/f1", a_finding("f1", *pods, state=state)) for state in ("opened", "updated", "resolved"))
    )
    assert [text.split()[1] for _, _, text in told(activity_log.of("pod/shop/db-19"))] == [
        "opened",
        "updated",
        "resolved",
    ]
    assert [text.split()[1] for _, _, text in told(activity_log.of("pod/shop/db-20"))] == ["opened", "resolved"]
    assert [entry.pods for entry in activity_log.of("finding/f1")] == [pods[:20]] * 3


def test_a_pods_history_has_the_moves_of_its_node_but_not_its_labels() -> None:
    texts = [entry.text for entry in after(*STORY).of_pod("shop/db-0", "n1")]
    assert "n1 moved from esx-1 to esx-2" in texts and "Pod shop/db-0: bound to n1" in texts
    assert not [text for text in texts if "host=esx-1" in text or text.startswith("Ordered: node")]


def test_an_event_is_in_its_objects_history_and_in_the_sites_list_only_if_not_told() -> None:
    pod, node = "event/pod/shop/db-0/HostShared", "event/node//n1/HostShared"
    activity_log = after(
        (OUTCOMES, POD, Outcome("e1", "event", pod, "applied", "told HostShared")),
        (OUTCOMES, POD, Outcome("e2", "event", node, "applied", "told HostShared")),
        (OUTCOMES, POD, Outcome("e3", "event", pod, "refused", "no right to create events")),
    )
    refused = (pod, "", "Event HostShared on shop/db-0: no right to create events (refused)")
    assert told(activity_log.latest()) == [refused]
    assert told(activity_log.of_pod("shop/db-0", "n1")) == [(pod, "", "Event HostShared on shop/db-0"), refused]
    assert told(activity_log.of("node/n1")) == [(node, "", "Event HostShared on n1")]


def test_what_was_not_heard_of_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    activity_log = ActivityLog()
    monkeypatch.setattr(activity_module, "MOST", 2)
    for record in records(*((OUTCOMES, "k", Outcome("i", "bind", f"pod/shop/{n}", "failed", "")) for n in "abc")):
        activity_log.apply(record)
    assert [bool(activity_log.of(f"pod/shop/{n}")) for n in "abc"] == [False, True, True]


def test_an_event_of_a_pod_takes_no_other_pods_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_module, "MOST", 2)
    activity_log = after(
        *((OUTCOMES, "k", Outcome("e", "event", f"event/pod/shop/{name}/Scheduled", "applied", "")) for name in "ab")
    )
    assert [bool(activity_log.of(f"pod/shop/{name}")) for name in "ab"] == [True, True]


def test_a_record_that_is_read_again_or_is_none_of_ours_changes_nothing() -> None:
    new: list[tuple[str, str]] = []
    chronicles = ActivityLogs(lambda site, entry: new.append((site, entry.text)))
    written = list(records(STORY[2]))
    for record in [*written, *written]:
        chronicles.apply(record)
    chronicles.apply(written[0]._replace(offset=9, value=b"{garbled"))
    chronicles.apply(written[0]._replace(offset=10, value=None))
    assert new == [("prod", "shop/db-0 is to run on n1 (score 512, shares its host with 1)")]
    assert chronicles.of("other").latest() == []


def test_nothing_is_kept_of_a_question_about_a_site_that_nobody_knows() -> None:
    logs = ActivityLogs(lambda site, entry: None)
    assert [logs.of(f"unknown-{number}").latest() for number in range(3)] == [[], [], []]
    assert logs._sites == {}


def test_the_host_of_a_node_that_is_gone_is_forgotten() -> None:
    before, gone, again = records(on_host("esx-1"), on_host("esx-1"), on_host("esx-2"))
    activity_log = ActivityLog()
    for record in (before, gone._replace(value=None), again):
        activity_log.apply(record)
    assert activity_log.latest() == [], "a node of the name that came anew has not moved"


def test_all_subjects_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_module, "TOGETHER", 3)
    activity_log = ActivityLog()
    for number in range(5):
        row = Placement(f"shop/db-{number}", "u", "n1", 1, 0, {}, {})
        for record in records((PLACEMENTS, f"prod/pod/shop/db-{number}", row)):
            activity_log.apply(record)
    assert [len(activity_log.of(f"pod/shop/db-{number}")) for number in range(5)] == [0, 0, 1, 1, 1]
