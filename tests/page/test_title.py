"""The title of the tab: all that is seen of a page in the background."""

from typing import Any

from playwright.sync_api import expect
from support.processes.browser import Visits
from support.sites.shop import SHARED, a_shop
from support.sites.shown import ShownSite

SEEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def wait_a_minute(page: Any) -> None:
    page.clock.fast_forward("01:00")


def test_a_tab_in_the_background_says_when_it_stops_to_follow(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    expect(page).to_have_title("● prod · Underhost")
    expect(page.locator("#live")).to_have_text("live")
    page.clock.install()
    page.evaluate(SEEN, True)
    wait_a_minute(page)
    expect(page.locator("#live")).to_have_text("paused")
    expect(page).to_have_title("(paused) ● prod · Underhost")
    shown.put(a_shop())
    page.evaluate(SEEN, False)
    expect(page.locator("#live")).to_have_text("live")
    expect(page).to_have_title("prod · Underhost")


def test_a_site_that_is_not_there_yet_is_said_in_the_title(visits: Visits, shown: ShownSite) -> None:
    page = visits.visit(shown.address)
    expect(page).to_have_title("(waiting) Underhost")
    shown.put(a_shop())
    expect(page).to_have_title("prod · Underhost")
