"""On which line of a file an object begins, for tools that show findings in the file.

In: a file's path. Out: line numbers by `Kind/namespace/name` (`Kind/name`). The text is read once more, as YAML, which
JSON is, too: only who asks for lines waits for that. What cannot be read so has no lines.
"""

from pathlib import Path
from typing import Any

import yaml

from underhost.streams.files.kinds import CLUSTER_SCOPED
from underhost.streams.files.text import BadText, plain

MOST_BYTES = 8 << 20
"""Of a larger file no lines are told: it is a dump, which nobody reads line by line."""
_READ = ("kind", "name", "namespace")


def lines_of(file: str) -> dict[str, int]:
    """The first line of every object of a file, from 1 on; empty where there is no such file of text."""
    path, found = Path(file), _Finder()
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return {}
        for event in yaml.parse(plain(path.read_bytes()), yaml.CSafeLoader):
            found.take(event)
    except (OSError, BadText, yaml.YAMLError):
        return found.lines  # those before the fault
    return found.lines


class _Begun:
    """A mapping or list whose end has not come.

    Attributes:
        said: its own kind, name and namespace. named: what its metadata says. unnamed: its items that say no kind.
    """

    __slots__ = ("is_map", "key", "line", "named", "said", "unnamed")

    def __init__(self, line: int, is_map: bool) -> None:
        self.line, self.is_map = line, is_map
        self.key: str | None = None
        self.said: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.unnamed: list[tuple[int, dict[str, str]]] = []


class _Finder:
    """Events in, lines out."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self._open: list[_Begun] = []

    def take(self, event: yaml.Event) -> None:
        """The next event of the text."""
        around = self._open[-1] if self._open else None
        if isinstance(event, yaml.CollectionStartEvent):
            begin: Any = event.start_mark
            self._open.append(_Begun(begin.line + 1, isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self._open.pop()
            if self._open:
                self._ended(ended, self._open[-1])
            else:
                self._name(ended)
        elif isinstance(event, yaml.ScalarEvent) and around is not None and around.is_map:
            if around.key is None:
                around.key = event.value
                return
            if around.key in _READ:
                around.said[around.key] = event.value
            around.key = None
        elif around is not None:
            around.key = None

    def _ended(self, ended: _Begun, around: _Begun) -> None:
        """A part of another part: its metadata, its items, or an item."""
        if around.is_map:
            if around.key == "metadata":
                around.named = ended.said
            elif around.key == "items":
                around.unnamed = ended.unnamed
            around.key = None
        elif "name" in ended.named and "kind" not in ended.said:
            around.unnamed.append((ended.line, ended.named))
        self._name(ended)

    def _name(self, part: _Begun) -> None:
        kind = part.said.get("kind", "")
        if kind and "name" in part.named:
            self.lines.setdefault(_label(kind, part.named), part.line)
        if kind.endswith("List"):
            for line, named in part.unnamed:
                self.lines.setdefault(_label(kind.removesuffix("List"), named), line)


def _label(kind: str, named: dict[str, str]) -> str:
    space = "" if kind in CLUSTER_SCOPED else f"{named.get('namespace') or 'default'}/"
    return f"{kind}/{space}{named['name']}"
