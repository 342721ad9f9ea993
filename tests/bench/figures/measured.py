"""Which code a run of a bench is about: a run stays valid while nothing of it has changed.

In: a bench's module. Out: the last commit that changed the product, what starts the real parts, or the module with
those that it imports. Another bench, a test, and how the page shows a run make it no older.
"""

import ast
from pathlib import Path

from support.commits import last_change

BENCH = Path(__file__).parents[1]
PRODUCT = ("schemas", "streams", "agents", "requirements", "pyproject.toml")
SUPPORT = ("tests/support", ":(exclude)tests/support/commits.py")
"""`commits.py` names a commit, and runs in no bench."""
PACE = "pace"
"""How quick the machine was is a part of every run."""


def measured(module: str) -> str:
    """The commit, with a `+` where the tree is changed since; `unknown` outside Git."""
    return last_change(*PRODUCT, *SUPPORT, *(f"tests/bench/{file}" for file in files_of(module)))


def files_of(module: str) -> list[str]:
    """The files of the bench's module and of those of `bench` that it imports, and of the pace, by name."""
    found, wanted = set[str](), [module, PACE]
    while wanted:
        file = wanted.pop().replace(".", "/") + ".py"
        if file in found:
            continue
        found.add(file)
        tree = ast.parse((BENCH / file).read_text(encoding="utf-8"))
        wanted += [
            node.module.removeprefix("bench.")
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench.")
        ]
    return sorted(found)
