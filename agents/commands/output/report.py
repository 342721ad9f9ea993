"""A report of `check` or `lint`, printed in the format that `-o` names.

In: the report, and what its command says of it. Out: text or bytes on standard output. A format for programs is a line
of `WRITERS`; whatever is not in it is tables for people.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output.ci import junit, sarif
from underhost.agents.commands.output.columns import Table, clean
from underhost.agents.commands.output.documents import counted
from underhost.agents.commands.output.files import csv, parquet
from underhost.agents.commands.output.formats import CSV, JSON, JUNIT, NAME, PARQUET, SARIF, WIDE, YAML
from underhost.agents.evaluate.tables import findings
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding
from underhost.schemas.severities import SEVERITIES
from underhost.streams.files.objects import Objects


@dataclass(frozen=True)
class ReportView:
    """A report with what is needed to print it.

    Attributes:
        command: the one that made it. objects: what was read, for the files that findings are about.
        failing: ids of the findings that make the command exit with 1. subject: what a finding is about, by name.
        tables: the report for people, wide or not.
    """

    command: str
    report: Report
    objects: Objects
    failing: Collection[str]
    subject: Callable[[Finding], str]
    tables: Callable[[Report, bool], list[Table]]


WRITERS: Mapping[str, Callable[[ReportView], str | bytes]] = {
    JSON: lambda view: out.document(view.report, JSON),
    YAML: lambda view: out.document(view.report, YAML),
    NAME: lambda view: "".join(f"{clean(view.subject(one))}\n" for one in view.report.findings),
    SARIF: lambda view: sarif(view.report.findings, view.objects),
    JUNIT: lambda view: junit(f"underhost {view.command}", view.report.findings, view.failing),
    CSV: lambda view: csv(findings(view.report.findings)),
    PARQUET: lambda view: parquet(findings(view.report.findings)),
}


def show_report(view: ReportView, output: str) -> None:
    """Print the report."""
    writer = WRITERS.get(output)
    if writer is not None:
        out.show(writer(view))
        return
    out.show_tables(view.tables(view.report, output == WIDE))
    out.show(f"{summary(view.report)}\n")


def summary(report: Report) -> str:
    """One line: what was looked at, and how many findings of each severity."""
    counts = report.summary
    seen = f"{counted(counts['pods'], 'pod')}, {counted(counts['nodes'], 'node')}, {counted(counts['hosts'], 'host')}"
    found = [f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]]
    return f"{seen}: {', '.join(found) if found else 'no findings'}"
