"""`underhost violations`: the open findings of the running pipeline, and their life as it happens.

In: the violations topic, on Kafka or the embedded log; or a worker, which tells what is open. Out: a table, JSON or
YAML of what is open; with `--follow` one line for each finding that opens, changes or is resolved, after those that
are open. It is an ordinary consumer: it needs no worker and takes nothing away from one. Exit 0 whatever is found; 3
when the topics cannot be reached.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.origin import Worker
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.columns import Table, clean
from underhost.agents.commands.output.documents import advice, show, show_tables, versioned
from underhost.agents.commands.output.formats import JSON_LINES
from underhost.schemas.errors import InputError
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import RANK
from underhost.schemas.topics import VIOLATIONS
from underhost.streams.ports import Record, TopicReader
from underhost.streams.reader import open_reader

HEADER = ("SEVERITY", "RULE", "POD", "NODE", "SINCE", "MESSAGE")
WIDE = ("SITE", "ID", *HEADER[:-1], "PEERS", HEADER[-1])
FOLLOW_HEADER = ("TIME", "STATE", "SEVERITY", "RULE", "POD", "MESSAGE")


def handle(
    follow: bool, site: str | None, severity: list[str] | None, output: str, worker: Worker, where: Topics
) -> None:
    """Show the open findings of the running pipeline."""
    wanted = _filter(site, severity)
    if worker.server is not None:
        if follow or any(where):
            raise InputError(
                "violations: --server shows what is open at a worker; --follow and the rest read the topics"
            )
        from underhost.agents.commands.input.server import findings  # an HTTP client, which topics do not need

        events = asyncio.run(findings(worker.server, site, worker.token_file, worker.ca_file))
        _show(sorted(filter(wanted, events), key=_order), output)
        return
    if worker.token_file or worker.ca_file:
        raise InputError("--token-file and --ca-file: for --server URL; the topics do not ask for it")
    reader = open_reader(settings_of(where).kafka)
    if follow:
        asyncio.run(_follow(reader, wanted, output))
    else:
        _show(list(filter(wanted, asyncio.run(open_findings(reader))[0])), output)


def _filter(site: str | None, severities: list[str] | None) -> Callable[[FindingEvent], bool]:
    def wanted(event: FindingEvent) -> bool:
        return (site is None or event.site == site) and (not severities or event.severity in severities)

    return wanted


async def _follow(reader: TopicReader, wanted: Callable[[FindingEvent], bool], output: str) -> None:
    if output in ("table", "wide"):
        typer.echo(_line(FOLLOW_HEADER))
    async for event in changes(reader):
        if wanted(event):
            typer.echo(render_event(event, output))


async def open_findings(reader: TopicReader) -> tuple[list[FindingEvent], dict[int, int]]:
    """The open findings of all sites, sorted by site, severity, rule, pod and id; the last offset by partition."""
    live: dict[bytes, FindingEvent] = {}
    seen: dict[int, int] = {}
    async for record in reader.history([VIOLATIONS]):
        seen[record.partition] = record.offset
        event = _decode(record)
        if record.key is not None and (event is None or event.state == "resolved"):
            live.pop(record.key, None)
        elif record.key is not None and event is not None:
            live[record.key] = event
    return sorted(live.values(), key=_order), seen


async def changes(reader: TopicReader) -> AsyncIterator[FindingEvent]:
    """The open findings as they are, then every event after them, none twice and none lost."""
    events, seen = await open_findings(reader)
    for event in events:
        yield event
    # From the beginning, so that nothing falls between the look and the following; the topic is short.
    async for record in reader.follow([VIOLATIONS], from_beginning=True):
        if record.offset > seen.get(record.partition, -1):
            decoded = _decode(record)
            if decoded is not None:
                yield decoded


def _decode(record: Record) -> FindingEvent | None:
    """None for a tombstone, and for what is no finding: that is said on standard error, and the rest goes on."""
    if record.value is None:
        return None
    try:
        return msgspec.json.decode(record.value, type=FindingEvent)
    except msgspec.DecodeError as error:
        place = f"{record.topic}/{record.partition}/{record.offset}"
        typer.echo(f"warning: {place} is no finding: {error}", err=True)
        return None


def _order(event: FindingEvent) -> tuple[Any, ...]:
    return event.site, RANK.get(event.severity, len(RANK)), event.rule, event.pod or "", event.id


def _show(events: list[FindingEvent], output: str) -> None:
    """Print all open findings in one of the formats; a table says where none is open."""
    if output in ("json", "yaml"):
        show(versioned("Violations", {"violations": list(map(_advised, events))}, output))
    elif output == "name":
        show("".join(f"{event.site}/{event.id}\n" for event in events))
    elif not events:
        show("No open findings.\n")
    else:
        wide = output == "wide"
        show_tables([Table(WIDE if wide else HEADER, [_row(event, wide) for event in events])])


def render_event(event: FindingEvent, output: str) -> str:
    """One event in one line."""
    if output in ("json", "yaml"):
        return versioned("Violation", _advised(event), JSON_LINES if output == "json" else "yaml").rstrip("\n")
    if output == "name":
        return f"{event.site}/{event.id} {event.state}"
    return _line((event.updated_at, event.state, event.severity, event.rule, event.pod or "-", event.message))


def _advised(event: FindingEvent) -> dict[str, Any]:
    """With what ends the finding, and its runbook."""
    return {**msgspec.to_builtins(event), **advice(event.severity, event.rule)}


def _row(event: FindingEvent, wide: bool) -> tuple[str, ...]:
    row = (event.severity, event.rule, event.pod or "-", event.node or "-", event.first_seen)
    return (event.site, event.id, *row, ",".join(event.peers) or "-", event.message) if wide else (*row, event.message)


def _line(cells: tuple[str, ...]) -> str:
    widths = (24, 8, 12, 17, 44)
    return "  ".join(f"{clean(cell):<{width}}" for cell, width in zip(cells[:-1], widths, strict=True)) + (
        "  " + clean(cells[-1])
    )
