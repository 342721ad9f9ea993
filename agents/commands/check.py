"""`underhost check`: what is wrong with the running pods of a dump, with budgets and hosts.

In: dumps and an inventory. Out: a Report as table, JSON, YAML, names, SARIF or JUnit, its findings as CSV or Parquet.
Exit 1 where a finding is at or above `--fail-on`; that is what a CI job asks.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from underhost.agents.commands.input.offline import Scope, Site, faults_named, read_sites, say_changed
from underhost.agents.commands.input.options import (
    NEVER,
    Among,
    FailOnOption,
    HostKeyOption,
    Judged,
    WatchOption,
    grouped,
    output_option,
)
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.documents import CSV, JUNIT, PARQUET, REPORT_FORMATS, SARIF
from underhost.agents.commands.output.files import csv, parquet, refuse_terminal
from underhost.schemas.severities import PHYSICAL, SEVERITIES, at_or_above

if TYPE_CHECKING:
    from underhost.agents.commands.output.documents import Table
    from underhost.schemas.documents import Report
    from underhost.schemas.records import Finding

HEADER = ("SEVERITY", "RULE", "POD", "NODE", "MESSAGE")
WIDE_HEADER = ("SEVERITY", "RULE", "SOURCE", "POD", "NODE", "DOMAIN", "PEERS", "ID", "MESSAGE")
BUDGET_HEADER = ("BUDGET", "EXPECTED", "CURRENT", "DESIRED", "ALLOWED")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Find what is wrong with the running pods.")
    @grouped
    def check(
        *,
        source: From,
        among: Among,
        output: Annotated[str, output_option(REPORT_FORMATS)] = "table",
        fail_on: FailOnOption = PHYSICAL,
        drift: Annotated[bool, typer.Option("--drift", help="Also preferences that another node would meet.")] = False,
        host_key: HostKeyOption = None,
        watch: WatchOption = False,
    ) -> None:
        """Find violations, shared hosts, blocked budgets and drift among the running pods."""
        from underhost.agents.commands.output.columns import one_of

        one_of("--output", output, REPORT_FORMATS)
        refuse_terminal(output, watch=watch)
        one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))
        failing: list[Finding] = []
        last = None
        for picture in read_sites(source, Judged(host_key), manifests=False, watch=watch, drift=drift):
            report = _report(picture, Scope(picture.snapshot, among))
            if report == last:
                continue
            if last is not None:
                say_changed(output)
            failing = [one for one in report.findings if fail_on != NEVER and at_or_above(one.severity, fail_on)]
            show_report("check", report, picture, output, failing, subject, partial(tables, report))
            last = report
        if failing:
            raise typer.Exit(1)


def _report(site: Site, scope: Scope) -> "Report":
    from underhost.agents.evaluate.check import check

    with faults_named(site.objects):
        report = check(site.snapshot, site.options)
    return limited(report, site, scope) if scope.limited else report


def limited(report: "Report", site: Site, scope: Scope) -> "Report":
    """The report about the pods in scope: findings of none of them, and those of nodes alone, are left out."""
    from underhost.agents.site.owners import FINISHED
    from underhost.schemas.documents import Report

    findings = [one for one in report.findings if any(scope.has(pod) for pod in (one.pod, *one.peers) if pod)]
    budgets = {
        name: figures
        for name, figures in report.budgets.items()
        if scope.namespace is None or name.partition("/")[0] == scope.namespace
    }
    pods = sum(1 for name, pod in site.snapshot.pods.items() if pod.status.phase not in FINISHED and scope.has(name))
    counts = {severity: sum(one.severity == severity for one in findings) for severity in SEVERITIES}
    return Report(findings=findings, budgets=budgets, summary={**report.summary, **counts, "pods": pods})


def show_report(
    command: str,
    report: "Report",
    site: Site,
    output: str,
    failing: list["Finding"],
    name: Callable[["Finding"], str],
    tables: Callable[[bool], list["Table"]],
) -> None:
    """The report in one of its formats; `name` is what a finding is about, `tables` (wide or not) are for people."""
    from underhost.agents.commands.output import documents as out

    if output in (out.JSON, out.YAML):
        out.show(out.document(report, output))
    elif output == SARIF:
        from underhost.agents.commands.output.ci import sarif

        out.show(sarif(report.findings, site.objects))
    elif output == JUNIT:
        from underhost.agents.commands.output.ci import junit

        out.show(junit(f"underhost {command}", report.findings, {one.id for one in failing}))
    elif output in (CSV, PARQUET):
        from underhost.agents.evaluate.tables import findings

        frame = findings(report.findings)
        out.show(csv(frame) if output == CSV else parquet(frame))
    elif output == out.NAME:
        from underhost.agents.commands.output.columns import clean

        out.show("".join(f"{clean(name(one))}\n" for one in report.findings))
    else:
        out.show_tables(tables(output == out.WIDE))
        out.show(f"{summary(report)}\n")


def tables(report: "Report", wide: bool) -> list["Table"]:
    """The findings, and with `wide` the budgets, for people."""
    from underhost.agents.commands.output.documents import Table

    if not wide:
        return [Table(HEADER, [(*_row(one), one.message) for one in report.findings])]
    rows = []
    for one in report.findings:
        severity, rule, pod, node = _row(one)
        domain = f"{one.domain.key}={one.domain.value}" if one.domain is not None else "-"
        rows.append(
            (severity, rule, one.source or "-", pod, node, domain, ",".join(one.peers) or "-", one.id, one.message)
        )
    budgets = [
        (name, str(one.expected), str(one.current), str(one.desired), str(one.allowed))
        for name, one in sorted(report.budgets.items())
    ]
    return [Table(WIDE_HEADER, rows), Table(BUDGET_HEADER, budgets)]


def _row(finding: "Finding") -> tuple[str, str, str, str]:
    return finding.severity, finding.rule, finding.pod or "-", finding.node or "-"


def subject(finding: "Finding") -> str:
    """What the finding is about, as kubectl names it."""
    if finding.pod is not None:
        return f"pod/{finding.pod}"
    return f"node/{finding.node}" if finding.node is not None else finding.object or finding.id


def summary(report: "Report") -> str:
    """One line: what was looked at, and how many findings of each severity."""
    from underhost.agents.commands.output.documents import counted

    counts = report.summary
    seen = f"{counted(counts['pods'], 'pod')}, {counted(counts['nodes'], 'node')}, {counted(counts['hosts'], 'host')}"
    found = [f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]]
    return f"{seen}: {', '.join(found) if found else 'no findings'}"
