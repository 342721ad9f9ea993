"""A long JSON list, read in pieces: its text need not be in memory, and is gone over only once.

In: a file. Out: the list's kind, and its items as JSON arrays of some hundred each. Where an array ends is a guess: at
one of the last places in a block of the file that look as the one between the first two items does. It is right if the
array can be decoded, since all before it could be, too; else the array goes on in the next block. What cannot be read
so to the end of the list is left to who reads texts whole, and so is everything that is no list of objects.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import msgspec
from msgspec import Raw, Struct

from underhost.streams.files.split import trailing
from underhost.streams.last_places import last_places

LONG = 64 << 20
"""Bytes from which a list is read in pieces."""
BLOCK = 1 << 18
"""Bytes that are read at once: few enough to be still in the processor's cache when they are decoded."""
_HEAD, _TAIL = 2 << 20, 4096
_MOST_BLOCKS = 8
"""Of one array: where no place between two items is found for so long, they look otherwise than the first two."""
_ITEMS = re.compile(rb'"items"\s*:\s*\[\s*')
_NEXT = re.compile(rb',\s*\{\s*"[^"\\]*"')
_COMMA = re.compile(rb"\s*,\s*")
_BLANK = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


class _Around(Struct, rename="camel"):
    """A list without its items."""

    items: list[Raw]
    kind: str = ""
    api_version: str = ""


_around = msgspec.json.Decoder(_Around)
_first = msgspec.json.Decoder(Raw)


@dataclass
class LongList:
    """A list that is read in pieces.

    Attributes:
        kind, api_version: of the list. begin, end: where its items stand in the file.
        between: how the text looks between two of them, from the `}` of the one to the first key of the other.
        at: up to where the items have been taken.
    """

    file: BinaryIO
    kind: str
    api_version: str
    begin: int
    end: int
    between: bytes
    at: int = 0

    def hand_on(self, take: Callable[[bytes], bool]) -> bool:
        """Give `take` one array after another; it returns False for a text that is no array, and took nothing of it.

        Returns whether the end of the list was reached.
        """
        self.at = self.begin
        text, blocks = b"", 0
        for block in self._blocks():
            text, blocks = text + block, blocks + 1
            last = self.at + len(text) == self.end
            arrays = ((end, b"".join((b"[", memoryview(text)[:end], b"]"))) for end in self._ends(text, last))
            taken = next((end for end, array in arrays if take(array)), 0)
            if taken:
                comma = _COMMA.match(text, taken)
                used = comma.end() if comma else taken
                self.at += used
                text, blocks = text[used:], 0
            elif last or blocks == _MOST_BLOCKS:
                return False
        return self.at == self.end

    def rest(self) -> bytes:
        """The text of the file, with blanks for what has been taken, so that what is left keeps its line and column."""
        self.file.seek(0)
        text = BytesIO()
        text.write(self.file.read(self.begin))
        while text.tell() < self.at and (block := self.file.read(min(BLOCK, self.at - text.tell()))):
            text.write(block.translate(_BLANK))
        text.write(self.file.read())
        return text.getvalue()

    def _ends(self, text: bytes, last: bool) -> Iterator[int]:
        """Where an item may end: nested objects can look as items do."""
        return iter((len(text),)) if last else (at + 1 for at in last_places(text, self.between))

    def _blocks(self) -> Iterator[bytes]:
        at = self.file.seek(self.begin)
        while at < self.end and (block := self.file.read(min(BLOCK, self.end - at))):
            at += len(block)
            yield block


def list_in(file: BinaryIO, size: int) -> LongList | None:
    """The list in a file of so many bytes; None where it does not look as one of objects, of which it says the kind."""
    file.seek(0)
    head = file.read(_HEAD)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    opened = _ITEMS.search(head)
    before = _decoded(head[: opened.end()] + b"]}") if opened else None
    if opened is None or before is None or before.items:
        return None
    between = _between(head, opened.end())
    for closing in last_places(tail, b"]"):
        after = _decoded(b'{"items":[' + tail[closing:])
        if after is not None:
            kind, api_version = before.kind or after.kind, before.api_version or after.api_version
            end = size - len(tail) + closing
            return LongList(file, kind, api_version, opened.end(), end, between) if kind and between else None
    return None


def _between(head: bytes, begin: int) -> bytes:
    """How the text between the first two items looks, where they are objects; else nothing."""
    try:
        _first.decode(memoryview(head)[begin:])
    except (msgspec.DecodeError, RecursionError) as error:
        comma = trailing(error)
        following = None if comma is None else _NEXT.match(head, begin + comma)
        if following is not None and (end := head[: following.start()].rstrip()).endswith(b"}"):
            return head[len(end) - 1 : following.end()]
    return b""


def _decoded(text: bytes) -> _Around | None:
    try:
        return _around.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
