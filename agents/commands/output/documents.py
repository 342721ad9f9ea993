"""How the offline commands print their documents: tables for people, versioned JSON and YAML for programs.

In: a document and rows. Out: text. Columns are kubectl's where nobody looks; on a terminal they are a table with
colour. Names come from clusters whose tenants choose them: control characters never reach a terminal.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from underhost.agents.commands.output import progress
from underhost.agents.commands.output.columns import clean, columns
from underhost.schemas.severities import ROWS

if TYPE_CHECKING:
    import msgspec
    from rich.console import Console

TABLE, WIDE, JSON, YAML, NAME = "table", "wide", "json", "yaml", "name"
FORMATS = (TABLE, WIDE, JSON, YAML, NAME)
SARIF, JUNIT = "sarif", "junit"
CSV, PARQUET = "csv", "parquet"
REPORT_FORMATS = (*FORMATS, SARIF, JUNIT, CSV, PARQUET)
"""Of the commands whose findings other tools read."""
TONES = {
    **{row.name: row.terminal for row in ROWS},
    "yes": "green",
    "no": "red",
    "Pending": "yellow",
}


_GAP = 3  # blanks between columns
_NARROW = 60  # a column for sentences that is narrower than this is set below its row


class Table(NamedTuple):
    """Rows below a header; the last column is the one that may be long."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def document(value: "msgspec.Struct", output: str) -> str:
    """The document as indented JSON or as YAML, keys sorted."""
    import msgspec

    from underhost.schemas.documents import to_builtins

    tree = to_builtins(value)
    _complete_all(tree)
    if output == YAML:
        import yaml

        return "---\n" + yaml.safe_dump(tree, sort_keys=True, allow_unicode=True, width=120)
    return msgspec.json.format(msgspec.json.encode(tree, order="sorted"), indent=2).decode() + "\n"


def _complete_all(tree: "dict[str, Any]") -> None:
    """The findings of a document, and of the documents in a list."""
    for part in ("findings", "newFindings", "resolvedFindings"):
        for finding in tree.get(part, ()):
            _complete(finding)
    for item in tree.get("items", ()):
        _complete_all(item)


def _complete(finding: "dict[str, object]") -> None:
    """A finding about pods or nodes has all of these keys, null where there is nothing to say."""
    if "pod" in finding or "node" in finding:
        for key in ("pod", "node", "domain", "source"):
            finding.setdefault(key, None)
        finding.setdefault("peers", [])


def show(content: str | bytes) -> None:
    """Print what has its own line end, or the bytes of a file; a closed pipe is the caller's to notice."""
    progress.end()
    typer.echo(content, nl=False)


def show_tables(tables: Iterable[Table]) -> None:
    """Print tables one below the other, with colour and lines that fit where standard output is a terminal."""
    progress.end()
    shown = [table for table in tables if table.rows]
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        show_on_terminal(shown)
        return
    show("\n".join(columns(table.header, table.rows) for table in shown))


def show_on_terminal(tables: Sequence[Table]) -> None:
    """Print tables as wide as the terminal; where the last column would be too narrow to read, it is below its row."""
    from rich.console import Console

    console = Console(highlight=False)
    for at, table in enumerate(tables):
        if at:
            console.print()
        widths = _widths(table)
        left = console.width - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        _show_grid(console, table, stacked=widths[-1] > left and left < _NARROW)


def _show_grid(console: "Console", table: Table, stacked: bool) -> None:
    """Columns; stacked, the last one is below its row, where it would be too narrow to be read beside it."""
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

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


def available(nodes: int, reasons: dict[str, int]) -> str:
    """Upstream's line (framework/types.go, FitError): `0/7 nodes are available: 3 node(s) …, 4 node(s) ….`"""
    listed = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(listed)}." if listed else "")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
