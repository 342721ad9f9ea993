"""How the offline commands print their documents: tables for people, versioned JSON and YAML for programs.

In: a document and rows. Out: text. Columns are kubectl's where nobody looks; on a terminal they are a table with
colour. Names come from clusters whose tenants choose them: control characters never reach a terminal.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

from underhost.agents.commands.plain import clean, columns

if TYPE_CHECKING:
    import msgspec

TABLE, WIDE, JSON, YAML, NAME = "table", "wide", "json", "yaml", "name"
FORMATS = (TABLE, WIDE, JSON, YAML, NAME)
TONES = {
    "violation": "bold red",
    "physical": "red",
    "unsatisfiable": "red",
    "budget": "yellow",
    "unknown-node": "yellow",
    "co-located": "yellow",
    "yes": "green",
    "no": "red",
    "Pending": "yellow",
}


class Table(NamedTuple):
    """Rows below a header; the last column is the one that may be long."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def document(value: "msgspec.Struct", output: str) -> str:
    """The document as indented JSON or as YAML, keys sorted."""
    import msgspec

    from underhost.schemas.documents import to_builtins, to_json

    if output == YAML:
        import yaml

        return "---\n" + yaml.safe_dump(to_builtins(value), sort_keys=True, allow_unicode=True, width=120)
    return msgspec.json.format(to_json(value), indent=2).decode() + "\n"


def show(text: str) -> None:
    """Print what has its own line end; a closed pipe is the caller's to notice."""
    typer.echo(text, nl=False)


def show_tables(tables: Iterable[Table]) -> None:
    """Print tables one below the other, with colour and lines that fit where standard output is a terminal."""
    shown = [table for table in tables if table.rows]
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        _show_rich(shown)
        return
    show("\n".join(columns(table.header, table.rows) for table in shown))


def _show_rich(tables: Sequence[Table]) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False)
    for at, table in enumerate(tables):
        grid = RichTable(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        for position, name in enumerate(table.header):
            last = position == len(table.header) - 1
            grid.add_column(name, overflow="fold", no_wrap=not last, ratio=None)
        for row in table.rows:
            grid.add_row(*(Text(clean(cell), style=TONES.get(cell, "")) for cell in row))
        if at:
            console.print()
        console.print(grid)


def available(nodes: int, reasons: dict[str, int]) -> str:
    """Upstream's line (framework/types.go, FitError): `0/7 nodes are available: 3 node(s) …, 4 node(s) ….`"""
    listed = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(listed)}." if listed else "")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
