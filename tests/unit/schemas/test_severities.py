"""The table of severities, and that nothing else spells one."""

import ast
import re
from pathlib import Path

import pytest

from underhost.schemas.severities import (
    BUDGET,
    GRAVE,
    OF_A_FIELD,
    REPAIRABLE,
    ROWS,
    SEVERITIES,
    Severity,
    at_or_above,
    remedy_of,
)

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


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_the_page_spells_no_severity(path: Path) -> None:
    assert [name for name in SEVERITIES if re.search(rf"[\"'`.]{name}[\"'`\s]", path.read_text())] == []


def test_the_page_has_every_colour_and_icon_of_the_table() -> None:
    style, icons = (STATIC / "style.css").read_text(), (STATIC / "basics/icons.js").read_text()
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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_severity_has_a_remedy_of_one_sentence(row: Severity) -> None:
    for remedy in (row.remedy, *row.remedies.values()):
        assert remedy[0].isupper() and remedy.endswith(".") and ". " not in remedy


def test_a_remedy_is_the_rules_own_where_it_has_one() -> None:
    assert remedy_of("violation", "NodePorts") == "Evict one of the pods that hold the port."
    assert remedy_of("violation", "InterPodAffinity") == ROWS[0].remedy
    assert remedy_of("of another version", "NodePorts") == ""
    assert remedy_of("drift", "InterPodAffinity", of_field=True) == OF_A_FIELD
