"""CloudEvents attributes as Kafka headers (binary mode): type, source and time beside the record's value.

In: topic, site and event id. Out: headers for any producer.
"""

from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote

from underhost.schemas.topics import Topic

JSON = b"application/json"
BYTES = b"application/octet-stream"
TERM = "ce_term"
"""The term of the publisher's lease, a decimal integer; absent where there is no lease."""


def cloud_event(topic: Topic, site: str, event_id: str, time: bytes) -> list[tuple[str, bytes]]:
    """The headers of one record, in a fixed order; `time` by `event_time`.

    A topic of raw bytes (dead letters) says so in its content type.
    """
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_source", _source(site)),
        ("ce_type", _type(topic.event_type)),
        ("ce_time", time),
        ("content-type", JSON if topic.record is not None else BYTES),
    ]


def event_time(moment: datetime) -> bytes:
    """A moment, aware of its time zone, in UTC to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


@lru_cache(maxsize=4096)
def _source(site: str) -> bytes:
    return f"/sites/{quote(site, safe='')}".encode()


@lru_cache
def _type(event_type: str) -> bytes:
    return event_type.encode()
