"""The CloudEvents headers of a record, binary mode."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from underhost.schemas.topics import DEAD_LETTERS, NODES, PODS
from underhost.streams.cloudevents import cloud_event, event_time

NOON = datetime(2026, 1, 2, 12, 0, 0, 5000, tzinfo=UTC)


def test_the_headers_are_those_of_the_contract_in_a_fixed_order() -> None:
    assert cloud_event(PODS, "prod-a", "uid-1/42", event_time(NOON)) == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"uid-1/42"),
        ("ce_source", b"/sites/prod-a"),
        ("ce_type", b"underhost.pods.v1"),
        ("ce_time", b"2026-01-02T12:00:00.005Z"),
        ("content-type", b"application/json"),
    ]


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(NOON.astimezone(timezone(timedelta(hours=2))), id="east"),
        pytest.param(NOON.astimezone(timezone(timedelta(hours=-9, minutes=-30))), id="west"),
    ],
)
def test_the_time_is_utc_whatever_the_zone(now: datetime) -> None:
    assert dict(cloud_event(NODES, "s", "i", event_time(now)))["ce_time"] == b"2026-01-02T12:00:00.005Z"


def test_a_topic_of_raw_bytes_is_not_called_json() -> None:
    assert dict(cloud_event(DEAD_LETTERS, "s", "i", NOON))["content-type"] == b"application/octet-stream"


def test_equal_events_have_equal_headers() -> None:
    assert cloud_event(PODS, "s", "u/1", NOON) == cloud_event(PODS, "s", "u/1", NOON)


def test_a_site_that_is_no_plain_name_stays_a_uri() -> None:
    assert dict(cloud_event(PODS, "a b/ü", "i", NOON))["ce_source"] == b"/sites/a%20b%2F%C3%BC"
