"""The habits of docs/architecture.md that a reader cannot check by eye."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(path for folder in ("schemas", "streams", "agents") for path in (ROOT / folder).rglob("*.py"))
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
ROOMS = {
    init.parent: [path.stem for path in init.parent.glob("*.py") if path != init]
    for init in SOURCES
    if init.name == "__init__.py"
}
MOST_MODULES = 20
LARGEST_FAMILY = 3
NAMED_UPSTREAM = {"agents/rules"}
"""Rules have the names of the scheduler's plugins."""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_is_longer_than_one_idea_needs() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_a_room_holds_few_modules() -> None:
    numbers = {relative(room): len(modules) for room, modules in ROOMS.items()}
    assert {room: number for room, number in numbers.items() if number > MOST_MODULES} == {}


def test_no_module_carries_the_name_of_its_room() -> None:
    begin = {room: (f"{room.name}_", f"{room.name.removesuffix('s')}_") for room in ROOMS}
    assert [
        f"{relative(room)}/{name}" for room, names in ROOMS.items() for name in names if name.startswith(begin[room])
    ] == []


def test_no_room_holds_a_family_of_modules_with_one_prefix() -> None:
    families = {
        (relative(room), prefix): number
        for room, names in ROOMS.items()
        for prefix, number in Counter(name.partition("_")[0] for name in names if "_" in name).items()
        if number > LARGEST_FAMILY and relative(room) not in NAMED_UPSTREAM
    }
    assert families == {}


def test_a_module_that_a_docstring_points_at_is_beside_it_or_at_that_path() -> None:
    paths = [f"/{relative(path)}" for path in (*SOURCES, *(ROOT / "tests").rglob("*.py"))]
    wrong = [
        f"{relative(path)}: {pointed}"
        for path in SOURCES
        for pointed in re.findall(r"`([\w/]+\.py)`", ast.get_docstring(ast.parse(path.read_text())) or "")
        if not (path.parent / pointed).is_file()
        and not ("/" in pointed and any(there.endswith(f"/{pointed}") for there in paths))
    ]
    assert wrong == []


def test_a_class_name_is_used_once() -> None:
    names = Counter(
        node.name
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, number in names.items() if number > 1} == set()


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


def test_an_import_inside_a_function_says_why_it_waits() -> None:
    silent = set()
    for path in SOURCES:
        source = path.read_text()
        tree, lines = ast.parse(source), source.splitlines()
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions if "import" not in (ast.get_docstring(tree) or "") else ():
            imports = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
            # One comment is enough for all of a function.
            if imports and not any("#" in "".join(lines[function.lineno : node.end_lineno]) for node in imports):
                silent.add(f"{relative(path)}:{function.name}")
    assert silent == set()


def test_structlog_comes_without_rich() -> None:
    direct = [relative(path) for path in SOURCES if re.search(r"^ *(import|from) structlog", path.read_text(), re.M)]
    assert direct == ["streams/log.py"]
    loaded = "import sys, underhost.agents.worker; print(sorted({'rich', 'structlog'} & sys.modules.keys()))"
    said = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout
    assert said == "['structlog']\n"
