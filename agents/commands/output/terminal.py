"""Tables on a terminal: with colour, as wide as it is, and lines that fit.

In: tables. Out: text on standard output. What a cell says decides its colour.
"""

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


_GAP = 3  # blanks between columns
_NARROW = 60  # a column for sentences that is narrower than this is set below its row


def show_on_terminal(tables: Sequence[Table]) -> None:
    """Print tables as wide as the terminal; where the last column would be too narrow to read, it is below its row."""
    console = Console(highlight=False)
    for at, table in enumerate(tables):
        if at:
            console.print()
        widths = _widths(table)
        left = console.width - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        _show_grid(console, table, stacked=widths[-1] > left and left < _NARROW)


def _show_grid(console: Console, table: Table, stacked: bool) -> None:
    """Columns; stacked, the last one is below its row, where it would be too narrow to be read beside it."""
    if stacked:
        widths = _widths(table)[:-1]
        for row in (table.header, *table.rows):
            line = Text()
            for cell, width in zip(row, widths, strict=False):
                tone = "bold" if row is table.header else TONES.get(cell, "")
                line.append(clean(cell).ljust(width), style=tone).append(" " * _GAP)
            line.rstrip()
            console.print(line, soft_wrap=True)
            if row is not table.header:
                console.print(Padding(Text(clean(row[-1])), (0, 0, 0, 4)))
        return
    grid = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for position, name in enumerate(table.header):
        grid.add_column(name, overflow="fold", no_wrap=position < len(table.header) - 1)
    for row in table.rows:
        grid.add_row(*(Text(clean(cell), style=TONES.get(cell, "")) for cell in row))
    console.print(grid)


def _widths(table: Table) -> list[int]:
    rows = [[clean(cell) for cell in row] for row in (table.header, *table.rows)]
    return [max(len(row[column]) for row in rows) for column in range(len(table.header))]
