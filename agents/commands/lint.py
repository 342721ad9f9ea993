"""`underhost lint`: what is wrong with the rules of manifests and dumps, wherever the pods are.

In: manifests, dumps and an inventory. Out: a Report as table, JSON, YAML, names, SARIF or JUnit; its findings name an
object and a field. Exit 1 where a finding is at or above `--fail-on`.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from underhost.agents.commands.check import JUNIT, NEVER, SARIF, summary
from underhost.agents.commands.offline import (
    ConfigOption,
    ContextOption,
    FilesOption,
    HostKeyOption,
    InventoryOption,
    KubeconfigOption,
    ServerOption,
    SiteOption,
    faults_named,
    read_site,
)

if TYPE_CHECKING:
    from underhost.agents.commands.offline import Site
    from underhost.agents.commands.output import Table
    from underhost.schemas.documents import Report
    from underhost.schemas.records import Finding

HEADER = ("SEVERITY", "RULE", "OBJECT", "FIELD", "MESSAGE")
WIDE_HEADER = ("SEVERITY", "RULE", "CHECK", "OBJECT", "FIELD", "ID", "MESSAGE")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def lint(
        files: FilesOption = None,
        inventory: InventoryOption = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        site: SiteOption = None,
        config: ConfigOption = None,
        output: Annotated[str, typer.Option("--output", "-o", help="table|wide|json|yaml|name|sarif|junit")] = "table",
        fail_on: Annotated[
            str, typer.Option("--fail-on", metavar="SEVERITY", help="Exit 1 from this severity upwards, or never.")
        ] = "unsatisfiable",
        host_key: HostKeyOption = None,
    ) -> None:
        """Find rules that can never work, or do nothing, in manifests and dumps."""
        from underhost.agents.commands.output import FORMATS
        from underhost.agents.commands.plain import one_of
        from underhost.agents.commands.sources import From
        from underhost.agents.engine.findings import SEVERITIES, at_or_above
        from underhost.agents.engine.lint import lint

        one_of("--output", output, (*FORMATS, SARIF, JUNIT))
        one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))
        picture = read_site(
            From(files, inventory, kubeconfig, context, server, site, config), manifests=True, host_keys=host_key
        )
        objects = picture.objects
        with faults_named(objects):
            report = lint(picture.snapshot, picture.options, objects.others, objects.misspelled, objects.makers)
        failing = [one for one in report.findings if fail_on != NEVER and at_or_above(one.severity, fail_on)]
        _print(report, picture, output, failing)
        if failing:
            raise typer.Exit(1)


def _print(report: "Report", site: "Site", output: str, failing: list["Finding"]) -> None:
    from underhost.agents.commands import output as out

    if output in (out.JSON, out.YAML):
        out.show(out.document(report, output))
    elif output == SARIF:
        from underhost.agents.commands.reports import sarif

        out.show(sarif(report.findings, site.objects))
    elif output == JUNIT:
        from underhost.agents.commands.reports import junit

        out.show(junit("underhost lint", report.findings, {one.id for one in failing}))
    elif output == out.NAME:
        from underhost.agents.commands.plain import clean

        out.show("".join(f"{clean(one.object or '')}\n" for one in report.findings))
    else:
        out.show_tables([table(report, output == out.WIDE)])
        out.show(f"{summary(report)}\n")


def table(report: "Report", wide: bool) -> "Table":
    """The findings for people."""
    from underhost.agents.commands.output import Table

    if wide:
        rows = [
            (one.severity, one.rule, one.source or "", one.object or "", one.field or "", one.id, one.message)
            for one in report.findings
        ]
        return Table(WIDE_HEADER, rows)
    return Table(HEADER, [(o.severity, o.rule, o.object or "", o.field or "", o.message) for o in report.findings])
