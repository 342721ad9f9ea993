"""`underhost dead-letters`: the records that could not be processed, with where they came from and why.

In: the dead-letters topic. Out: a table or JSON, oldest first; with `--follow` what comes, too. The JSON holds a digest
of the original bytes; where `kafka.keepUnreadable` has kept these, they are there as text or base64. Exit 0; 3 when the
topics cannot be reached.
"""

import asyncio
import re
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.columns import Table, clean
from underhost.agents.commands.output.documents import show, show_tables, versioned
from underhost.agents.commands.output.formats import JSON_LINES
from underhost.schemas.numbers import number
from underhost.schemas.topics import DEAD_LETTERS
from underhost.streams.ports import Record, TopicReader
from underhost.streams.reader import open_reader

DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")
HEADER = ("TIME", "ORIGIN", "KEY", "BYTES", "STAGE", "ERROR")


def handle(follow: bool, output: str, where: Topics) -> None:
    """Show the records that could not be processed."""
    reader = open_reader(settings_of(where).kafka)
    asyncio.run(_follow(reader, output) if follow else _show(reader, output))


async def _show(reader: TopicReader, output: str) -> None:
    letters = [fields_of(record) async for record in reader.history([DEAD_LETTERS])]
    letters.sort(key=lambda letter: (letter["time"], letter["partition"], letter["offset"]))
    if output != "table":
        show(versioned("DeadLetters", {"deadLetters": letters}, output))
    elif letters:
        show_tables([Table(HEADER, [_row(letter) for letter in letters])])
    else:
        show("No dead letters.\n")


async def _follow(reader: TopicReader, output: str) -> None:
    if output == "table":
        typer.echo("  ".join(HEADER))
    async for record in reader.follow([DEAD_LETTERS], from_beginning=True):
        letter = fields_of(record)
        if output == "table":
            typer.echo("  ".join(map(clean, _row(letter))))
        else:
            typer.echo(versioned("DeadLetter", letter, JSON_LINES if output == "json" else "yaml"), nl=False)


def fields_of(record: Record) -> dict[str, Any]:
    """A dead letter as it is printed."""
    headers = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    value, size = record.value, number(headers.get("origin_bytes", ""))
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
        "partition": record.partition,
        "offset": record.offset,
        "key": (record.key or b"").decode("utf-8", "replace"),
        "origin": "/".join(headers.get(f"origin_{part}", "?") for part in ("topic", "partition", "offset")),
        "stage": headers.get("stage", ""),
        "error": headers.get("error", ""),
        "bytes": len(value or b"") if size is None else size,
    }
    if value is not None and DIGEST.fullmatch(value):
        fields["digest"] = value.decode()
    elif value is not None:
        try:
            fields["value"] = value.decode()
        except UnicodeDecodeError:
            fields["valueBase64"] = b64encode(value).decode()
    return fields


def _row(letter: dict[str, Any]) -> tuple[str, ...]:
    return (letter["time"], letter["origin"], letter["key"], str(letter["bytes"]), letter["stage"], letter["error"])
