"""A browser for the tests of the page: Debian's Chromium."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.processes.browser import CHROMIUM, PATIENCE, Visits, honest
from support.sites.shown import ShownSite


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    if Path(CHROMIUM).exists() or os.environ.get("CI") == "true":
        return
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.skip(reason="no Chromium: install Debian's package `chromium`"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser a module: while Playwright lives it keeps the thread's event loop, which other modules need."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def shown() -> Iterator[ShownSite]:
    with ShownSite() as shown:
        yield shown


@pytest.fixture
def visits(browser: Any, shown: ShownSite) -> Iterator[Visits]:
    """Pages, closed before the server that they look at: none finds it gone."""
    with honest(browser) as visits:
        yield visits
