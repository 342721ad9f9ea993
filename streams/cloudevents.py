"""CloudEvents attributes as Kafka headers (binary mode): what, whose and when, beside the record's value.

In: topic, site and event id. Out: headers for any producer. Used by `publish.py`; tombstones carry them, too.
"""

from datetime import UTC, datetime
from urllib.parse import quote

from underhost.schemas.topics import Topic

JSON = b"application/json"
BYTES = b"application/octet-stream"


def cloud_event(topic: Topic, site: str, event_id: str, now: datetime | None = None) -> list[tuple[str, bytes]]:
    """The headers of one record, in a fixed order. `now` is for tests; it must be aware of its time zone.

    A topic of raw bytes (dead letters) says so in its content type.
    """
    time = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_source", f"/sites/{quote(site, safe='')}".encode()),
        ("ce_type", topic.event_type.encode()),
        ("ce_time", time.encode()),
        ("content-type", JSON if topic.record is not None else BYTES),
    ]
