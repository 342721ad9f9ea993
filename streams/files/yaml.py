"""YAML and KYAML as the Kubernetes tools read them, each document turned into JSON.

Dates stay text, keys may not be given twice, and nothing is nested or aliased without bounds. The parser's events are
written as JSON one by one: no tree of the document is ever held, which would take forty times its text.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from underhost.streams.files import other_inventories
from underhost.streams.files.text import BadText, OtherText

MAX_DEPTH = 200
MOST_ADDED = 8 << 20
"""Bytes of JSON, beyond twice the text's own length, that anchors of a document may make of it."""
MOST_MERGED = 100_000
"""Entries that the merge keys (<<) of a document may add."""
MOST_KEYS = 1_000_000
"""Keys of one mapping: each is remembered, as none may be given twice."""
_TEMPLATE = "a chart template ({{ … }}), not a manifest: render it first, e.g. with helm template"
_STR, _SEQ, _MAP = "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"
_MERGE, _VALUE = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"
_PRINTED = re.compile(rb"(?:NAMESPACE +)?NAME {2,}[A-Z][-A-Z]+")
_REMEMBERED = 10_000
"""Different plain scalars whose JSON is remembered: most of a dump's are among a few."""


def documents(data: bytes) -> Iterator[bytes]:
    """Each YAML or KYAML document as JSON; empty ones are left out.

    Values are what kubectl makes of them: a date stays text, `yes` is a boolean, a key given twice is a fault.
    Raises BadText.
    """
    if _PRINTED.match(data):
        raise BadText("the table that kubectl get prints, without the objects: use `kubectl get … -o json`")
    if other := other_inventories.of_text(data):
        raise OtherText(other)
    try:
        writer = _JsonWriter(len(data))
        for event in yaml.parse(data, yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentEndEvent):
                document = writer.document()
                if document != b"null":
                    yield document
            else:
                writer.take(event)
    except yaml.MarkedYAMLError as error:
        raise _fault_of_yaml(error, data) from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise BadText("not valid YAML: " + " ".join(str(error).split())) from error
    except (LookupError, AttributeError, TypeError, ValueError, OverflowError) as error:  # PyYAML's own, for `!!int ""`
        raise BadText("not valid YAML: a value does not fit its tag") from error


def _fault_of_yaml(error: yaml.MarkedYAMLError, data: bytes) -> BadText:
    mark = error.problem_mark or error.context_mark
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    if b"{{" in data:
        return OtherText(f"{_TEMPLATE}{place}")
    return BadText(f"not valid YAML: {error.problem or error.context}{place}")


class _Open:
    """A list or mapping whose end has not come.

    Attributes:
        keys: those of a mapping so far; None for a list. begin: where its JSON begins. some: whether it has a value.
        awaits_key: whether a key comes next. merges: what its merge keys add. merge_at: where the JSON of a merge key's
            value begins, -1 while there is none.
    """

    __slots__ = ("anchor", "awaits_key", "begin", "keys", "merge_at", "merges", "some")

    def __init__(self, begin: int, anchor: str | None, keys: set[str] | None) -> None:
        self.begin, self.anchor, self.keys = begin, anchor, keys
        self.awaits_key, self.some, self.merge_at = keys is not None, False, -1
        self.merges: dict[str, msgspec.Raw] = {}


class _JsonWriter:
    """Events of a YAML text in, JSON of one document after another out."""

    def __init__(self, written: int) -> None:
        self._out = bytearray()
        self._open: list[_Open] = []
        self._anchors: dict[str, bytes | None] = {}
        self._scalars: dict[str, bytes] = {}
        self._most, self._added, self._merged = MOST_ADDED + 2 * written, 0, 0

    def document(self) -> bytes:
        """The document that has ended; what was remembered of it is forgotten."""
        made = bytes(self._out)
        self._out.clear()
        self._anchors.clear()
        self._added = self._merged = 0
        return made

    def take(self, event: yaml.Event) -> None:
        """The next event. Raises BadText, MarkedYAMLError, and what PyYAML raises for a value that its tag forbids."""
        if isinstance(event, yaml.ScalarEvent):
            if self._open and self._open[-1].awaits_key:
                self._take_key(event)
            else:
                self._value(self._scalar(event), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)

    # ---------------------------------------------------------------------------------------------------- collections
    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise BadText(f"nested deeper than {MAX_DEPTH} levels (line {_mark(event).line + 1})")
        is_map = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _MAP if is_map else _SEQ):
            raise _problem(f"could not determine a constructor for the tag {event.tag!r}", event)
        if self._open and self._open[-1].awaits_key:
            raise _problem("a key that is a list or a mapping", event)
        self._separate()
        self._open.append(_Open(len(self._out), event.anchor, set() if is_map else None))
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._out += b"{" if is_map else b"["

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        ended = self._open.pop()
        self._out += b"]" if ended.keys is None else b"}"
        if ended.merges:
            own = msgspec.json.decode(self._out[ended.begin :], type=dict[str, msgspec.Raw])
            del self._out[ended.begin :]
            self._out += msgspec.json.encode({**ended.merges, **own})
        self._ended(ended.begin, ended.anchor, event)

    def _separate(self) -> None:
        """The comma before an item of a list; before a key it is written with the key."""
        if self._open and self._open[-1].keys is None:
            if self._open[-1].some:
                self._out += b","
            self._open[-1].some = True

    # --------------------------------------------------------------------------------------------------------- values
    def _value(self, text: bytes, anchor: str | None = None) -> None:
        self._separate()
        begin = len(self._out)
        self._out += text
        self._ended(begin, anchor, None)

    def _ended(self, begin: int, anchor: str | None, event: yaml.Event | None) -> None:
        """A value is whole: it is remembered by its anchor, and merged where its key was one that merges."""
        if anchor is not None:
            self._anchors[anchor] = bytes(self._out[begin:])
            self._add(len(self._out) - begin)
        if not self._open or self._open[-1].keys is None:
            return
        around = self._open[-1]
        around.awaits_key = True
        if around.merge_at >= 0:
            self._merge(around, bytes(self._out[around.merge_at :]), event)
            del self._out[around.merge_at :]
            around.merge_at = -1

    def _take_alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise _problem(f"found undefined alias {event.anchor!r}", event)
        text = self._anchors[event.anchor]
        if text is None:
            raise BadText("an anchor that holds itself")
        self._add(len(text))
        if self._open and self._open[-1].awaits_key:
            self._key(msgspec.json.decode(text), event)
        else:
            self._value(text)

    def _add(self, size: int) -> None:
        self._added += size
        if self._added > self._most:
            raise BadText("aliases that expand to far more than the file holds")

    # ----------------------------------------------------------------------------------------------------------- keys
    def _take_key(self, event: yaml.ScalarEvent) -> None:
        if event.value == "<<" and event.implicit[0] and event.tag is None:
            self._open[-1].awaits_key, self._open[-1].merge_at = False, len(self._out)
            return
        text = self._scalar(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = text
        self._key(msgspec.json.decode(text), event)

    def _key(self, value: Any, event: yaml.Event) -> None:
        """A key as JSON has it: YAML takes a bare `on` for a boolean and `1` for a number."""
        if isinstance(value, (dict, list)):
            raise _problem("a key that is a list or a mapping", event)
        key = str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
        around = self._open[-1]
        assert around.keys is not None
        if key in around.keys:
            raise _problem(f"the key {key[:60]!r} is given twice", event)
        around.keys.add(key)
        if len(around.keys) > MOST_KEYS:
            raise _problem(f"more than {MOST_KEYS} keys in one mapping", event)
        self._out += (b"," if around.some else b"") + msgspec.json.encode(key) + b":"
        around.some, around.awaits_key = True, False

    def _merge(self, around: _Open, text: bytes, event: yaml.Event | None) -> None:
        """What a merge key adds: of several mappings the earlier ones count."""
        try:
            given = [text] if text.startswith(b"{") else msgspec.json.decode(text, type=list[msgspec.Raw])
            found = [msgspec.json.decode(one, type=dict[str, msgspec.Raw]) for one in given]
        except msgspec.ValidationError:
            problem = "a mapping or a list of mappings is expected for merging"
            raise yaml.constructor.ConstructorError(None, None, problem, _mark(event)) from None
        self._merged += sum(map(len, found))
        if self._merged > MOST_MERGED:
            problem = f"merge keys (<<) that add more than {MOST_MERGED} entries"
            raise yaml.constructor.ConstructorError(None, None, problem, _mark(event))
        for one in reversed(found):
            around.merges |= {key: value.copy() for key, value in one.items()}

    # -------------------------------------------------------------------------------------------------------- scalars
    def _scalar(self, event: yaml.ScalarEvent) -> bytes:
        """The JSON of a scalar."""
        if event.tag not in (None, "!"):
            return _tagged(event.tag, event)
        if not event.implicit[0]:
            return msgspec.json.encode(event.value)
        text = self._scalars.get(event.value)
        if text is None:
            text = _plain(event)
            if len(self._scalars) < _REMEMBERED and len(event.value) < MAX_DEPTH:
                self._scalars[event.value] = text
        return text


def _plain(event: yaml.ScalarEvent) -> bytes:
    for tag, form in _RESOLVERS.get(event.value[:1], ()):
        if form.match(event.value):
            return _tagged(tag, event)
    return msgspec.json.encode(event.value)


def _tagged(tag: str, event: yaml.ScalarEvent) -> bytes:
    """A scalar as its tag means it, as PyYAML has it."""
    if tag in (_STR, _MERGE):
        return msgspec.json.encode(event.value)
    make = yaml.SafeLoader.yaml_constructors.get(tag)
    if make is None or tag in (_SEQ, _MAP):
        raise _problem(f"could not determine a constructor for the tag {tag!r}", event)
    node = yaml.ScalarNode(tag, event.value, _mark(event))
    return msgspec.json.encode(make(yaml.constructor.SafeConstructor(), node))


def _problem(problem: str, event: yaml.Event) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, _mark(event))


def _mark(event: yaml.Event | None) -> Any:
    """Where it begins: the C parser's own mark, which every event has."""
    return None if event is None else event.start_mark


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """The scalars that are not text: PyYAML's own without dates and `=`, and numbers in base ten, two, eight, 16."""
    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    replaced = (_VALUE, "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items():
        resolvers[first] = [pair for pair in pairs if pair[0] not in replaced]
    integer = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+)$")
    number = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?$|[-+]?[0-9]+[eE][-+]?[0-9]+$")
    for first in "-+0123456789.":
        resolvers.setdefault(first, []).extend(
            [("tag:yaml.org,2002:int", integer), ("tag:yaml.org,2002:float", number)]
        )
    return resolvers


_RESOLVERS = _resolvers()
