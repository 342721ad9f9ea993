"""A long list that comes as one answer, read as pages: its text is in memory a few megabytes at a time.

In: the text, block by block. Out: pages, each a list with some of the items and the metadata of all. Where a page ends
is a guess (`streams/last_places.py`), right where the page can be read, since all before it could be, too; else it goes
on.
"""

from collections.abc import Callable

from underhost.streams.last_places import last_places

PAGE, LONGEST = 1 << 21, 1 << 26
"""Bytes of a page, at least and at most."""
_ITEMS, _BETWEEN = b',"items":[', b'},{"metadata":'
"""As the API server writes. No string can hold either: its quotes would be escaped."""


class LongAnswer:
    """One answer. `read` is given each page, and returns False for what is no list; it takes nothing of that."""

    def __init__(self, read: Callable[[bytes], bool]) -> None:
        self._read, self._head = read, b""
        self._blocks, self._size, self._least = list[bytes](), 0, PAGE

    def feed(self, block: bytes) -> bool:
        """The next block; False where no page has ended for so long that none will."""
        self._blocks.append(block)
        self._size += len(block)
        if self._size >= self._least:
            self._take(b"".join(self._blocks))
        return self._least <= LONGEST

    def end(self) -> bool:
        """There is no more; whether all of it could be read."""
        return self._read(b"".join((self._head, *self._blocks)))

    def _take(self, text: bytes) -> None:
        if not self._head and _ITEMS in text:
            head, items, text = text.partition(_ITEMS)
            self._head = head + items
        ends = [at + 1 for at in last_places(text, _BETWEEN)] if self._head else []
        end = next((end for end in ends if self._read(b"".join((self._head, memoryview(text)[:end], b"]}")))), 0)
        if end:
            text, self._least = text[end + 1 :], PAGE
        else:
            self._least *= 2
        self._blocks, self._size = [text], len(text)
