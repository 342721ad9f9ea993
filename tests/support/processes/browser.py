"""Visits of the page in a browser, and what none of them may do: say an error, ask another machine."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PATIENCE = 30_000
"""Milliseconds that a condition is waited for, on a machine that is busy."""


class Visits:
    """Opens pages; at the end of the test none may have said an error, nor have asked another machine."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.errors: list[str] = []
        self.asked: set[str] = set()

    def open(self, address: str, *, size: dict[str, int] = WIDE, path: str = "", **context: Any) -> Any:
        """A page of its own at the address, once the map is drawn."""
        page = self.visit(address + path, size=size, **context)
        page.wait_for_selector("body[data-drawn]", timeout=PATIENCE)
        return page

    def visit(self, address: str, *, size: dict[str, int] = WIDE, **options: Any) -> Any:
        """A page of its own at the address."""
        context = self._browser.new_context(viewport=size, **options)
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.asked.add(urlsplit(request.url).hostname or request.url))
        page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))
        page.goto(address)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@contextmanager
def honest(browser: Any) -> Iterator[Visits]:
    """Pages that are checked at the end."""
    visits = Visits(browser)
    try:
        yield visits
        assert not visits.errors, visits.errors
        assert visits.asked <= set(LOOPBACK), visits.asked
    finally:
        visits.close()
