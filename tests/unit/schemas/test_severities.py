"""The table of severities, and that nothing else spells one."""

import ast
import re
from pathlib import Path

import pytest

from underhost.schemas.severities import BUDGET, GRAVE, REPAIRABLE, ROWS, SEVERITIES, at_or_above

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "agents/http/static"


def spelled(path: Path) -> set[str]:
    """The severities that a module has as a text of its own, docstrings left out."""
    tree = ast.parse(path.read_text())
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in SEVERITIES}


def test_a_severity_is_spelled_in_one_module() -> None:
    modules = [path for folder in ("schemas", "streams", "agents") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): names for path in modules if (names := spelled(path))}
    assert set(found) == {"schemas/severities.py"}


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_the_page_spells_no_severity(path: Path) -> None:
    assert [name for name in SEVERITIES if re.search(rf"[\"'`.]{name}[\"'`\s]", path.read_text())] == []


def test_the_page_has_every_colour_and_icon_of_the_table() -> None:
    style, icons = (STATIC / "style.css").read_text(), (STATIC / "icons.js").read_text()
    assert [row.colour for row in ROWS if f"--s-{row.colour}:" not in style] == []
    assert [row.colour for row in ROWS if f".pod.s-{row.colour} {{" not in style] == []
    assert [row.icon for row in ROWS if f"  {row.icon}: " not in icons] == []


def test_a_floor_counts_itself_and_what_is_worse() -> None:
    assert [name for name in SEVERITIES if at_or_above(name, BUDGET)] == [
        "violation",
        "physical",
        "quorum",
        "unsatisfiable",
        "budget",
    ]


def test_what_is_grave_can_be_repaired() -> None:
    assert set(GRAVE) < set(REPAIRABLE)
