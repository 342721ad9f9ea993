"""`underhost lint`: what is wrong with the rules of manifests and dumps, wherever the pods are.

In: manifests, dumps and an inventory. Out: a Report as table, JSON, YAML, names, SARIF or JUnit, its findings as CSV
or Parquet; these name an object and a field. Exit 1 where a finding is at or above `--fail-on`.
"""

import typer
from msgspec import structs

from underhost.agents.commands.input.offline import faults_named, read_site
from underhost.agents.commands.input.options import Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import kubectl_name, remedies
from underhost.agents.commands.output.report import show_report
from underhost.agents.lint.report import lint
from underhost.agents.site.not_judged import places_not_judged
from underhost.schemas.documents import Report
from underhost.schemas.records import Finding

HEADER = ("SEVERITY", "RULE", "OBJECT", "FIELD", "MESSAGE")
WIDE_HEADER = ("SEVERITY", "RULE", "CHECK", "OBJECT", "FIELD", "ID", "MESSAGE")


def handle(source: From, output: str, fail_on: str, host_key: list[str] | None) -> None:
    """Find rules that can never work, or do nothing, in manifests and dumps."""
    picture = read_site(source, Judged(host_key), manifests=True)
    objects = picture.objects
    with faults_named(objects):
        report = lint(picture.snapshot, picture.options, objects.others, objects.misspelled, objects.makers)
    report = structs.replace(report, not_judged=places_not_judged(picture.snapshot))
    if show_report("lint", report, objects, output, fail_on, _subject, tables):
        raise typer.Exit(1)


def _subject(finding: Finding) -> str:
    kind, _, name = (finding.object or "").partition("/")
    return kubectl_name(name, kind)


def tables(report: Report, wide: bool) -> list[Table]:
    """The findings for people."""
    if wide:
        rows = [
            (one.severity, one.rule, one.source or "", one.object or "", one.field or "", one.id, one.message)
            for one in report.findings
        ]
        return [Table(WIDE_HEADER, rows), remedies(report.findings)]
    return [Table(HEADER, [(o.severity, o.rule, o.object or "", o.field or "", o.message) for o in report.findings])]
