"""What a topic holds compared with what a watcher knows."""

import pytest

from underhost.schemas.kubernetes import Metadata, Pod, encode
from underhost.streams.watching.audit import UNREADABLE, differing
from underhost.streams.watching.changes import Seen
from underhost.streams.watching.reflector import Held, held_of

DB = "site/pod/shop/db-0"


def pod(version: str = "7", **labels: str) -> Pod:
    return Pod(Metadata(name="db-0", namespace="shop", uid="u", resource_version=version, labels=labels))


def known(one: Pod) -> Held:
    return held_of(Seen(DB, "u", one))


@pytest.mark.parametrize(
    ("rows", "held", "found"),
    [
        pytest.param({DB: encode(pod())}, {DB: known(pod())}, {}, id="the same"),
        pytest.param({DB: encode(pod("3"))}, {DB: known(pod())}, {}, id="an older version of the same"),
        pytest.param({DB: encode(pod(a="b"))}, {DB: known(pod())}, {DB: known(pod(a="b"))}, id="another state"),
        pytest.param({DB: encode(pod())}, {}, {DB: known(pod())}, id="one that is gone"),
        pytest.param({}, {DB: known(pod())}, {DB: Held("", b"")}, id="none"),
        pytest.param({DB: b""}, {DB: known(pod())}, {DB: UNREADABLE}, id="a late record"),
        pytest.param({DB: b""}, {}, {DB: UNREADABLE}, id="a late record of one that is gone"),
        pytest.param({"site/node//n1": b"{}", "?": b"{}"}, {}, {}, id="what is of another kind, or of none"),
    ],
)
def test_what_the_topic_holds_otherwise_is_told(
    rows: dict[str, bytes], held: dict[str, Held], found: dict[str, Held]
) -> None:
    assert differing(rows, held, "pod", Pod) == found


def test_what_is_no_object_equals_none_and_is_there() -> None:
    assert UNREADABLE.digest not in (b"", known(pod()).digest)
