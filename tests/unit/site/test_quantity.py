"""Quantities: what upstream's Value() and MilliValue() give, written out, and round trips over every suffix."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underhost.agents.site.quantity import INT64_MAX, milli_value, value


@pytest.mark.parametrize(
    ("text", "whole", "thousandths"),
    [
        pytest.param("100m", 1, 100, id="thousandths round up to a whole"),
        pytest.param("1500m", 2, 1500, id="one and a half rounds up to two"),
        pytest.param("1.5", 2, 1500, id="a decimal point"),
        pytest.param(".5", 1, 500, id="no digit before the point"),
        pytest.param("5.", 5, 5000, id="no digit after the point"),
        pytest.param("1n", 1, 1, id="a billionth is at least one of any unit"),
        pytest.param("1u", 1, 1, id="a millionth is at least one of any unit"),
        pytest.param("0.1n", 1, 1, id="less than a billionth is kept as something"),
        pytest.param("2k", 2000, 2_000_000, id="k is a thousand"),
        pytest.param("2M", 2_000_000, 2_000_000_000, id="M is a million"),
        pytest.param("1Ki", 1024, 1_024_000, id="Ki is 1024"),
        pytest.param("1.5Gi", 1_610_612_736, 1_610_612_736_000, id="a fraction of a binary unit"),
        pytest.param("0.1Ki", 103, 102_400, id="a binary unit that does not divide evenly"),
        pytest.param("1E", 10**18, INT64_MAX, id="E alone is the suffix exa"),
        pytest.param("1E3", 1000, 10**6, id="E with digits is an exponent"),
        pytest.param("12e-1", 2, 1200, id="a negative exponent"),
        pytest.param("1e+3", 1000, 10**6, id="a signed exponent"),
        pytest.param("+4", 4, 4000, id="a plus sign"),
        pytest.param("-1500m", -2, -1500, id="a negative quantity rounds away from zero"),
        pytest.param("000", 0, 0, id="zeros"),
        pytest.param("8Ei", INT64_MAX, INT64_MAX, id="beyond int64 is its end"),
        pytest.param("1e999999999999999", INT64_MAX, INT64_MAX, id="an absurd exponent is the end of int64"),
        pytest.param("1e-999999999999999", 1, 1, id="an absurdly small number is one"),
        pytest.param(" 2 ", 2, 2000, id="surrounding blanks"),
        pytest.param(2, 2, 2000, id="a YAML integer"),
        pytest.param(0.1, 1, 100, id="a YAML float is its decimal text"),
    ],
)
def test_a_quantity_is_rounded_up_to_the_unit(text: str | int | float, whole: int, thousandths: int) -> None:
    assert (value(text), milli_value(text)) == (whole, thousandths)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ki",
        "-",
        ".",
        "1 Gi",
        "1gi",
        "1K",
        "1KiB",
        "1GB",
        "e3",
        "1e",
        "1e3.5",
        "1e3k",
        "1mm",
        "1,5",
        "0x10",
        "NaN",
        "½",
    ],
)
def test_what_is_not_a_quantity_is_named_on_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity") as caught:
        value(text)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [True, None, [], float("inf"), float("nan")])
def test_another_type_is_not_a_quantity(text: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        value(text)  # type: ignore[arg-type]


def test_a_huge_text_is_not_repeated_in_the_message() -> None:
    with pytest.raises(ValueError) as caught:
        value("9" * 2_000_000)
    assert len(str(caught.value)) < 200


SUFFIXES = {
    **{"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3)},
    **{"M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18)},
    **{f"{name}i": Fraction(1 << 10 * power) for power, name in enumerate("KMGTPE", 1)},
}


@given(st.integers(0, 10**12), st.integers(0, 6), st.sampled_from(sorted(SUFFIXES)))
def test_every_suffix_and_fraction_is_exact(digits: int, places: int, suffix: str) -> None:
    text = f"{digits:0{places + 1}d}"
    text = f"{text[:-places]}.{text[-places:]}{suffix}" if places else text + suffix
    exact = Fraction(digits, 10**places) * SUFFIXES[suffix]
    assert value(text) == min(ceil(exact), INT64_MAX)
    assert milli_value(text) == min(ceil(exact * 1000), INT64_MAX)


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_and_thousandths_survive_the_round_trip(number: int) -> None:
    assert value(str(number)) == number
    assert milli_value(f"{number}m") == number
