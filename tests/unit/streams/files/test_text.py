"""What gzip may become."""

import gzip

import pytest

from underhost.streams.files import text
from underhost.streams.files.text import BadText, Unpacked, plain

BOUNDS = Unpacked(size=5000, ratio=10, always=1000)


@pytest.mark.parametrize(
    ("content", "level"),
    [
        pytest.param(b"", 9, id="nothing"),
        pytest.param(b" " * 1000, 9, id="as much as is always allowed, at any ratio"),
        pytest.param(b" " * 5000, 0, id="as much as is allowed"),
    ],
)
def test_gzip_within_its_bounds_is_unpacked(content: bytes, level: int) -> None:
    assert plain(gzip.compress(content, level), BOUNDS) == content


@pytest.mark.parametrize(
    ("packed", "most"),
    [
        pytest.param(gzip.compress(b" " * 1001), 1000, id="a ratio that no dump has"),
        pytest.param(gzip.compress(b" " * 5001, 0), 5000, id="too much"),
        pytest.param(gzip.compress(b" " * 900) * 40, 5000, id="many members, each within the bounds"),
    ],
)
def test_gzip_that_becomes_too_much_is_refused(packed: bytes, most: int) -> None:
    with pytest.raises(BadText, match=f"^its {len(packed)} bytes of gzip are more than {most} bytes: unpack it first"):
        plain(packed, BOUNDS)


@pytest.mark.parametrize(
    ("packed", "most"),
    [(1_000, 16 << 20), (1 << 20, 100 << 20), (64 << 20, 256 << 20)],
    ids=["small", "by its ratio", "large"],
)
def test_a_file_may_become_256_mebibytes_or_a_hundred_times_its_size(packed: int, most: int) -> None:
    assert text.OF_FILES.of(packed) == most
