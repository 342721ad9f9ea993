"""A report of `check` or `lint`, printed in the format that `-o` names.

In: the report, and what its command says of it. Out: text or bytes on standard output, and whether the command fails.
"""

from collections.abc import Callable

from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output.ci import junit, sarif
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import counted
from underhost.agents.commands.output.files import csv, parquet
from underhost.agents.commands.output.formats import CSV, JUNIT, NEVER, PARQUET, SARIF, WIDE
from underhost.agents.evaluate.tables import findings
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding
from underhost.schemas.severities import SEVERITIES, at_or_above
from underhost.streams.files.objects import Objects


def show_report(
    command: str,
    report: Report,
    objects: Objects,
    output: str,
    fail_on: str,
    subject: Callable[[Finding], str],
    tables: Callable[[Report, bool], list[Table]],
) -> bool:
    """Print the report of a command, and return whether a finding is at or above `fail_on`.

    Args:
        objects: what was read, for the files that findings are about.
        subject: what a finding is about, by name.
        tables: the report for people, wide or not.
    """
    found = report.findings
    fails = failing(report, fail_on)
    writers: dict[str, Callable[[], str | bytes]] = {
        SARIF: lambda: sarif(found, objects, _runbooks()),
        JUNIT: lambda: junit(f"underhost {command}", found, fails),
        CSV: lambda: csv(findings(found)),
        PARQUET: lambda: parquet(findings(found)),
    }
    if output in writers:
        out.show(writers[output]())
    elif not out.show_for_programs(report, output, map(subject, found)):
        out.show_tables(tables(report, output == WIDE))
        out.say(summary(report))
        out.show_not_judged(report.not_judged)
    return bool(fails)


def _runbooks() -> str:
    """Where the runbooks can be read, as the environment says (`UNDERHOST_ALERTING__RUNBOOKS`). Raises InputError."""
    from underhost.streams.settings.load import load  # pydantic: 0.1 s, which only SARIF needs

    return load().alerting.runbooks


def failing(report: Report, fail_on: str) -> set[str]:
    """The ids of the findings at or above a severity; none are where it is `never`."""
    return {one.id for one in report.findings if fail_on != NEVER and at_or_above(one.severity, fail_on)}


def summary(report: Report) -> str:
    """One line: what was looked at, and how many findings of each severity."""
    counts = report.summary
    seen = f"{counted(counts['pods'], 'pod')}, {counted(counts['nodes'], 'node')}, {counted(counts['hosts'], 'host')}"
    found = [f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]]
    return f"{seen}: {', '.join(found) if found else 'no findings'}"
