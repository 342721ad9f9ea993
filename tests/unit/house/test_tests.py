"""The habits of the tests that a reader cannot check by eye."""

import ast
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[2]
LONGEST_NAME, MOST_MODULES = 80, 20


def test_the_name_of_a_test_is_a_sentence_that_fits_a_line() -> None:
    long = {
        f"{path.relative_to(TESTS)}:{node.name}": len(node.name)
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.name) > LONGEST_NAME
    }
    assert long == {}


def test_a_room_of_tests_holds_few_modules_and_none_with_the_rooms_name() -> None:
    rooms: dict[Path, list[str]] = {}
    for path in TESTS.rglob("*.py"):
        rooms.setdefault(path.parent, []).append(path.stem.removeprefix("test_"))
    assert {str(room): len(names) for room, names in rooms.items() if len(names) > MOST_MODULES} == {}
    prefixed = [f"{room}/{name}" for room, names in rooms.items() for name in names if name.startswith(f"{room.name}_")]
    assert prefixed == []


def test_unit_tests_are_in_the_rooms_of_what_they_test() -> None:
    root = TESTS.parent
    rooms = {path.parent.relative_to(TESTS / "unit") for path in (TESTS / "unit").rglob("test_*.py")}
    of_the_project = {room for room in rooms if (root / room).is_dir() or (root / "agents" / room).is_dir()}
    assert rooms - of_the_project == {Path("house")}


def test_no_example_of_hypothesis_is_too_slow_on_a_busy_machine() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_benches_and_regimes_import_only_what_is_there() -> None:
    """They run by themselves, seldom, so nothing else notices a name that has moved."""
    modules = [
        ".".join(path.relative_to(TESTS).with_suffix("").parts)
        for room in ("bench", "trust")
        for path in sorted((TESTS / room).rglob("*.py"))
        if path.stem != "__main__" and not path.stem.startswith("test_")
    ]
    code = "\n".join(f"import {module}" for module in modules)
    done = subprocess.run([sys.executable, "-c", code], cwd=TESTS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
