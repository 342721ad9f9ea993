"""Frames as files for other programs: CSV and Parquet.

In: a polars frame. Out: the bytes of the file. Equal frames give equal bytes.
"""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

JOINED_BY = " "
_UNPRINTABLE = r"[\p{C}\p{Zl}\p{Zp}]"
_FORMULA = r"^[=+@-]"


def csv(frame: "pl.DataFrame") -> bytes:
    """UTF-8 with a header. A null is an empty field, an empty text is `""`, a list of names has blanks between them.

    Names come from clusters whose tenants choose them: a control character becomes `?`, and a text that a spreadsheet
    would run as a formula begins with `'`.
    """
    import polars as pl  # 0.2 s, which other formats do not wait for
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
