"""SECURITY.md claims nothing that no test shows: every test that it names is there, and every attack names one."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/.-]+\.py)::(\w+)`", PAGE)))
ATTACKS = [
    line
    for line in PAGE.partition("## Attacks")[2].partition("\n## ")[0].splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| attack |"))
]


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_the_threat_model_names_is_there(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    functions = (one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    assert name in set(functions)


@pytest.mark.parametrize("row", ATTACKS, ids=[row.split("|")[1].strip() for row in ATTACKS])
def test_an_attack_has_what_stops_it_and_a_test_that_shows_it(row: str) -> None:
    attack, stop, shown = (cell.strip() for cell in row.strip("|").split("|"))
    assert attack and stop
    assert re.fullmatch(r"`tests/[\w/.-]+\.py::\w+`(, `tests/[\w/.-]+\.py::\w+`)*", shown)


def test_the_threat_model_has_its_parts() -> None:
    said = re.findall(r"^## (.+)$", PAGE, re.M)
    assert said == [
        "Reporting",
        "What is worth protecting",
        "What it may do",
        "Whom it trusts",
        "Attacks, and what stops them",
        "Left open",
        "Dependencies",
    ]
    assert len(ATTACKS) > 20
