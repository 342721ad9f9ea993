"""A text into its JSON documents: JSON as it is, several documents in one text, YAML and KYAML turned into JSON.

It knows nothing of Kubernetes; what a document means is left to `documents.py`. Every fault is a BadText with one line,
the place in the file included.
"""

import re
from collections.abc import Iterator

import msgspec

from underhost.streams.files.text import BadText

_SMALL = 1_000_000
"""Bytes of broken JSON that are tried as YAML, which is slow."""
_BYTE = re.compile(r" \(byte (\d+)\)$")
_LOGS_BEGIN, _LOGS_END = b"==== START logs for ", re.compile(rb"^==== END logs for .*$\n?", re.MULTILINE)
_SEPARATORS = re.compile(rb"[\s,]*")
_HEAD = 4096
_LARGE, _LEAST_ITEM = 1 << 20, 12
"""Where items are longer than this many bytes, the list of them takes less memory than five times the text."""
_COMMA, _PIECE = ord(","), 1 << 18
_JSON = re.compile(rb"""\{\s*(?:["}]|$)|\[\s*(?:["{\[\]0-9-]|null\b|true\b|false\b|$)""")


def looks_like_json(data: bytes) -> bool:
    """Whether the text is JSON. `{` alone does not prove it: KYAML begins so, too, but with an unquoted key."""
    return _JSON.match(head(data)) is not None


def other_documents(data: bytes, error: msgspec.DecodeError) -> Iterator[bytes | memoryview]:
    """The documents of a text that begins as JSON, where `error` says that it is not one JSON document.

    Several documents (NDJSON, `kubectl cluster-info dump`, two calls of kubectl), or YAML in braces. Raises BadText.
    """
    if trailing(error) is not None:
        return _json_documents(data)
    if len(data) > _SMALL or "truncated" in str(error):
        raise BadText(describe(error, data)) from error
    try:
        return iter(list(yaml_documents(data)))
    except BadText:
        raise BadText(describe(error, data)) from error


def _json_documents(data: bytes) -> Iterator[memoryview]:
    rest = memoryview(data)
    while len(rest := _without_logs(rest)):
        try:
            msgspec.json.decode(rest, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            end = trailing(error)
            if end is None:
                raise BadText(describe(error, data, len(data) - len(rest))) from error
            yield rest[:end]
            rest = rest[end:]
        else:
            yield rest
            return


def _without_logs(rest: memoryview) -> memoryview:
    """The text from the next object on: `kubectl cluster-info dump` writes containers' logs between its lists."""
    while True:
        begin = head(rest)
        if not begin.startswith(_LOGS_BEGIN):
            return rest if begin else rest[len(rest) :]
        end = _LOGS_END.search(rest)
        rest = rest[end.end() :] if end else rest[len(rest) :]


def head(data: bytes | memoryview | msgspec.Raw) -> bytes:
    """How the text begins, without blanks. `bytes` of a Raw would be a copy of all of it."""
    return bytes(memoryview(data)[:_HEAD]).lstrip()


def is_dense(data: bytes | memoryview | msgspec.Raw) -> bool:
    """Whether a list in a large text could have so many items that taking hold of each takes many times its size."""
    size = len(memoryview(data))
    if size <= _LARGE:
        return False
    import numpy as np  # 50 ms that small files do not need; it counts in a third of the time

    text = np.frombuffer(memoryview(data), np.uint8)
    pieces = (text[at : at + _PIECE] for at in range(0, size, _PIECE))
    return sum(int(np.count_nonzero(piece == _COMMA)) for piece in pieces) * _LEAST_ITEM > size


def items_of(array: msgspec.Raw) -> Iterator[msgspec.Raw]:
    """The items of a JSON array one after another, which is slow, and holds none of those that are not looked at."""
    rest = memoryview(array)
    rest = rest[bytes(rest[:_HEAD]).index(b"[") + 1 :]
    while bytes(rest[(at := _end(rest)) : at + 1]) != b"]":
        rest = rest[at:]
        try:
            msgspec.json.decode(rest, type=msgspec.Raw)
        except msgspec.DecodeError as error:  # always: what follows the item is its comma, or the end of the array
            end = trailing(error) or len(rest)
        yield msgspec.Raw(bytes(rest[:end]))
        rest = rest[end:]


def _end(rest: memoryview) -> int:
    found = _SEPARATORS.match(rest)
    assert found is not None  # it matches nothing, too
    return found.end()


def trailing(error: Exception) -> int | None:
    """Where the next document begins, if the error is that there is one."""
    match = _BYTE.search(str(error))  # the byte after the first one that is too many
    return int(match[1]) - 1 if match and "trailing characters" in str(error) else None


def describe(error: msgspec.DecodeError, data: bytes, offset: int = 0) -> str:
    """One line about malformed JSON, with line and column instead of a byte offset."""
    text = str(error)
    match = _BYTE.search(text)
    if match is None:
        return f"not valid JSON: {text[0].lower()}{text[1:]} (line {data.count(10) + 1})" if text else "not valid JSON"
    at = offset + int(match[1])
    line, column = data.count(10, 0, at) + 1, at - data.rfind(b"\n", 0, at)
    return f"not valid JSON: {text[: match.start()].removeprefix('JSON is malformed: ')} (line {line}, column {column})"


def yaml_documents(data: bytes) -> Iterator[bytes]:
    """Each YAML or KYAML document as JSON; empty ones are left out. Raises BadText."""
    from underhost.streams.files import yaml  # here: PyYAML takes 10 ms that JSON, which most files are, does not need

    return yaml.documents(data)
