"""Writes docs/reference from the code: `make docs`. A test compares every page with what this writes today."""

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from underhost.agents.commands.application import build
from underhost.agents.commands.handlers.asyncapi import asyncapi_text
from underhost.agents.http import openapi
from underhost.agents.http.extender import ExtenderMetrics
from underhost.agents.lint.report import CHECKS
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.rules import REGISTRY
from underhost.schemas import severities as severity_table
from underhost.schemas.commands import WRITTEN
from underhost.schemas.frames import PUBLISHED
from underhost.schemas.topics import TOPICS
from underhost.streams.settings import model as settings

WIDTH = 100
MADE = "<!-- Written by docs/generate.py from the code: `make docs`. -->\n"


def cli() -> str:
    """Every command with its help."""
    text = (
        f"# Command line\n\n{MADE}\nExit codes: 0 and 1 are answers, 2 is bad usage, file or configuration,\n"
        "3 a backend that is unreachable, refuses or is stale.\n"
    )
    for path, command in _commands(typer.main.get_command(build()), ("underhost",)):
        context = typer.Context(command, info_name=" ".join(path), terminal_width=WIDTH, max_content_width=WIDTH)
        text += f"\n## {' '.join(path)}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    return text


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if len(path) == 1 or not hasattr(command, "commands"):
        yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


def config() -> str:
    """Every setting, by its path in the file."""
    text = (
        f"# Configuration\n\n{MADE}\n"
        "`underhost run --config FILE`; each setting can be overridden by the environment\n"
        "(`UNDERHOST_KAFKA__BOOTSTRAP_SERVERS`; a list of texts with commas), and some by flags. Unknown keys are\n"
        "refused.\n"
        "`underhost config print` shows what a worker would run with, `underhost config schema` the JSON Schema.\n\n"
        "| setting | default | |\n|---|---|---|\n"
    )
    for place, type_, default, about in _settings(settings.Settings, ""):
        text += f"| `{place}` | {_code(default)} | {_cell(f'{type_}. {about}' if about else type_)} |\n"
    return text


def _settings(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    told = _field_docs(model)
    for name, field in model.model_fields.items():
        place = prefix + (field.alias or name)
        inner = _model_in(field.annotation)
        many = get_origin(field.annotation) is tuple
        if inner is not None:
            yield from _settings(inner, f"{place}{'[]' if many else ''}.")
            continue
        default = "" if field.default is PydanticUndefined else _shown(field.default)
        yield place, _type_name(field.annotation), default, told.get(name, "")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for one in (annotation, *get_args(annotation)):
        if inspect.isclass(one) and issubclass(one, BaseModel):
            return one
    return None


def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """The strings below the fields of a model; what the switches of sinks say is in their table."""
    found = {row.setting: row.about for row in WRITTEN.values() if row.about} if model is settings.SinkSettings else {}
    source = ast.parse(inspect.getsource(sys.modules[model.__module__]))
    written = (node.body for node in source.body if isinstance(node, ast.ClassDef) and node.name == model.__name__)
    fields = next(written, [])  # none of a model that is made from a table
    for field, below in pairwise(fields):
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
            found[field.target.id] = " ".join(text.split())
    return found


def _type_name(annotation: Any) -> str:
    plain = {"str": "text", "bool": "true or false", "int": "number", "float": "seconds", "Path": "file"}
    options = [one for one in get_args(annotation) if one is not type(None)]
    if get_origin(annotation) is tuple:
        return f"list of {_type_name(options[0])}"
    if options and all(isinstance(one, str) for one in options):
        return " or ".join(f"`{one}`" for one in options)
    if len(options) == 1 or (options and not inspect.isclass(annotation)):
        return _type_name(options[0])
    return plain.get(getattr(annotation, "__name__", ""), "text")


def _shown(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def topics() -> str:
    """The table of topics."""
    text = (
        f"# Topics\n\n{MADE}\nAsyncAPI: [asyncapi.yaml](asyncapi.yaml); two consumers to start from:\n"
        "[consume.py](../examples/consume.py), [consume.sh](../examples/consume.sh).\n"
        "Keys are `SITE/kind/namespace/name`, the partition is murmur2(site) modulo the number of partitions.\n\n"
        "| topic | clean-up | key | record | written by | read by | |\n|---|---|---|---|---|---|---|\n"
    )
    for topic in TOPICS:
        record = f"`{topic.record.__name__}`" if topic.record else "the original bytes"
        row = (
            f"`{topic.name}`",
            topic.cleanup,
            topic.key,
            record,
            topic.producer,
            ", ".join(topic.consumers),
            topic.doc,
        )
        text += f"| {' | '.join(row)} |\n"
    return text


def rules() -> str:
    """Every rule: what it says, its weight and its reasons."""
    text = (
        f"# Rules\n\n{MADE}\nIn upstream's filter order; named as in kube-scheduler, whose plugins they agree with"
        " ([parity](../parity.md)).\nEach is asked for placement, violations, plans and by the extender alike.\n"
    )
    for name, rule in REGISTRY.items():
        module = sys.modules[f"underhost.agents.rules.{_snake(name)}"]
        first, *rest = (module.__doc__ or "").strip().split("\n\n")
        reasons = [value for key, value in vars(module).items() if key.startswith("REASON_")]
        about = first.partition(": ")[2] or first
        text += f"\n## {name}\n\n{about[0].upper()}{about[1:]}\n"
        text += "".join(f"\n{part}\n" for part in rest)
        text += f"\nWeight of its score: {rule.WEIGHT}.\n" if rule.WEIGHT else ""
        text += "".join(f"\n- `{reason.format('…')}`" for reason in reasons) + ("\n" if reasons else "")
    return text


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


def lint() -> str:
    """Every check of lint."""
    text = f"# Checks of `underhost lint`\n\n{MADE}\n"
    text += "| check | severity | why | where that is written |\n|---|---|---|---|\n"
    for check in sorted(CHECKS, key=lambda one: one.name):
        text += f"| `{check.name}` | {check.severity} | {_cell(check.why)} | {_cell(check.source)} |\n"
    return text


def frames() -> str:
    """Every table of the evaluator, with its columns."""
    text = (
        f"# Tables of the evaluator\n\n{MADE}\nThe evaluator holds a site as polars frames with these columns, in this"
        " order. `underhost check`\nand `lint` write the table `findings` with `-o csv` and `-o parquet`. In Python"
        " there are all of\nthem: [tables.py](../examples/tables.py) lists what each host carries.\n"
    )
    for table in PUBLISHED:
        text += f"\n## {table.name}\n\n{table.meaning}\n\n| column | type | |\n|---|---|---|\n"
        for column in table.columns:
            type_ = f"{column.type_name} or null" if column.optional else column.type_name
            text += f"| `{column.name}` | {type_} | {_cell(column.meaning)} |\n"
    return text


def severities() -> str:
    """The table of severities."""
    text = f"# Severities\n\n{MADE}\nWorst first: `--fail-on S` and `alerting.severity` count S and what is above.\n\n"
    text += "| severity | meaning | evictions can repair it | alert | SARIF | Event |\n|---|---|---|---|---|---|\n"
    remedies = "\n## Remedies\n\nWhat ends a finding: `remedy` of JSON, alerts and `-o wide`. Of lint's it is "
    remedies += f"always: {severity_table.OF_A_FIELD}\n"
    remedies += "\n| severity | rule | remedy |\n|---|---|---|\n"
    for row in severity_table.ROWS:
        repair = "" if not row.repairable else "yes" if row.grave else "where asked for"
        text += (
            f"| `{row.name}` | {row.meaning} | {repair} | {row.alert} | {row.report} | {row.event} `{row.reason}` |\n"
        )
        by_rule = [*((f"`{rule}`", remedy) for rule, remedy in row.remedies.items()), ("", row.remedy)]
        remedies += "".join(f"| `{row.name}` | {rule} | {_cell(remedy)} |\n" for rule, remedy in by_rule)
    return text + remedies


def metrics() -> str:
    """Every metric of `/metrics`."""
    text = f"# Metrics\n\n{MADE}\nAt `/metrics` of every worker. No label holds a name out of a cluster.\n\n"
    text += "| metric | type | labels | |\n|---|---|---|---|\n"
    rows = []
    registry = Metrics().registry
    ExtenderMetrics(registry)
    for collector in list(registry._collector_to_names):
        for family in collector.describe() if hasattr(collector, "describe") else collector.collect():
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
            rows.append((name, family.type, labels, family.documentation))
    for name, type_, labels, about in sorted(rows):
        text += f"| `{name}` | {type_} | {labels} | {_cell(about)} |\n"
    return text


def openapi_text() -> str:
    """The HTTP of a worker."""
    return json.dumps(openapi.document(version("underhost")), indent=1, ensure_ascii=False) + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


PAGES: dict[str, Callable[[], str]] = {
    "asyncapi.yaml": asyncapi_text,
    "cli.md": cli,
    "config.md": config,
    "frames.md": frames,
    "lint.md": lint,
    "metrics.md": metrics,
    "openapi.json": openapi_text,
    "rules.md": rules,
    "severities.md": severities,
    "topics.md": topics,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(__file__).parent / "reference" / name).write_text(page(), encoding="utf-8")
