"""The bytes of one file into text: gzip, UTF-8, UTF-16."""

import codecs
import gzip
import zlib

_PIECE = 1 << 20


class BadText(Exception):
    """The text is no JSON or YAML; the message is one line without the file's name."""


def plain(data: bytes) -> bytes:
    """The file's text as UTF-8 without a byte order mark: gunzipped, and decoded from UTF-16 (PowerShell writes it).

    Raises BadText.
    """
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise BadText(f"the gzip file is damaged or truncated: {error}") from error
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
