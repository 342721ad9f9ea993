"""Numbers that others wrote as text: versions, terms and positions of records, answers and questions.

`str.isdecimal` and `str.isdigit` do not say whether `int` takes a text: it refuses "²", and more than 4,300 digits.
"""

_MOST_DIGITS = 19
"""Those of a signed number of 64 bits, which etcd's revisions are; what we keep as JSON is no larger either."""


def number(text: str) -> int | None:
    """The number that a text of ASCII digits alone is; None for any other text, and for more digits than 19."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
