"""Which code was tried or measured: what a row of docs/trust.md, and a run of docs/performance.jsonl, is about."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("schemas", "streams", "agents", "tests", "requirements", "pyproject.toml")
"""A commit that changes documents only does not make a row old."""


def tried() -> str:
    """The last commit that changed the code, with a `+` where the tree is changed since; `unknown` outside Git."""
    return last_change(*CODE)


def last_change(*paths: str) -> str:
    """The last commit that changed one of these, with a `+` where one is changed since; `unknown` outside Git."""
    asked = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=False
    )
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (asked.stdout.strip() or "unknown") + ("+" if changed.stdout.strip() else "")
