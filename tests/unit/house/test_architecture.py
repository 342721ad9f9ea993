"""The habits of docs/architecture.md that a reader cannot check by eye."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(path for folder in ("schemas", "streams", "agents") for path in (ROOT / folder).rglob("*.py"))
LONGEST_MODULE = 350
LONGEST_FUNCTION = 60


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_holds_two_rooms() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{relative(path)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    }
    assert long == {}


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_a_topic_is_spelled_in_one_place() -> None:
    names = re.findall(r'^[A-Z_]+ = (?:_state|Topic)\(\s*"([a-z-]+)"', (ROOT / "schemas/topics.py").read_text(), re.M)
    assert len(names) == 15
    spelled = {
        (relative(path), name)
        for path in SOURCES
        for name in names
        if path.name != "topics.py" and f"underhost.{name}" in path.read_text().replace("underhost.streams", "")
    }
    assert spelled == set()
