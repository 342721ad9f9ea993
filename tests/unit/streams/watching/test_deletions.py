"""Which deletions are believed at once."""

from underhost.streams.watching.changes import Seen
from underhost.streams.watching.deletions import Deletions
from underhost.streams.watching.doubts import Doubts


def test_many_deletions_over_a_long_time_are_believed() -> None:
    now = [0.0]
    doubts = Doubts()
    deletions = Deletions("nodes", doubts, lambda: now[0])
    held = {f"n{number}" for number in range(10)}
    for number in range(9):
        now[0] += 61.0
        change = Seen(f"n{number}", "", None)
        assert deletions.believed([change], held) == [change]
        held.remove(change.key)
    assert not doubts
    assert deletions.believed([Seen("n9", "", None)], held) == []  # the last one
