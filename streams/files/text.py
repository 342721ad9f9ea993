"""The bytes of one file into text: gzip within bounds, UTF-8, UTF-16."""

import codecs
import gzip
import io
import zlib
from typing import NamedTuple

_PIECE = 1 << 20


class Unpacked(NamedTuple):
    """What gzip may become: bytes, and times its own size. Of `always` bytes and fewer the ratio does not matter."""

    size: int
    ratio: int
    always: int = 16 << 20

    def of(self, packed: int) -> int:
        """The most bytes that so many may become."""
        return min(self.size, max(self.always, self.ratio * packed))


OF_FILES = Unpacked(256 << 20, 100)
"""A dump becomes ten to fifty times smaller."""
OF_WORKERS = Unpacked(4 << 30, 1032)
"""A picture that was fetched from a worker which somebody named: of a large site, and nobody could unpack it before."""


class BadText(Exception):
    """The text is no JSON or YAML; the message is one line without the file's name."""


class OtherText(BadText):
    """The text is of another kind, and not meant to be one: a chart's template."""


def plain(data: bytes, unpacked: Unpacked = OF_FILES) -> bytes:
    """The file's text as UTF-8 without a byte order mark: gunzipped, and decoded from UTF-16 (PowerShell writes it).

    `unpacked` bounds what gzip may become. Raises BadText.
    """
    if data[:2] == b"\x1f\x8b":
        data = _gunzipped(data, unpacked.of(len(data)))
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise BadText(f"not UTF-16, though it begins so: {error}") from error
    if not _is_utf8(data):
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line, begin = data.count(10, 0, error.start) + 1, data.rfind(b"\n", 0, error.start)
            raise BadText(f"not UTF-8 (line {line}, byte {error.start - begin})") from error
    return data.removeprefix(b"\xef\xbb\xbf")


def _gunzipped(data: bytes, most: int) -> bytes:
    """Never more than one byte beyond the bound is unpacked. Raises BadText."""
    said = min(most, int.from_bytes(data[-4:], "little"))  # the size of the last member, mostly the only one
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(said + 1)  # room for so much is made at once
            if len(text) > said:
                text += file.read(most + 1 - len(text))
    except (EOFError, OSError, zlib.error) as error:
        raise BadText(f"the gzip file is damaged or truncated: {error}") from error
    if len(text) > most:
        raise BadText(f"its {len(data)} bytes of gzip are more than {most} bytes: unpack it first, if that is right")
    return text


def _is_utf8(data: bytes) -> bool:
    """Looked at in pieces: decoded whole, one character of another script makes two or four bytes of each."""
    if data.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin in range(0, len(data), _PIECE):
            decoder.decode(data[begin : begin + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
