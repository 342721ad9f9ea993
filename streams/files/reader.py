"""Reading files: dumps, manifests and inventories in, typed objects out.

Reads JSON, YAML and KYAML, lists of every kind, several documents in a file, gzip, folders, archives and stdin. What
cannot be used is refused or noted, never skipped silently. Expanding manifests into pods, and joining nodes to hosts,
is left to the agents.
"""

import io
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec

from underhost.schemas.errors import BadObjectError, InputError
from underhost.schemas.vsphere import Inventory
from underhost.streams.files import archives, other_inventories, pieces, split
from underhost.streams.files.collect import Collected
from underhost.streams.files.documents import (
    FOREIGN,
    INVENTORY,
    FilePlace,
    long_list,
    read_document,
    read_long_list,
)
from underhost.streams.files.inventory import WRITES, read_inventory
from underhost.streams.files.objects import Objects
from underhost.streams.files.pieces import LongList
from underhost.streams.files.places import kind_told
from underhost.streams.files.text import OF_WORKERS, BadText, OtherText, plain

SUFFIXES = (".json", ".yaml", ".yml", ".kyaml", ".jsonl", ".ndjson")
STDIN = "-"
MOST_SHOWN = 3
MOST_BYTES = 4 << 30
"""Of one file: a device, or a pipe, may never end."""
_PIECE = 1 << 20
NO_FILE = f"no file in it whose name ends in {', '.join(SUFFIXES)}"
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
        self._faults = self._into.faults
        self._notes: list[str] = []
        self._foreign: list[str] = []

    def read(self, path: str | Path) -> None:
        """Read one argument of the command line: a file, an archive, a directory or stdin."""
        if not str(path):
            self._faults.add("-f: is empty: name a file, a directory, or - for stdin")
        elif str(path) != STDIN and Path(path).is_dir():
            self._read_directory(Path(path))
        elif str(path) == STDIN or not self._read_long_file(Path(path), FilePlace(_shown(path))):
            data = self._bytes(path)
            if data is not None and archives.is_archive(data):
                self._read_archive(data, _shown(path))
            elif data is not None:
                self._read_text(data, FilePlace(_shown(path)))

    def read_inventory_file(self, path: str | Path) -> None:
        """Read the argument of `--inventory`; it takes precedence over an inventory among the files."""
        file = _shown(path)
        data = self._bytes(path)
        if data is not None and archives.is_archive(data):
            self._faults.add(f"{file}: is an archive or a workbook, not an inventory: {WRITES}")
            return
        data = None if data is None else self._plain(data, file)
        if data is None:
            return
        if self._each(data, FilePlace(file), lambda document: self._keep_inventory(bytes(document), file)) == 0:
            self._faults.add(f"{file}: is empty")

    def result(self) -> Objects:
        """Everything that was read. Raises InputError with every fault."""
        if self._faults.count:
            raise InputError(*self._faults.lines())
        into = self._into
        if self._foreign:
            self._notes.append(f"ignored, {NO_OBJECT}: {', '.join(_some(self._foreign, 'files'))}")
        if lines := into.scale():
            self._notes.append(f"replicas as autoscalers have them: {', '.join(_some(lines, 'workloads'))}")
        inventory = self._inventory[0] if self._inventory else None
        notes = tuple(self._notes + _notes_of(into))
        return replace(into.objects, inventory=inventory, notes=notes, first_file=into.first_file)

    def read_text(self, data: bytes, place: str) -> None:
        """Read a text; messages name `place`, its origin, instead of a file."""
        try:
            self._read_plain(plain(data, OF_WORKERS), FilePlace(place))
        except BadText as error:
            self._faults.add(f"{place}: {error}")

    def read_json(self, data: bytes, place: str) -> None:
        """Read one JSON document, which is nothing else: no YAML, no several documents, no gzip."""
        try:
            self._read_document(data, FilePlace(place))
        except (BadText, msgspec.DecodeError, RecursionError) as error:
            self._faults.add(f"{place}: {_text_of(error, data)}")

    def note(self, line: str) -> None:
        """Add a line to the notes."""
        self._notes.append(line)

    def use_inventory(self, inventory: Inventory) -> None:
        """Take an inventory that has been read already."""
        self._inventory = inventory, ""

    def _read_directory(self, directory: Path) -> None:
        some = False
        for file in _files_of(directory):
            some = True
            if not _is_regular(file):
                self._notes.append(f"{file}: not a regular file, left out")
                continue
            told = kind_told(PurePosixPath(file.relative_to(directory).as_posix()))
            place = FilePlace(str(file), told, lenient=True)
            if not self._read_long_file(file, place) and (data := self._bytes(file)) is not None:
                self._read_text(data, place)
        if not some:
            self._faults.add(f"{directory}: {NO_FILE}")

    def _read_archive(self, data: bytes, file: str) -> None:
        some = False
        try:
            for name, content in archives.files_of(data, _is_wanted):
                some = True
                self._read_text(content, FilePlace(f"{file}:{name}", kind_told(PurePosixPath(name)), lenient=True))
                del content  # else it would be held until the next file is read
        except BadText as error:
            self._faults.add(f"{file}: {error}")
            return
        if not some:
            self._faults.add(f"{file}: {other_inventories.of_archive(data) or NO_FILE}")

    def _read_long_file(self, path: Path, place: FilePlace) -> bool:
        """Read the file if it is a long list; returns whether it was: then nobody needs all of its text at once."""
        try:
            size = path.stat().st_size if path.is_file() else 0
            if not pieces.LONG <= size <= MOST_BYTES:
                return False
            with path.open("rb") as file:
                listed = long_list(file, size)
                if listed is None:
                    return False
                rest, place = self._rest_of(listed, place)
        except OSError as error:
            self._faults.add(f"{place.file}: {error.strerror or error}")
            return True
        text = None if rest is None else self._plain(rest, place.file)
        if text is not None:
            self._read_whole(text, place)
        return True

    def _rest_of(self, listed: LongList, place: FilePlace) -> tuple[bytes | None, FilePlace]:
        """Read a long list; the text of which something has to be read whole, None if that is nothing."""
        self._into.first_file = self._into.first_file or place.file
        before = read_long_list(listed, place, self._into, compact=self._compact)
        return (None, place) if before is None else (listed.rest(), place._replace(before=before))

    def _read_text(self, data: bytes, place: FilePlace) -> None:
        text = self._plain(data, place.file)
        if text is not None:
            self._read_plain(text, place)

    def _read_plain(self, data: bytes, place: FilePlace) -> None:
        listed = long_list(io.BytesIO(data), len(data)) if len(data) >= pieces.LONG else None
        rest, place = (data, place) if listed is None else self._rest_of(listed, place)
        if rest is not None:
            self._read_whole(rest, place)

    def _read_whole(self, data: bytes, place: FilePlace) -> None:
        """Read one text. In a directory a document that is no Kubernetes object is noted, not refused."""
        self._into.first_file = self._into.first_file or place.file
        if self._each(data, place, lambda document: self._read_document(document, place)) == 0:
            line = f"{place.file}: is empty"
            self._notes.append(line) if place.lenient else self._faults.add(line)

    def _each(self, data: bytes, place: FilePlace, handle: Callable[[bytes | memoryview], None]) -> int | None:
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
            line = f"{place.file}: {_text_of(error, data)}"
            if place.lenient and isinstance(error, OtherText):
                self._into.left_out.append(line)
            else:
                self._faults.add(line)
            return None
        return count

    def _read_document(self, document: bytes | memoryview, place: FilePlace) -> None:
        if self._compact:
            document = msgspec.json.format(bytes(document), indent=-1)
        kind = read_document(document, place, self._into)
        if kind == INVENTORY:
            self._keep_inventory(bytes(document), place.file)
        elif kind == FOREIGN:
            if not place.lenient:
                other = other_inventories.of_document(bytes(document))
                self._faults.add(f"{place.file}: {other or f'has no kind: {NO_OBJECT}'}")
            elif self._foreign[-1:] != [place.file]:
                self._foreign.append(place.file)

    def _keep_inventory(self, document: bytes, file: str) -> None:
        try:
            read = read_inventory(document, file)
        except BadObjectError as error:
            self._faults.add(str(error))
            return
        if self._inventory is not None:
            self._notes.append(f"two inventories: {self._inventory[1]}, then {file}; the last one counts")
        self._inventory = read, file

    def _bytes(self, path: str | Path) -> bytes | None:
        """The file's bytes, or None and a fault."""
        file = _shown(path)
        try:
            if str(path) != STDIN:
                with Path(path).open("rb") as opened:
                    return _all_of(opened)
            if self._stdin_read:
                raise BadText("is given twice")
            self._stdin_read = True
            if self._stdin is None:
                raise BadText("is closed")
            return _all_of(self._stdin)
        except OSError as error:
            self._faults.add(f"{file}: {error.strerror or error}")
        except BadText as error:
            self._faults.add(f"{file}: {error}")
        return None

    def _plain(self, data: bytes, file: str) -> bytes | None:
        """The text, or None and a fault."""
        try:
            return plain(data)
        except BadText as error:
            self._faults.add(f"{file}: {error}")
            return None


def _all_of(file: BinaryIO) -> bytes:
    """What is in the file. Raises BadText where that may never end."""
    try:
        status = os.fstat(file.fileno())
    except OSError:  # a text in memory
        return file.read()
    mode, size = status.st_mode, status.st_size
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not file.isatty()):
        raise BadText("is a device, not a file")
    if stat.S_ISREG(mode) and size <= MOST_BYTES:
        return file.read()
    read = io.BytesIO()
    while size <= MOST_BYTES and (piece := file.read(_PIECE)):
        size = read.write(piece) and read.tell()
    if size > MOST_BYTES:
        raise BadText(f"has more than {MOST_BYTES >> 30} GiB: give parts of it, one after another")
    return read.getvalue()


def _is_regular(path: Path) -> bool:
    """Whether reading it ends; a file that cannot be looked at is for the reading to complain about."""
    try:
        return path.is_file() or not path.exists()
    except OSError:
        return True


def _is_wanted(name: str) -> bool:
    """Whether a file of a folder or an archive is read, by its name: hidden ones are not."""
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") and part != "." for part in parts)
    return not hidden and name.removesuffix(".gz").endswith(SUFFIXES)


def _files_of(directory: Path) -> Iterator[Path]:
    """The files of a directory and those below it, by name."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if _is_wanted(name))


def _shown(path: str | Path) -> str:
    return "stdin" if str(path) == STDIN else str(path)


def _text_of(error: Exception, data: bytes) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return split.describe(error, data) if isinstance(error, msgspec.DecodeError) else str(error)


def _notes_of(into: Collected) -> list[str]:
    notes = [f"{line}: left out" for line in _some(into.left_out, "files")]
    notes += [f"{line}: incomplete, not expanded into pods" for line in _some(into.incomplete, "incomplete objects")]
    notes += [f"{line}: incomplete, not counted as a node" for line in _some(into.node_patches, "incomplete nodes")]
    if into.made:
        notes.append(f"read as what they make: {', '.join(_some(into.made, 'objects'))}")
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
