"""Moments as people name them."""

from datetime import UTC, datetime

import pytest

from underhost.agents.snapshots.times import LAST, parse_time
from underhost.schemas.errors import InputError

NOW = 1_795_000_000.25


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("0s", 1_795_000_000_250, id="now"),
        pytest.param("10m", 1_794_999_400_250, id="ten minutes ago"),
        pytest.param("2h", 1_794_992_800_250, id="two hours ago"),
        pytest.param("1d", 1_794_913_600_250, id="a day ago"),
        pytest.param("1970-01-01T00:00:00Z", 0, id="the first moment"),
        pytest.param("2026-11-21T03:00:00Z", 1_795_230_000_000, id="RFC 3339"),
        pytest.param("2026-11-21T04:00:00+01:00", 1_795_230_000_000, id="in another zone"),
        pytest.param("2026-11-21T03:00:00.1234Z", 1_795_230_000_123, id="rounded down to a millisecond"),
        pytest.param("2026-11-21T03:00:00.1236Z", 1_795_230_000_124, id="rounded up to a millisecond"),
        pytest.param("9999-12-31T23:59:59.9996Z", LAST * 1000 - 1, id="a moment before the last one"),
        pytest.param("9999-12-31T23:59:59.999999Z", LAST * 1000 - 1, id="the last moment is not rounded beyond it"),
    ],
)
def test_a_moment_in_milliseconds(text: str, moment: int) -> None:
    assert parse_time(text, NOW) == moment


@pytest.mark.parametrize("text", ["0s", "9999-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z"])
def test_every_moment_can_be_written(text: str) -> None:
    assert datetime.fromtimestamp(parse_time(text, NOW) / 1000, UTC).year <= 9999


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "m",
        "-1h",
        "1w",
        "٣m",
        "yesterday",
        "2026-11-21",
        "2026-11-21T03:00:00",
        "1969-12-31T23:59:59Z",
        "99999d",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a time is expected, 2026-11-21T03:00:00Z or 10m for ten minutes ago"):
        parse_time(text, NOW)
