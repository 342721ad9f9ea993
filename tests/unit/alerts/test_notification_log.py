"""What an Alertmanager is told of findings, and when."""

import msgspec
import pytest

from underhost.agents.alerts import notification_log as books
from underhost.agents.alerts.notification_log import NotificationLog
from underhost.schemas.records import FindingEvent

REPEAT = 60.0


def finding(id_: str = "f1", state: str = "opened", message: str = "m") -> FindingEvent:
    return FindingEvent(id_, state, "prod", "physical", "PhysicalHost", "r", message, "t0", "t1", {}, pod="shop/db-0")


def ended(event: FindingEvent) -> FindingEvent:
    return msgspec.structs.replace(event, state="resolved")


def tell(book: NotificationLog, now: float) -> tuple[list[str], list[str]]:
    """Tell what is due: the ids of (firing, resolved)."""
    due = book.due(now)
    book.told(due, now)
    return [event.id for event in due.firing], [event.id for event in due.resolved]


def test_a_finding_fires_in_every_message_until_it_ends():
    book = NotificationLog(REPEAT)
    assert book.observe(finding(), 0)
    assert tell(book, 0) == (["f1"], [])
    assert tell(book, 60) == (["f1"], [])
    assert book.observe(ended(finding()), 90)
    assert tell(book, 90) == ([], ["f1"])


def test_a_resolution_is_repeated_for_five_minutes_and_then_forgotten():
    book = NotificationLog(REPEAT)
    book.observe(finding(), 0)
    tell(book, 0)
    book.observe(ended(finding()), 10)
    assert [tell(book, at)[1] for at in (10, 70, 309, 310)] == [["f1"], ["f1"], ["f1"], []]
    assert not book.due(400)


def test_a_resolution_that_nobody_took_is_kept_for_as_long_as_it_takes():
    book = NotificationLog(REPEAT)
    book.observe(finding(), 0)
    tell(book, 0)
    book.observe(ended(finding()), 10)
    assert [event.id for event in book.due(5000).resolved] == ["f1"]
    assert tell(book, 5001) == ([], ["f1"])
    assert not book.due(5002)


def test_a_finding_that_came_and_went_while_nobody_answered_fires_once_and_ends():
    book = NotificationLog(REPEAT)
    book.observe(finding(), 0)
    book.observe(ended(finding()), 30)
    assert tell(book, 300) == (["f1"], [])
    assert tell(book, 359) == (["f1"], [])
    assert tell(book, 360) == ([], ["f1"])


def test_a_finding_that_opens_again_fires_again():
    book = NotificationLog(REPEAT)
    book.observe(finding(), 0)
    tell(book, 0)
    book.observe(ended(finding()), 10)
    tell(book, 10)
    assert book.observe(finding(), 20)
    assert tell(book, 20) == (["f1"], [])


@pytest.mark.parametrize(
    ("event", "new"),
    [
        pytest.param(finding(), False, id="the same record once more is nothing new"),
        pytest.param(finding(state="updated", message="other"), True, id="a changed finding is told at once"),
        pytest.param(ended(finding("f9")), False, id="the end of what was never told is not told"),
    ],
)
def test_what_is_new_after_a_finding_opened(event: FindingEvent, new: bool):
    book = NotificationLog(REPEAT)
    book.observe(finding(), 0)
    assert book.observe(event, 1) is new


def test_an_update_is_told_with_its_newest_message():
    book = NotificationLog(REPEAT)
    book.observe(finding(), 0)
    book.observe(finding(state="updated", message="other"), 1)
    assert [event.message for event in book.due(1).firing] == ["other"]


def test_the_oldest_of_too_many_untold_findings_is_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(books, "MOST", 2)
    book = NotificationLog(REPEAT)
    for id_ in ("first", "told"):
        book.observe(finding(id_), 0)
        tell(book, 0)
    book.observe(ended(finding("told")), 1)
    for id_ in ("a", "b", "c"):
        book.observe(finding(id_), 0)
        book.observe(ended(finding(id_)), 1)
    due = book.due(2)
    assert [event.id for event in due.firing] == ["b", "c", "first"]
    assert [event.id for event in due.resolved] == ["told"]
