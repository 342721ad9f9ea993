"""Archives as folders: the files of a tar (plain, gzip, xz, bzip2) or zip, one after another, never written to disk.

In: the bytes of an archive. Out: the names and contents of the files that are asked for. How much may be unpacked is
bounded; links, devices and other such members are left out.
"""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, NamedTuple

from underhost.streams.files.text import BadText

_TAR_AT, _TAR = 257, b"ustar"
_GZIP, _XZ, _BZIP2, _ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", (b"PK\x03\x04", b"PK\x05\x06")
_PIECE = 1 << 16


class Unpacking(NamedTuple):
    """What an archive may become: bytes in all (its logs, too, are read over), of one file that is read, and files."""

    size: int = 8 << 30
    ratio: int = 100
    always: int = 256 << 20
    file: int = 256 << 20
    files: int = 200_000
    dictionary: int = 128 << 20

    def of(self, packed: int) -> int:
        """The most bytes that an archive of so many may become."""
        return min(self.size, max(self.always, self.ratio * packed))


OF_BUNDLES = Unpacking()


def is_archive(data: bytes) -> bool:
    """Whether this is a tar, packed or not, or a zip; one packed file alone is none."""
    if data.startswith(_ZIP) or data[_TAR_AT : _TAR_AT + 5] == _TAR:
        return True
    try:
        head = _stream(data, OF_BUNDLES).read(512)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return False
    return head[_TAR_AT:][:5] == _TAR


def files_of(data: bytes, wanted: Callable[[str], bool], most: Unpacking = OF_BUNDLES) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files whose name is wanted, in the archive's order. Raises BadText."""
    try:
        yield from (_zipped if data.startswith(_ZIP) else _tarred)(data, wanted, most)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise _damaged(error) from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # a method or a password nobody has
        raise BadText(f"the archive cannot be read: {error}") from error


def _tarred(data: bytes, wanted: Callable[[str], bool], most: Unpacking) -> Iterator[tuple[str, bytes]]:
    import tarfile  # half a MiB, which a command that reads no archive does not hold

    bounded = _Bounded(_stream(data, most), most.of(len(data)))
    try:
        with tarfile.open(fileobj=bounded, mode="r|") as archive:
            for count, member in enumerate(archive):
                archive.members.clear()  # type: ignore[attr-defined] # it would hold them all
                if count >= most.files:
                    raise BadText(f"the archive has more than {most.files} files: unpack what is needed first")
                if member.isreg() and not member.issparse() and wanted(member.name):
                    _check(member.name, member.size, most)
                    content = archive.extractfile(member)
                    yield member.name, _whole(content) if content else b""
    except tarfile.TarError as error:
        raise _damaged(error) from error


def _zipped(data: bytes, wanted: Callable[[str], bool], most: Unpacking) -> Iterator[tuple[str, bytes]]:
    left = most.of(len(data))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if len(archive.filelist) > most.files:
            raise BadText(f"the archive has more than {most.files} files: unpack what is needed first")
        for member in archive.filelist:
            if not member.is_dir() and wanted(member.filename):
                _check(member.filename, member.file_size, most)
                left -= member.file_size
                if left < 0:
                    raise BadText(_too_much(most.of(len(data))))
                with archive.open(member) as content:
                    yield member.filename, _whole(content)


def _damaged(error: Exception) -> BadText:
    return BadText(f"the archive is damaged or truncated: {error}")


def _whole(content: IO[bytes]) -> bytes:
    """What is in a file of an archive: read in pieces, as all of it at once would be held two or three times."""
    held = io.BytesIO()
    while piece := content.read(_PIECE):
        held.write(piece)
    return held.getvalue()


def _check(name: str, size: int, most: Unpacking) -> None:
    if size > most.file:
        raise BadText(f"{name[:200]} in the archive has more than {most.file} bytes: unpack it first")


def _too_much(most: int) -> str:
    return f"the archive becomes more than {most} bytes: unpack it first, if that is right"


def _stream(data: bytes, most: Unpacking) -> BinaryIO:
    """What the archive was before it was packed; it reads as much as is asked for."""
    packed = io.BytesIO(data)
    if data.startswith(_GZIP):
        return gzip.GzipFile(fileobj=packed)  # type: ignore[return-value] # it is one, but for its declared type
    if data.startswith(_XZ):
        return io.BufferedReader(_Unxz(packed, most.dictionary))
    return bz2.open(packed) if data.startswith(_BZIP2) else packed  # type: ignore[return-value] # likewise


class _Unxz(io.RawIOBase):
    """`lzma.open`, but with a bound on the memory that the file asks for."""

    def __init__(self, packed: BinaryIO, dictionary: int) -> None:
        self._packed, self._decoder = packed, lzma.LZMADecompressor(memlimit=dictionary)

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        while not self._decoder.eof:
            packed = self._packed.read(_PIECE) if self._decoder.needs_input else b""
            if self._decoder.needs_input and not packed:
                raise EOFError("it ends too early")
            found = self._decoder.decompress(packed, len(into))
            if found:
                into[: len(found)] = found
                return len(found)
        return 0


class _Bounded(io.BytesIO):
    """A stream that ends with a BadText where more is read from it than is allowed."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        super().__init__()
        self._stream, self._left, self._most = stream, most, most

    def read(self, size: int | None = -1) -> bytes:
        found = self._stream.read(-1 if size is None else size)
        self._left -= len(found)
        if self._left < 0:
            raise BadText(_too_much(self._most))
        return found
