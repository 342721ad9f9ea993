"""What `--help` shows: examples that can be typed as they stand, options in groups, the severities in their order."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from underhost.agents.commands.application import COMMANDS, build
from underhost.schemas.severities import SEVERITIES

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
OFFLINE = {"check", "explain", "schedule", "lint", "drain", "fail", "maintain", "whatif", "repair"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def examples(command: Any) -> list[str]:
    lines = command.epilog.replace("\\\n", " ").strip().splitlines()
    return [line for line in lines if not line.startswith("#")]


EVERY = [
    pytest.param(line, id=line[:70])
    for _, command in commands(typer.main.get_command(build()))
    for line in examples(command)
]
RUN = [
    param
    for param in EVERY
    if param.values[0].split()[1] in OFFLINE  # type: ignore[union-attr]
    and "-f dump.json" in param.values[0]  # type: ignore[operator]
    and "kubectl" not in param.values[0]  # type: ignore[operator]
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples name."""
    made = tmp_path_factory.mktemp("examples")
    for source, name in (("cluster.yaml", "dump.json"), ("inventory.yaml", "inventory.json")):
        shutil.copy(EXAMPLES / source, made / name)
    (made / "manifests").mkdir()
    manifest = "kind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 1, selector: {matchLabels: "
    manifest += "{app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web}]}}}\n"
    (made / "manifests/web.yaml").write_text(manifest)
    (made / "node.yaml").write_text(
        "kind: Node\nmetadata: {name: worker-4}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}\n"
    )
    return made


@pytest.mark.parametrize("line", EVERY)
def test_an_example_can_be_typed(line: str) -> None:
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0].removeprefix("source <(").removesuffix(")"))[1:]
    command = typer.main.get_command(build())
    while hasattr(command, "commands"):
        name = words.pop(0)
        command = command.commands[name]
    command.make_context(command.name, words, resilient_parsing=False)


@pytest.mark.parametrize("line", RUN)
def test_an_example_that_needs_only_files_has_an_answer(line: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout


def test_there_are_examples_of_every_command() -> None:
    found = dict(commands(typer.main.get_command(build())))
    assert [path for path, command in found.items() if not examples(command)] == []
    assert {path[0] for path in found if path} == set(COMMANDS)
    assert len(RUN) >= 15


def test_examples_are_shown_as_they_are_written() -> None:
    app, torn = build(), []
    for path, command in commands(typer.main.get_command(app)):
        shown = {line.strip() for line in CliRunner().invoke(app, [*path, "--help"]).output.splitlines()}
        torn += [(path, line) for line in command.epilog.strip().splitlines() if line.strip() not in shown]
    assert torn == []


def test_the_severities_are_told_in_their_order() -> None:
    shown = " ".join(CliRunner().invoke(build(), ["check", "--help"]).output.split())
    assert f"From the gravest: {', '.join(SEVERITIES)}; never." in shown


def test_options_stand_in_groups() -> None:
    shown = CliRunner().invoke(build(), ["check", "--help"]).output
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Examples:", "Input:", "Which pods:", "Answer:", "How it is judged:", "Options:"]
