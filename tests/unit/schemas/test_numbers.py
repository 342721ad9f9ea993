"""Which texts of others are numbers: `int` alone would raise for some that `isdecimal` or `isdigit` let through."""

import pytest

from underhost.schemas.numbers import number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("007", 7, id="zeros before it"),
        pytest.param("9223372036854775807", 9223372036854775807, id="the newest version that etcd can have"),
        pytest.param("9" * 20, None, id="more digits than that"),
        pytest.param("9" * 5000, None, id="more digits than Python reads"),
        pytest.param("²", None, id="a digit that is no number"),
        pytest.param("٣", None, id="a digit of another script"),
        pytest.param("-1", None, id="a sign"),
        pytest.param(" 1", None, id="a space"),
        pytest.param("1.0", None, id="a fraction"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_text_is_a_number_only_where_its_digits_are_few_and_plain(text: str, value: int | None) -> None:
    assert number(text) == value
