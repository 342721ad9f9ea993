"""The habits of the tests that a reader cannot check by eye."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[2]
LONGEST_NAME = 80


def test_the_name_of_a_test_is_a_sentence_that_fits_a_line() -> None:
    long = {
        f"{path.relative_to(TESTS)}:{node.name}": len(node.name)
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.name) > LONGEST_NAME
    }
    assert long == {}
