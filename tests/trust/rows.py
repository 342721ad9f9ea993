"""The table of docs/trust.md: one row for each regime and commit.

In: the text of the page and a row. Out: the text with that row in it, in the place of an older one of the same commit.
"""

from dataclasses import astuple, dataclass

BEGIN, END = "<!-- rows: written by `make trust` -->", "<!-- end of rows -->"
HEAD = "| regime | date | commit | tried | survived | lost | how long | figures |\n|---|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Row:
    """A row; `date` is a day (2026-11-22), `commit` the short hash of what was tried."""

    regime: str
    date: str
    commit: str
    tried: int
    survived: int
    lost: int
    how_long: str
    figures: str

    def __str__(self) -> str:
        return "| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in astuple(self)) + " |"


def with_row(page: str, row: Row) -> str:
    """The page with the row, sorted by regime, newest last. Raises ValueError where the page has no table."""
    before, begin, rest = page.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"docs/trust.md has no {BEGIN} … {END}")
    lines = [line for line in table.splitlines() if line.startswith("| ") and line not in HEAD.splitlines()]
    kept = [line for line in lines if not _same(line, row)]
    place = next((at for at, line in enumerate(kept) if _cells(line)[0] > row.regime), len(kept))
    kept.insert(place, str(row))
    return f"{before}{BEGIN}\n{HEAD}\n" + "\n".join(kept) + f"\n{END}{after}"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _same(line: str, row: Row) -> bool:
    cells = _cells(line)
    return (cells[0], cells[2]) == (row.regime, row.commit)
