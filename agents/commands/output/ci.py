"""Findings for CI systems: SARIF 2.1.0 for code scanning, JUnit XML for test reports.

In: findings of `check` or `lint`. Out: text. Equal findings give equal bytes: no times, no host names.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import msgspec

from underhost.agents.alerts.alert import is_on_the_web, runbook_of
from underhost.agents.commands.output.columns import clean
from underhost.schemas.records import Finding
from underhost.schemas.severities import BY_NAME, remedy_of
from underhost.streams.files.objects import Objects

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Sequence[Finding], objects: Objects, runbooks: str) -> str:
    """A SARIF log with one run; a result's fingerprint is the finding's id, its place the line where the object begins.

    `runbooks` is where docs/runbooks can be read; only an address of the web is one that SARIF takes (`helpUri`).
    """
    from underhost.streams.files.lines import lines_of  # PyYAML: 10 ms, which only SARIF needs

    lines = {file: lines_of(file) for file in sorted({_place(one, objects)[1] for one in findings})}
    rules = sorted({(one.severity, one.rule) for one in findings})
    of_field = any(one.field for one in findings)
    run = {
        "tool": {
            "driver": {
                "name": "underhost",
                "rules": [_rule(severity, rule, runbooks, of_field) for severity, rule in rules],
            }
        },
        "columnKind": "utf16CodeUnits",
        "results": [_result(one, rules.index((one.severity, one.rule)), objects, lines) for one in findings],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log, order="sorted"), indent=2).decode() + "\n"


def _rule(severity: str, rule: str, runbooks: str, of_field: bool) -> dict[str, Any]:
    described = {
        "id": f"{severity}/{rule}",
        "name": rule,
        "shortDescription": {"text": f"{rule}: {severity}"},
        "help": {"text": f"{BY_NAME[severity].meaning} {remedy_of(severity, rule, of_field=of_field)}"},
        "defaultConfiguration": {"level": BY_NAME[severity].report},
    }
    if is_on_the_web(runbooks):
        described["helpUri"] = runbook_of(severity, rule, runbooks)
    return described


def _place(finding: Finding, objects: Objects) -> tuple[str, str]:
    """`Kind/namespace/name` of what a finding is about, and its file."""
    label = "/".join(_subject(finding))
    return label, objects.origins.get(label, objects.first_file)


def _result(finding: Finding, rule: int, objects: Objects, lines: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    label, file = _place(finding, objects)
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": label, "kind": "resource"}]}
    if file:
        region = {"startLine": lines[file].get(label, 1)}
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(file)}, "region": region}
    return {
        "ruleId": f"{finding.severity}/{finding.rule}",
        "ruleIndex": rule,
        "level": BY_NAME[finding.severity].report,
        "message": {"text": finding.message},
        "locations": [location],
        "partialFingerprints": {"underhostFinding/v1": finding.id},
    }


def _subject(finding: Finding) -> tuple[str, str]:
    if finding.pod is not None:
        return "Pod", finding.pod
    if finding.object is not None:
        kind, _, name = finding.object.partition("/")
        return kind, name
    return "Node", finding.node or ""


def _uri(file: str) -> str:
    return quote(file.replace("\\", "/"))


def junit(suite: str, findings: Sequence[Finding], failing: Collection[str]) -> str:
    """A test suite: one case for each finding, failed where its id is in `failing`; without findings one passes.

    Texts are cleaned: XML knows no control characters, not even escaped.
    """
    root = ElementTree.Element("testsuites", name="underhost")
    cases = ElementTree.SubElement(
        root,
        "testsuite",
        name=suite,
        tests=str(max(1, len(findings))),
        failures=str(sum(one.id in failing for one in findings)),
        errors="0",
        skipped="0",
        time="0",
    )
    if not findings:
        ElementTree.SubElement(cases, "testcase", classname="underhost", name="no findings", time="0")
    for one in findings:
        kind, name = _subject(one)
        case = ElementTree.SubElement(
            cases,
            "testcase",
            classname=clean(f"{one.severity}.{one.rule}"),
            name=clean(f"{kind}/{name} {one.id}"),
            time="0",
        )
        if one.id in failing:
            failure = ElementTree.SubElement(case, "failure", type=one.severity, message=clean(one.reason))
            failure.text = clean(one.message)
        else:
            ElementTree.SubElement(case, "system-out").text = clean(one.message)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
