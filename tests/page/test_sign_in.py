"""The page at a door: it asks for the token when somebody wants more than is open, once, and keeps it nowhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import Visits, honest
from support.sites.doors import TOKEN
from support.sites.shop import SHARED, a_shop
from support.sites.shown import ShownSite

from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.token import TokenFile


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(TOKEN)
    return tmp_path / "token"


@pytest.fixture(params=[True, False], ids=["who may read", "who may not"])
def reads(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def guarded(token_file: Path, reads: bool) -> Iterator[ShownSite]:
    with ShownSite(Door(TokenFile(token_file), open_to_read=reads)) as site:
        site.put(a_shop(), SHARED)
        yield site


@pytest.fixture
def guests(browser: Any, guarded: ShownSite) -> Iterator[Visits]:
    with honest(browser) as visits:
        yield visits


def sign_in(page: Any, token: str) -> None:
    page.fill("#sign-in input", token)
    page.click("#sign-in button[type=submit]")


@pytest.mark.parametrize("reads", [False], indirect=True, ids=["who may not read"])
def test_who_may_not_read_signs_in_once_and_is_known_from_then_on(guests: Visits, guarded: ShownSite) -> None:
    page = guests.visit(guarded.address)
    expect(page.locator("#sign-in")).to_be_visible()
    expect(page.locator("#map .pod")).to_have_count(0)
    page.click("#sign-in button[type=button]")  # not now
    expect(page.locator("#live")).to_have_text("signed out")
    page.click("#sign")
    sign_in(page, "not-the-token-of-this-worker")
    expect(page.locator("#sign-in output")).to_have_text("that is not the token")
    assert [error for error in guests.errors if "403" not in error] == []
    guests.errors.clear()  # the browser itself tells of the 403
    sign_in(page, TOKEN)
    expect(page.locator("#sign-in")).to_be_hidden()
    expect(page.locator("body")).to_have_attribute("data-state", "live")
    expect(page.locator("#sign")).to_have_text("Sign out")
    page.reload()
    expect(page.locator("body")).to_have_attribute("data-state", "live")
    assert page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]") == ["", 0, 0]
    page.click("#sign")
    expect(page.locator("#sign-in")).to_be_visible()


@pytest.mark.parametrize("reads", [True], indirect=True, ids=["who may read"])
def test_who_may_read_is_asked_for_the_token_by_a_plan_which_then_goes_on(guests: Visits, guarded: ShownSite) -> None:
    page = guests.open(guarded.address)
    expect(page.locator("#sign")).to_have_text("Sign in")
    expect(page.locator("#sign-in")).to_be_hidden()
    page.locator("#map .pod").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_contain_text("sign in with the token first")
    page.keyboard.press("Escape")
    page.click("#tab-whatif")
    page.click("#whatif button.more")
    sign_in(page, TOKEN)
    expect(page.locator("#whatif .ranks li").first).to_be_visible()
    expect(page.locator("#sign")).to_have_text("Sign out")
    page.locator("#map .pod").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel .verdict > li").first).to_be_visible()


def test_without_a_token_nothing_of_it_is_shown(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    expect(page.locator("#sign")).to_be_hidden()
    expect(page.locator("#sign-in")).to_be_hidden()
