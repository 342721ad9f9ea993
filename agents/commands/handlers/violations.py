"""`underhost violations`: the open findings of the running pipeline, and their life as it happens.

In: the violations topic, on Kafka or the embedded log; or a worker, which tells what is open. Out: a table, JSON or
YAML of what is open; with `--follow` one line for each finding that opens, changes or is resolved, after those that
are open. It is an ordinary consumer: it needs no worker and takes nothing away from one. What was not judged a worker
knows; the topics do not, and how new they are is said in its place. Exit 0 whatever is found; 2 for a site that is not
there; 3 when the topics cannot be reached.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec
import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.origin import Worker
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.columns import Table, clean
from underhost.agents.commands.output.documents import advice, say, show, show_not_judged, show_tables, versioned
from underhost.agents.commands.output.errors import note
from underhost.agents.commands.output.formats import JSON_LINES
from underhost.agents.snapshots.history import nothing_of, sites_of
from underhost.schemas.documents import NotJudged
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import RANK
from underhost.schemas.topics import VIOLATIONS
from underhost.streams.derived import rfc3339
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

        found = asyncio.run(findings(worker.server, site, worker.token_file, worker.ca_file))
        _show(sorted(filter(wanted, found.findings), key=_order), output, found.not_judged)
        return
    if worker.token_file or worker.ca_file:
        raise InputError("--token-file and --ca-file: for --server URL; the topics do not ask for it")
    reader = open_reader(settings_of(where).kafka)
    try:
        if follow:
            asyncio.run(_follow(reader, site, wanted, output))
            return
        held = asyncio.run(_held(reader, site))
    except Unreachable as error:
        raise Unreachable(f"{error}; a worker is asked with --server URL") from error
    _show(list(filter(wanted, held.findings)), output)
    if output in ("table", "wide"):
        newest = f"whose newest finding is of {rfc3339(held.newest / 1000)}" if held.newest else "which hold none yet"
        say(f"As the topics have it, {newest}; what is not judged a worker says (--server URL)")


def _filter(site: str | None, severities: list[str] | None) -> Callable[[FindingEvent], bool]:
    def wanted(event: FindingEvent) -> bool:
        return (site is None or event.site == site) and (not severities or event.severity in severities)

    return wanted


async def _held(reader: TopicReader, site: str | None) -> "_InTopics":
    """What the topics hold. Raises InputError where they hold nothing of the site that is named."""
    held = await _open_findings(reader)
    there = {event.site for event in held.findings}
    if site is not None and site not in there:
        there.update(await sites_of(reader))
        if site not in there:
            raise InputError(nothing_of(site, there))
    return held


async def _follow(reader: TopicReader, site: str | None, wanted: Callable[[FindingEvent], bool], output: str) -> None:
    if site is not None and site not in (there := await sites_of(reader)):
        note(nothing_of(site, there))  # it may come yet
    if output in ("table", "wide"):
        typer.echo(_line(FOLLOW_HEADER))
    async for event in changes(reader):
        if wanted(event):
            typer.echo(render_event(event, output))


class _InTopics(NamedTuple):
    """The open findings of all sites, sorted by site, severity, rule, pod and id.

    `seen` is the last offset by partition; `newest` the time of the newest record in milliseconds since 1970, 0
    for none.
    """

    findings: list[FindingEvent]
    seen: dict[int, int]
    newest: int


async def _open_findings(reader: TopicReader) -> _InTopics:
    live: dict[bytes, FindingEvent] = {}
    seen: dict[int, int] = {}
    newest = 0
    async for record in reader.history([VIOLATIONS]):
        seen[record.partition] = record.offset
        newest = max(newest, record.timestamp)
        event = _decode(record)
        if record.key is not None and (event is None or event.state == "resolved"):
            live.pop(record.key, None)
        elif record.key is not None and event is not None:
            live[record.key] = event
    return _InTopics(sorted(live.values(), key=_order), seen, newest)


async def changes(reader: TopicReader) -> AsyncIterator[FindingEvent]:
    """The open findings as they are, then every event after them, none twice and none lost."""
    held = await _open_findings(reader)
    for event in held.findings:
        yield event
    # From the beginning, so that nothing falls between the look and the following; the topic is short.
    async for record in reader.follow([VIOLATIONS], from_beginning=True):
        if record.offset > held.seen.get(record.partition, -1):
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


def _show(events: list[FindingEvent], output: str, not_judged: list[NotJudged] | None = None) -> None:
    """Print all open findings in one of the formats; a table says where none is open.

    `not_judged` is None where nobody says what it is: programs do not get the key then.
    """
    if output in ("json", "yaml"):
        left_out = {} if not_judged is None else {"notJudged": not_judged}
        show(versioned("Violations", {"violations": list(map(_advised, events)), **left_out}, output))
        return
    if output == "name":
        show("".join(f"{clean(f'{event.site}/{event.id}')}\n" for event in events))
        return
    if events:
        wide = output == "wide"
        show_tables([Table(WIDE if wide else HEADER, [_row(event, wide) for event in events])])
    else:
        show("No open findings.\n")
    show_not_judged(not_judged or ())


def render_event(event: FindingEvent, output: str) -> str:
    """One event in one line."""
    if output in ("json", "yaml"):
        return versioned("Violation", _advised(event), JSON_LINES if output == "json" else "yaml").rstrip("\n")
    if output == "name":
        return clean(f"{event.site}/{event.id} {event.state}")
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
