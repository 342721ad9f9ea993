"""The reference pages are what the code says today."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES: dict[str, Callable[[], str]] = runpy.run_path(str(ROOT / "docs/generate.py"))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says_today(name: str) -> None:
    assert (ROOT / "docs/reference" / name).read_text() == PAGES[name](), "run: make docs"


def test_there_are_no_other_pages() -> None:
    assert {page.name for page in (ROOT / "docs/reference").iterdir()} == set(PAGES)
