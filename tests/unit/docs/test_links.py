"""Every link between the pages leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_that_is_named_is_there() -> None:
    """In the pages and in what is written from the code, where nothing is a link."""
    texts = [*PAGES, ROOT / "docs/reference/openapi.json"]
    named = {name for text in texts for name in re.findall(r"\bdocs/[\w/-]+\.md\b", text.read_text())}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_front_page_of_the_docs_leads_to_every_page_of_reference() -> None:
    front = (ROOT / "docs/README.md").read_text()
    pages = (ROOT / "docs/reference").iterdir()
    assert sorted(page.name for page in pages if f"(reference/{page.name})" not in front) == []
