"""How commands print their answers: tables for people, versioned JSON and YAML for programs.

In: a document and rows. Out: text. Columns are kubectl's where nobody looks; on a terminal they are a table with
colour (`terminal.py`).
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec
import typer

from underhost.agents.alerts.alert import runbook_of
from underhost.agents.commands.output import progress
from underhost.agents.commands.output.columns import Table, clean, columns
from underhost.agents.commands.output.formats import JSON, JSON_LINES, NAME, YAML
from underhost.schemas.documents import API_VERSION, NotJudged, to_builtins
from underhost.schemas.records import Finding
from underhost.schemas.severities import remedy_of

REMEDY_HEADER = ("SEVERITY", "RULE", "REMEDY", "RUNBOOK")


def document(value: msgspec.Struct, output: str) -> str:
    """The document as indented JSON or as YAML, keys sorted."""
    tree = to_builtins(value)
    _complete_all(tree)
    return _encoded(tree, output, width=120)


def versioned(kind: str, content: Any, output: str) -> str:
    """A versioned document of what is no struct of its own: a struct or a mapping of fields, with its kind."""
    fields = msgspec.to_builtins(content, order="sorted")
    return _encoded({**fields, "apiVersion": API_VERSION, "kind": kind}, output, width=80)


def _encoded(tree: dict[str, Any], output: str, width: int) -> str:
    """Keys sorted; `output` is json (indented), jsonl (one line) or yaml, whose lines are folded at `width`."""
    if output == YAML:
        import yaml  # 20 ms, which only this format needs

        return "---\n" + yaml.safe_dump(tree, sort_keys=True, allow_unicode=True, width=width)
    line = msgspec.json.encode(tree, order="sorted")
    return (line if output == JSON_LINES else msgspec.json.format(line, indent=2)).decode() + "\n"


def _complete_all(tree: dict[str, Any]) -> None:
    """The findings of a document, and of the documents in a list."""
    for part in ("findings", "newFindings", "resolvedFindings", "leftFindings"):
        for finding in tree.get(part, ()):
            _complete(finding)
            finding.update(advice(finding["severity"], finding["rule"], of_field="field" in finding))
    for item in tree.get("items", ()):
        _complete_all(item)


@cache
def advice(severity: str, rule: str, *, of_field: bool = False) -> dict[str, str]:
    """What ends such findings, those of lint (`of_field`) or others, and where their runbook is."""
    return {"remedy": remedy_of(severity, rule, of_field=of_field), "runbook": runbook_of(severity, rule)}


def _complete(finding: dict[str, object]) -> None:
    """A finding about pods or nodes has all of these keys, null where there is nothing to say."""
    if "pod" in finding or "node" in finding:
        for key in ("pod", "node", "domain", "source"):
            finding.setdefault(key, None)
        finding.setdefault("peers", [])


def show(content: str | bytes) -> None:
    """Print what has its own line end, or the bytes of a file; a closed pipe is the caller's to notice."""
    progress.end()
    typer.echo(content, nl=False)


def say(sentence: str) -> None:
    """Print a sentence, without what could harm a terminal; on one in lines that fit, which break between words."""
    sentence = clean(sentence)
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        sentence = textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
    show(f"{sentence}\n")


def kubectl_name(name: str, kind: str = "pod") -> str:
    """A line for `xargs -L1 kubectl get`: `-n NS pod/NAME`; without a namespace `kind/NAME`."""
    namespace, slash, rest = name.rpartition("/")
    return f"-n {namespace} {kind}/{rest}" if slash else f"{kind}/{rest}"


def show_for_programs(answer: msgspec.Struct, output: str, names: Iterable[str] = ()) -> bool:
    """Print an answer as JSON or YAML, or the names of what it is about; whether a program is to read it."""
    if output in (JSON, YAML):
        show(document(answer, output))
    elif output == NAME:
        show("".join(f"{clean(name)}\n" for name in names))
    return output in (JSON, YAML, NAME)


def show_tables(tables: Iterable[Table]) -> None:
    """Print tables one below the other; where standard output is a terminal with lines that fit, and in colour."""
    progress.end()
    shown = [table for table in tables if table.rows]
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from underhost.agents.commands.output.terminal import show_on_terminal  # rich: 50 ms, which files do not need

        show_on_terminal(shown)
        return
    show("\n".join(columns(table.header, table.rows) for table in shown))


def show_not_judged(left_out: Sequence[NotJudged]) -> None:
    """The last line below the tables: what they say nothing about; nothing where all was judged."""
    if left_out:
        say("Not judged: " + ", ".join(f"{one.what} ({one.why})" for one in left_out))


def remedies(findings: Sequence[Finding]) -> Table:
    """What ends these findings, once for each severity and rule."""
    kinds = dict.fromkeys((one.severity, one.rule, one.field is not None) for one in findings)
    rows = [(severity, rule, *advice(severity, rule, of_field=of_field).values()) for severity, rule, of_field in kinds]
    return Table(REMEDY_HEADER, rows)


def available(nodes: int, reasons: dict[str, int]) -> str:
    """Upstream's line (framework/types.go, FitError): `0/7 nodes are available: 3 node(s) …, 4 node(s) ….`"""
    listed = sorted(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(listed)}." if listed else "")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
