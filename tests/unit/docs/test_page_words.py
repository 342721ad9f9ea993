"""The docs call the parts of the page as the page itself does."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "docs/page.md", "docs/tutorial.md")
STATIC = ROOT / "agents" / "http" / "static"
SHOWN = " ".join(path.read_text() for path in STATIC.rglob("*") if path.suffix in (".html", ".js"))
IN_ITALICS = re.compile(r"(?<![*\w])\*([A-Z][^*]{2,30})\*(?!\*)")
NAMED = sorted(
    {(page, " ".join(name.split())) for page in PAGES for name in IN_ITALICS.findall((ROOT / page).read_text())}
)


@pytest.mark.parametrize(("page", "name"), NAMED)
def test_a_part_that_is_named_is_on_the_page(page: str, name: str) -> None:
    assert re.search(rf">{name}<|[\"'`>]{name}\b", SHOWN)


def test_the_tab_of_simulations_is_named() -> None:
    assert ("docs/page.md", "What if") in NAMED
