"""Reading files: dumps, manifests and inventories in, typed objects out.

Reads JSON, YAML and KYAML, lists of every kind, several documents in a file, gzip, directories and stdin. What cannot
be used is refused or noted, never skipped silently. Expanding manifests into pods, and joining nodes to hosts, is left
to the agents.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from underhost.schemas.errors import BadObjectError, InputError
from underhost.schemas.vsphere import Inventory
from underhost.streams.files import split
from underhost.streams.files.collect import Collected
from underhost.streams.files.documents import FOREIGN, INVENTORY, read_document
from underhost.streams.files.inventory import read_inventory
from underhost.streams.files.objects import Objects
from underhost.streams.files.text import OF_WORKERS, BadText, plain

SUFFIXES = (".json", ".yaml", ".yml", ".kyaml", ".jsonl", ".ndjson")
STDIN = "-"
MOST_FAULTS, MOST_SHOWN = 50, 3
NO_OBJECT = "not a Kubernetes object (a chart's values, a patch, or another format?)"


def load_files(
    paths: Sequence[str | Path],
    *,
    inventory: str | Path | None = None,
    stdin: BinaryIO | None = None,
    compact: bool = False,
) -> Objects:
    """Read files, directories (recursively: names that end in a suffix of JSON or YAML, also with .gz) and stdin (`-`).

    `compact` takes the blanks out of the parts that stay raw JSON, for records that travel.

    Raises InputError with every fault found: one line each that names file, object and field.
    """
    reading = InputReader(stdin, compact=compact)
    for path in paths:
        reading.read(path)
    if inventory is not None:
        reading.read_inventory_file(inventory)
    return reading.result()


class InputReader:
    """Reads an input of several parts: files, and texts from elsewhere. For files alone there is `load_files`."""

    def __init__(self, stdin: BinaryIO | None = None, *, compact: bool = False) -> None:
        self._stdin, self._compact = stdin, compact
        self._stdin_read = False
        self._into = Collected()
        self._inventory: tuple[Inventory, str] | None = None
        self._faults: list[str] = []
        self._notes: list[str] = []
        self._foreign: list[str] = []

    def read(self, path: str | Path) -> None:
        """Read one argument of the command line: a file, a directory or stdin."""
        if str(path) == STDIN or not Path(path).is_dir():
            self._read_file(path, strict=True)
            return
        files = list(_files_of(Path(path)))
        if not files:
            self._faults.append(f"{path}: no file in it whose name ends in {', '.join(SUFFIXES)}")
        for file in files:
            self._read_file(file, strict=False)

    def read_inventory_file(self, path: str | Path) -> None:
        """Read the argument of `--inventory`; it takes precedence over an inventory among the files."""
        file = _shown(path)
        data = self._bytes(path)
        if data is None:
            return
        if self._each(data, file, lambda document: self._keep_inventory(bytes(document), file)) == 0:
            self._faults.append(f"{file}: is empty")

    def result(self) -> Objects:
        """Everything that was read. Raises InputError with every fault."""
        if self._faults:
            more = len(self._faults) - MOST_FAULTS
            raise InputError(*self._faults[:MOST_FAULTS], *([f"… and {more} more faults"] if more > 0 else []))
        into = self._into
        if self._foreign:
            self._notes.append(f"ignored, {NO_OBJECT}: {', '.join(_some(self._foreign, 'files'))}")
        inventory = self._inventory[0] if self._inventory else None
        notes = tuple(self._notes + _notes_of(into))
        return replace(into.objects, inventory=inventory, notes=notes, first_file=into.first_file)

    def read_text(self, data: bytes, place: str) -> None:
        """Read a text; messages name `place`, its origin, instead of a file."""
        try:
            self._read_plain(plain(data, OF_WORKERS), place, strict=True)
        except BadText as error:
            self._faults.append(f"{place}: {error}")

    def read_json(self, data: bytes, place: str) -> None:
        """Read one JSON document, which is nothing else: no YAML, no several documents, no gzip."""
        try:
            self._read_document(data, place, strict=True)
        except (BadText, msgspec.DecodeError, RecursionError) as error:
            self._faults.append(f"{place}: {_text_of(error, data)}")

    def note(self, line: str) -> None:
        """Add a line to the notes."""
        self._notes.append(line)

    def use_inventory(self, inventory: Inventory) -> None:
        """Take an inventory that has been read already."""
        self._inventory = inventory, ""

    def _read_file(self, path: str | Path, strict: bool) -> None:
        data = self._bytes(path)
        if data is not None:
            self._read_plain(data, _shown(path), strict)

    def _read_plain(self, data: bytes, file: str, strict: bool) -> None:
        """Read one text. In a directory (not strict) a document that is no Kubernetes object is noted, not refused."""
        self._into.first_file = self._into.first_file or file
        if self._each(data, file, lambda document: self._read_document(document, file, strict)) == 0:
            (self._faults if strict else self._notes).append(f"{file}: is empty")

    def _each(self, data: bytes, file: str, handle: Callable[[bytes | memoryview], None]) -> int | None:
        """Handle the file's documents as JSON; returns how many there are, None after a fault that ends the reading."""
        count = 0
        try:
            if split.looks_like_json(data):
                try:
                    handle(data)
                    return 1
                except msgspec.DecodeError as error:
                    documents = split.other_documents(data, error)
            else:
                documents = split.yaml_documents(data)
            for document in documents:
                handle(document)
                count += 1
        except (BadText, msgspec.DecodeError, RecursionError) as error:
            self._faults.append(f"{file}: {_text_of(error, data)}")
            return None
        return count

    def _read_document(self, document: bytes | memoryview, file: str, strict: bool) -> None:
        if self._compact:
            document = msgspec.json.format(bytes(document), indent=-1)
        kind, faults = read_document(document, file, self._into)
        self._faults.extend(str(fault) for fault in faults)
        if kind == INVENTORY:
            self._keep_inventory(bytes(document), file)
        elif kind == FOREIGN:
            if strict:
                self._faults.append(f"{file}: has no kind: {NO_OBJECT}")
            else:
                self._foreign.append(file)

    def _keep_inventory(self, document: bytes, file: str) -> None:
        try:
            read = read_inventory(document, file)
        except BadObjectError as error:
            self._faults.append(str(error))
            return
        if self._inventory is not None:
            self._notes.append(f"two inventories: {self._inventory[1]}, then {file}; the last one counts")
        self._inventory = read, file

    def _bytes(self, path: str | Path) -> bytes | None:
        """The file's text, or None and a fault."""
        file = _shown(path)
        try:
            if str(path) != STDIN:
                return plain(Path(path).read_bytes())
            if self._stdin_read:
                raise BadText("is given twice")
            self._stdin_read = True
            return plain((self._stdin or sys.stdin.buffer).read())
        except OSError as error:
            self._faults.append(f"{file}: {error.strerror or error}")
        except BadText as error:
            self._faults.append(f"{file}: {error}")
        return None


def _files_of(directory: Path) -> Iterator[Path]:
    """The files of a directory and those below it, by name; hidden ones are left out."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and name.removesuffix(".gz").endswith(SUFFIXES):
                yield Path(folder) / name


def _shown(path: str | Path) -> str:
    return "stdin" if str(path) == STDIN else str(path)


def _text_of(error: Exception, data: bytes) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return split.describe(error, data) if isinstance(error, msgspec.DecodeError) else str(error)


def _notes_of(into: Collected) -> list[str]:
    notes = [f"{line}: incomplete, not expanded into pods" for line in _some(into.incomplete, "incomplete objects")]
    if into.repeated:
        notes.append(f"given twice, the last one counts: {'; '.join(_some(into.repeated, 'objects'))}")
    if into.generated:
        named = ", ".join(_some([f"{name}0…" for name in into.generated], "names"))
        notes.append(f"only a generateName, so named by numbers: {named}")
    if into.ignored:
        notes.append(f"ignored, no rule reads them: {_counted(into.ignored)}")
    return notes


def _some(lines: list[str], what: str) -> list[str]:
    more = len(lines) - MOST_SHOWN
    return lines[:MOST_SHOWN] + ([f"{more} more {what}"] if more > 0 else [])


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind[:60]}" for kind, count in sorted(kinds.items()))
