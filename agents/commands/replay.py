"""`underhost replay`: a site as it was, judged anew from the topics.

In: the topics, on Kafka or the embedded log, and a moment. Out: the report as `check` has it, or with `--pod` what
`explain` says of a pod then. Exit 0; 2 where the history does not reach so far back; 3 when nobody answers.
"""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from underhost.agents.commands.input.options import Topics, grouped, output_option
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output import progress

if TYPE_CHECKING:
    from underhost.agents.snapshots.history import Past
    from underhost.streams.settings.model import Settings

FORMATS = ("table", "wide", "json", "yaml")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Judge a site as it was at a time.")
    @grouped
    def replay(
        *,
        at: Annotated[str, typer.Option("--at", metavar="TIME", help="2026-11-21T03:00:00Z, or 10m: so long ago.")],
        pod: Annotated[list[str] | None, typer.Option(metavar="NS/NAME", help="Explain this pod (repeatable).")] = None,
        site: Annotated[str | None, typer.Option(metavar="NAME", help="The site; absent: the configuration's.")] = None,
        output: Annotated[str, output_option(FORMATS)] = "table",
        where: Topics,
    ) -> None:
        """Judge a site as it was at a time of the last day, from what the topics hold."""
        from underhost.agents.commands import check, explain
        from underhost.agents.commands.output import documents as out
        from underhost.agents.commands.output.columns import one_of
        from underhost.agents.pipeline.decide.restored import options_of
        from underhost.agents.snapshots.moments import moment_of

        one_of("--output", output, FORMATS)
        moment, settings = moment_of(at), settings_of(where)
        past = asyncio.run(_read(settings, site or settings.site))
        progress.say("judging the site as it was")
        snapshot, options = past.at(moment), options_of(settings)
        if pod:
            from underhost.agents.schedule.explain import explain as explain_pods

            explanation = explain_pods(snapshot, options, pod)
            if output in (out.JSON, out.YAML):
                out.show(out.document(explanation, output))
            else:
                explain.show_explanation(explanation, output == out.WIDE)
            return
        from underhost.agents.evaluate.check import check as check_all

        report = check_all(snapshot, options)
        if output in (out.JSON, out.YAML):
            out.show(out.document(report, output))
        else:
            out.show_tables(check.tables(report, output == out.WIDE))
            out.show(f"{check.summary(report)}\n")


async def _read(settings: "Settings", site: str) -> "Past":
    from underhost.agents.snapshots.history import Past
    from underhost.streams.reader import open_reader

    records = 0

    def heard() -> None:
        nonlocal records
        records += 1
        if records % 1000 == 0:
            progress.say(f"reading the topics: {records:,} records")

    progress.say("reading the topics")
    return await Past.read(open_reader(settings.kafka), site, heard)
