"""How the operators' commands print: columns as kubectl has them, versioned JSON and YAML, text that cannot harm.

In: rows or records. Out: text that ends in a line end. Names come from clusters whose tenants choose them, so control
characters are never passed on to a terminal.
"""

from collections.abc import Iterable, Sequence
from typing import Any


def one_of(option: str, value: str, allowed: Sequence[str]) -> None:
    """Raises InputError unless the value is one of these."""
    from underhost.schemas.errors import InputError
    from underhost.schemas.near import did_you_mean

    if value not in allowed:
        known = ", ".join(allowed)
        raise InputError(f"{option} {value}: one of {known} is expected{did_you_mean(value, allowed)}")


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


def document(kind: str, content: Any, output: str) -> str:
    """A versioned document with sorted keys; `output` is json (indented), jsonl (one line) or yaml.

    `content` is a struct or a mapping of fields to structs, lists and plain values.
    """
    import msgspec
    import yaml

    from underhost.schemas.documents import API_VERSION

    fields = msgspec.to_builtins(content, order="sorted")
    tree = dict(sorted({**fields, "apiVersion": API_VERSION, "kind": kind}.items()))
    if output == "yaml":
        return "---\n" + yaml.safe_dump(tree, sort_keys=True, allow_unicode=True)
    line = msgspec.json.encode(tree)
    return (line if output == "jsonl" else msgspec.json.format(line, indent=2)).decode() + "\n"
