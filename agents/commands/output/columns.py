"""Tables as kubectl prints them, and text that cannot harm a terminal.

In: rows. Out: text that ends in a line end. Names come from clusters whose tenants choose them, so control
characters are never passed on to a terminal.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """Rows below a header; the last column is the one that may be long."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def clean(text: str) -> str:
    """The text in one line without control characters: each becomes `?`."""
    return "".join(char if char.isprintable() else "?" for char in text)


def columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in kubectl's manner: no lines, three spaces between columns, the last one as long as it is."""
    table = [tuple(header), *(tuple(clean(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    return "".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in table
    )
