"""The last places of a mark in a text: where an item of a JSON list may end, or the list.

In: the text and how it looks there. Out: positions, the last one first. Nested objects can look as items do, so there
are several; each is a guess, which is right where what comes before it can be read.
"""

from collections.abc import Iterator

TRIES = 8


def last_places(text: bytes, mark: bytes) -> Iterator[int]:
    """Where the mark begins, at some of its last places."""
    at = len(text)
    for _ in range(TRIES):
        if (at := text.rfind(mark, 0, at)) < 0:
            return
        yield at
