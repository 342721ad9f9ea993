"""Frames as files for other programs: CSV and Parquet.

In: a polars frame. Out: the bytes of the file. Equal frames give equal bytes.
"""

import io
import sys
from typing import TYPE_CHECKING

from underhost.agents.commands.output.documents import PARQUET
from underhost.schemas.errors import InputError

if TYPE_CHECKING:
    import polars as pl

JOINED_BY = " "
_UNPRINTABLE = r"[\p{C}\p{Zl}\p{Zp}]"
_FORMULA = r"^[=+@-]"


def refuse_terminal(output: str, *, watch: bool = False) -> None:
    """Refuse Parquet where it cannot be one whole file, before anything is read. Raises InputError."""
    if output != PARQUET:
        return
    if watch:
        raise InputError("--output parquet: with --watch one file would follow another; leave --watch out")
    if sys.stdout.isatty():
        raise InputError("--output parquet: standard output is a terminal; write to a file: -o parquet > FILE")


def csv(frame: "pl.DataFrame") -> bytes:
    """UTF-8 with a header. A null is an empty field, an empty text is `""`, a list of names has blanks between them.

    Names come from clusters whose tenants choose them: a control character becomes `?`, and a text that a spreadsheet
    would run as a formula begins with `'`.
    """
    import polars as pl
    import polars.selectors as of_type

    shown = frame.with_columns(of_type.by_dtype(pl.List(pl.String)).list.join(JOINED_BY)).with_columns(
        pl.col(pl.String).str.replace_all(_UNPRINTABLE, "?").str.replace(_FORMULA, "'$0")
    )
    return shown.write_csv().encode()


def parquet(frame: "pl.DataFrame") -> bytes:
    """The frame as it is: lists stay lists, nulls stay nulls."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()
