"""Objects as records of the topics."""

from underhost.schemas.topics import DEAD_LETTERS, PODS
from underhost.streams.ports import Outgoing
from underhost.streams.watching.records import LARGEST, deliverable


def test_a_record_that_no_broker_takes_becomes_a_dead_letter() -> None:
    big = Outgoing(PODS, "s/pod/shop/big", b"x" * (LARGEST + 1), "u/1")
    letter = deliverable(big)
    assert (letter.topic, letter.key, len(letter.original or b"")) == (DEAD_LETTERS, "s/pod/shop/big", LARGEST)
    assert letter.headers["error"] == f"{LARGEST + 1} bytes are more than a record holds; the value is cut".encode()
    small = Outgoing(PODS, "s/pod/shop/small", b"x" * LARGEST, "u/1")
    assert deliverable(small) is small
