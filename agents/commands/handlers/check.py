"""`underhost check`: what is wrong with the running pods of a dump, with budgets and hosts.

In: dumps and an inventory. Out: a Report as table, JSON, YAML, names, SARIF or JUnit, its findings as CSV or Parquet.
Exit 1 where a finding is at or above `--fail-on`; that is what a CI job asks.
"""

import typer
from msgspec import structs

from underhost.agents.affinity.left_out import left_out_of
from underhost.agents.commands.input.offline import Scope, Site, faults_named, read_sites, say_changed
from underhost.agents.commands.input.options import Among, Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import kubectl_name, remedies
from underhost.agents.commands.output.errors import note
from underhost.agents.commands.output.report import show_report
from underhost.agents.evaluate.check import check
from underhost.agents.site.host_labels import proposed
from underhost.agents.site.owners import FINISHED
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding, pods_named
from underhost.schemas.severities import SEVERITIES, UNKNOWN_NODE

HEADER = ("SEVERITY", "RULE", "POD", "NODE", "MESSAGE")
WIDE_HEADER = ("SEVERITY", "RULE", "SOURCE", "POD", "NODE", "DOMAIN", "PEERS", "ID", "MESSAGE")
BUDGET_HEADER = ("BUDGET", "EXPECTED", "CURRENT", "DESIRED", "ALLOWED")


def handle(
    source: From, among: Among, output: str, fail_on: str, drift: bool, host_key: list[str] | None, watch: bool
) -> None:
    """Find violations, shared hosts, blocked budgets and drift among the running pods."""
    fails, last = False, None
    for picture in read_sites(source, Judged(host_key), manifests=False, watch=watch, drift=drift):
        report = _report(picture, Scope(picture.snapshot, among))
        if report == last:
            continue
        if last is not None:
            say_changed(output)
        elif key := proposed(picture.snapshot):
            note(f"the label {key} of nodes names their hosts; --host-label {key} judges by it")
        fails = show_report("check", report, picture.objects, output, fail_on, subject, tables)
        last = report
    if fails:
        raise typer.Exit(1)


def _report(site: Site, scope: Scope) -> Report:
    with faults_named(site.objects):
        report = check(site.snapshot, site.options)
    report = report if site.snapshot.nodes else _without_nodes(report)
    report = limited(report, site, scope) if scope.limited else report
    return structs.replace(report, not_judged=left_out_of(site.snapshot, scope.has if scope.limited else None))


def _without_nodes(report: Report) -> Report:
    """Of an input that holds no node at all, `notJudged` is enough: not one finding for every pod."""
    findings = [one for one in report.findings if one.severity != UNKNOWN_NODE]
    return Report(findings=findings, budgets=report.budgets, summary={**report.summary, UNKNOWN_NODE: 0})


def limited(report: Report, site: Site, scope: Scope) -> Report:
    """The report about the pods in scope: findings of none of them, and those of nodes alone, are left out."""
    findings = [one for one in report.findings if any(map(scope.has, pods_named(one)))]
    budgets = {
        name: figures
        for name, figures in report.budgets.items()
        if scope.namespace is None or name.partition("/")[0] == scope.namespace
    }
    pods = sum(1 for name, pod in site.snapshot.pods.items() if pod.status.phase not in FINISHED and scope.has(name))
    counts = {severity: sum(one.severity == severity for one in findings) for severity in SEVERITIES}
    return Report(findings=findings, budgets=budgets, summary={**report.summary, **counts, "pods": pods})


def tables(report: Report, wide: bool) -> list[Table]:
    """The findings, and with `wide` what ends them, and the budgets, for people."""
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
    return [Table(WIDE_HEADER, rows), remedies(report.findings), Table(BUDGET_HEADER, budgets)]


def _row(finding: Finding) -> tuple[str, str, str, str]:
    return finding.severity, finding.rule, finding.pod or "-", finding.node or "-"


def subject(finding: Finding) -> str:
    """What the finding is about, as kubectl names it."""
    if finding.pod is not None:
        return kubectl_name(finding.pod)
    return f"node/{finding.node}" if finding.node is not None else finding.object or finding.id
