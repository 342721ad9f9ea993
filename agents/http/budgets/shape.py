"""How large the JSON of a body is, told before anything is made of it: a small text can be a very large document.

In: the bytes of a body. Out: nothing, or why it is refused. Strings are cut out, so that braces and commas in an
annotation do not count. Malformed JSON is left to the parser, which stops at the first fault.
"""

from typing import NamedTuple

from underhost.schemas.errors import InputError

_OPEN, _BRACKETS = ord("["), b"[]{}"
_ALIKE = bytes.maketrans(b"{}", b"[]")
_ALL_ELSE = bytes(byte for byte in range(256) if byte not in _BRACKETS)

PIECE = 1 << 20
"""Bytes of a large text that are looked at together: a millisecond."""

Text = bytes | bytearray


class Bounds(NamedTuple):
    """What a document may have: levels of lists and objects, and values (members and items) in all."""

    depth: int
    values: int


def check(body: Text, bounds: Bounds) -> None:
    """Raises InputError for a document that nests deeper, or has more values."""
    outside = _outside_strings(body)
    if _values(outside) > bounds.values:
        raise InputError(f"the body has more than {bounds.values} values")
    left = brackets = outside.translate(_ALIKE, _ALL_ELSE)
    for _ in range(bounds.depth):
        left = left.replace(b"[]", b"")  # takes the innermost level away
    if left and _depth(brackets) > bounds.depth:
        raise InputError(f"the body nests deeper than {bounds.depth} levels")


def has_more_values(text: Text | memoryview, values: int) -> bool:
    """Whether there are more than so many; for large texts: piece by piece, so that other threads need not wait for
    the whole, and what is in strings counts, too."""
    found = 0
    with memoryview(text) as whole:
        for begin in range(0, len(whole), PIECE):
            found += _values(bytes(whole[begin : begin + PIECE]))
            if found > values:
                return True
    return False


def _values(outside: Text) -> int:
    """Every value but the first of a list or object follows a comma."""
    return outside.count(b",") + outside.count(b"{") + outside.count(b"[")


def _outside_strings(body: Text) -> bytes:
    """The text without its strings. An escaped quote ends none, and a backslash that is escaped escapes nothing."""
    plain = bytes(body)
    if b"\\" in plain:
        plain = plain.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])


def _depth(brackets: bytes) -> int:
    """The deepest level."""
    depth = deepest = 0
    for byte in brackets:
        depth += 1 if byte == _OPEN else -1
        deepest = max(deepest, depth)
    return deepest
