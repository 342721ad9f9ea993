"""The formats of `-o`, where one of them cannot be written, and the value of `--fail-on` that no finding reaches."""

import sys

from underhost.schemas.errors import InputError

TABLE, WIDE, JSON, YAML, NAME = "table", "wide", "json", "yaml", "name"
FORMATS = (TABLE, WIDE, JSON, YAML, NAME)
JSON_LINES = "jsonl"
"""JSON of many documents, one a line: what `json` means where answers follow one another."""
SARIF, JUNIT = "sarif", "junit"
CSV, PARQUET = "csv", "parquet"
REPORT_FORMATS = (*FORMATS, SARIF, JUNIT, CSV, PARQUET)
"""Of the commands whose findings other tools read."""
NEVER = "never"
"""Of `--fail-on`: no finding makes the command fail."""


def refuse_terminal(output: str, *, watch: bool = False) -> None:
    """Refuse Parquet where it cannot be one whole file, before anything is read. Raises InputError."""
    if output != PARQUET:
        return
    if watch:
        raise InputError("--output parquet: with --watch one file would follow another; leave --watch out")
    if sys.stdout.isatty():
        raise InputError("--output parquet: standard output is a terminal; write to a file: -o parquet > FILE")
