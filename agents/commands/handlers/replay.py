"""`underhost replay`: a site as it was, judged anew from the topics.

In: the topics, on Kafka or the embedded log, and a moment. Out: the report as `check` has it, or with `--pod` what
`explain` says of a pod then. Exit 1 where `check` has it; 2 where the history does not reach so
far back; 3 when nobody answers.
"""

import asyncio
import time

import typer
from msgspec import structs

from underhost.agents.affinity.left_out import left_out_of
from underhost.agents.commands.handlers.check import tables
from underhost.agents.commands.handlers.explain import explained, show_explanation
from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output import progress
from underhost.agents.commands.output.formats import WIDE
from underhost.agents.commands.output.report import failing, summary
from underhost.agents.evaluate.check import check
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.pipeline.tables.sites import joining_of
from underhost.agents.snapshots.history import SiteHistory
from underhost.agents.snapshots.times import parse_time
from underhost.schemas.errors import InputError
from underhost.streams.reader import open_reader
from underhost.streams.settings.model import Settings


def handle(at: str, pod: list[str] | None, site: str | None, output: str, fail_on: str, where: Topics) -> None:
    """Judge a site as it was at a time of the last day, from what the topics hold."""
    settings = settings_of(where)
    try:
        moment = parse_time(at)
    except InputError as error:
        raise InputError(f"--at {error}") from None
    if moment > time.time() * 1000 + 1:  # a moment is rounded to the millisecond
        raise InputError(f"--at {at}: this is still to come; a time of the last day is expected")
    past = asyncio.run(_read(settings, site or settings.site))
    progress.say("judging the site as it was")
    snapshot, options = past.at(moment), options_of(settings)
    if pod:
        explanation = explained(snapshot, options, pod)
        if not out.show_for_programs(explanation, output):
            show_explanation(explanation, output == WIDE)
        return

    report = structs.replace(check(snapshot, options), not_judged=left_out_of(snapshot))
    if not out.show_for_programs(report, output):
        out.show_tables(tables(report, output == WIDE))
        out.say(summary(report))
        out.show_not_judged(report.not_judged)
    if failing(report, fail_on):
        raise typer.Exit(1)


async def _read(settings: Settings, site: str) -> SiteHistory:
    records = 0

    def heard() -> None:
        nonlocal records
        records += 1
        if records % 1000 == 0:
            progress.say(f"reading the topics: {records:,} records")

    progress.say("reading the topics")
    return await SiteHistory.read(open_reader(settings.kafka), site, heard, joining=joining_of(settings))
