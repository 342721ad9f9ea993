"""Tables on a terminal: with colour unless NO_COLOR is set, as wide as it is, and lines that fit.

In: tables. Out: text on standard output. What a cell says decides its colour.
"""

import os
import re
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from underhost.agents.commands.output.columns import Table, clean
from underhost.schemas.severities import ROWS

TONES = {
    **{row.name: row.terminal for row in ROWS},
    "yes": "green",
    "no": "red",
    "Pending": "yellow",
}


_PARTS = re.compile(r"[^.,/]+[.,/]*|[.,/]+")
_GAP = 3  # blanks between columns
_NARROW = 60  # a column for sentences that is narrower than this is set below its row


def show_on_terminal(tables: Sequence[Table]) -> None:
    """Print tables as wide as the terminal, each in the first of three ways in which no word is broken.

    Beside one another; the last column below its row, where it would be too narrow to be read; every cell on a line
    of its own, below its row's first, where even the others do not fit.
    """
    console = Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    for at, table in enumerate(tables):
        if at:
            console.print()
        widths = _widths(table)
        left = console.width - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        if widths[-1] <= left or left >= _NARROW:
            _show_grid(console, table)
        elif left + _GAP >= 0:
            _show_stacked(console, table, widths[:-1])
        else:
            _show_cells(console, table)


def _show_grid(console: Console, table: Table) -> None:
    """Columns."""
    grid = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for position, name in enumerate(table.header):
        grid.add_column(name, overflow="fold", no_wrap=position < len(table.header) - 1)
    for row in table.rows:
        grid.add_row(*(Text(clean(cell), style=TONES.get(cell, "")) for cell in row))
    console.print(grid)


def _show_stacked(console: Console, table: Table, widths: Sequence[int]) -> None:
    """Columns, and the last one below its row."""
    for row in (table.header, *table.rows):
        line = Text()
        for cell, width in zip(row, widths, strict=False):
            tone = "bold" if row is table.header else TONES.get(cell, "")
            line.append(clean(cell).ljust(width), style=tone).append(" " * _GAP)
        line.rstrip()
        console.print(line, soft_wrap=True)
        if row is not table.header:
            console.print(Padding(Text(clean(row[-1])), (0, 0, 0, 4)))


def _show_cells(console: Console, table: Table) -> None:
    """Each row as lines of a column's name and its cell."""
    width = max(map(len, table.header))
    for row in table.rows:
        for at, (name, cell) in enumerate(zip(table.header, row, strict=True)):
            block = RichTable.grid(padding=(0, _GAP, 0, 0))
            block.add_column(no_wrap=True, width=width)
            block.add_column(overflow="fold")
            room = console.width - width - _GAP - (4 if at else 0)
            block.add_row(Text(name, style="bold"), Text(_broken(clean(cell), room), style=TONES.get(cell, "")))
            console.print(Padding(block, (0, 0, 0, 4 if at else 0)))


def _broken(text: str, width: int) -> str:
    """The text with line ends in words that are too long for a line: after a part of a path or an item of a list."""
    words = []
    for word in text.split(" "):
        line = ""
        for part in _PARTS.findall(word) if len(word) > width else [word]:
            if line and len(line) + len(part) > width:
                words.append(line + "\n")
                line = ""
            line += part
        words.append(line + " ")
    return "".join(words).rstrip()


def _widths(table: Table) -> list[int]:
    rows = [[clean(cell) for cell in row] for row in (table.header, *table.rows)]
    return [max(len(row[column]) for row in rows) for column in range(len(table.header))]
