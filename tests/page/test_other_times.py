"""What if, and what was: the map of a simulation beside today's, and the map at a time of the past."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import PHONE, Visits, honest
from support.published import a_finding
from support.sites.remembered import RememberingSite, hours_ago
from support.sites.shop import a_pair, a_shop
from support.sites.shown import ShownSite


def names(page: Any, pane: str, host: str) -> Any:
    return (
        page.locator(f"{pane} .host").filter(has=page.locator(f".name:text-is('{host}')")).locator(".node-head .name")
    )


def test_a_hosts_failure_is_shown_beside_today_and_changes_nothing(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair())
    page = visits.open(shown.address)
    expect(page.locator("#after")).not_to_be_visible()
    page.click("#map .host-head >> nth=0")
    page.click("#panel .act:text-is('Simulate its failure')")
    expect(page.locator("#banner")).to_contain_text("If host esx-h1 fails")
    expect(page.locator("#banner")).to_contain_text("Nothing is changed.")
    expect(page.locator("#banner .figures")).to_have_text("1 VM on another host2 new findings")
    expect(names(page, "#map", "esx-h1")).to_have_text(["n1"])
    expect(names(page, "#after-map", "esx-h1")).to_have_count(0)
    expect(names(page, "#after-map", "esx-h2")).to_have_text(["n1", "n2"])
    expect(page.locator("#after-map .node.moved .name")).to_have_text(["n1"])
    expect(page.locator("#after-map .host.wrong .name").first).to_have_text("esx-h2")
    expect(page.locator("#map .host.wrong")).to_have_count(0)
    expect(page.locator("#account .severity")).to_have_text(["physical", "unsatisfiable"])
    expect(page.locator("#account")).to_contain_text("n1: esx-h1 → esx-h2")
    page.keyboard.press("Escape")
    expect(page.locator("#after")).not_to_be_visible()
    expect(page.locator("#banner")).not_to_be_visible()


def test_a_drain_shows_who_moves_and_who_finds_no_node(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair())
    page = visits.open(shown.address)
    page.locator("#map .node-head").first.focus()
    page.keyboard.press("Enter")
    page.click("#panel .act:text('Simulate a drain')")
    expect(page.locator("#banner .figures")).to_have_text("1 pod without a node")
    expect(page.locator("#after-map .tray .label")).to_have_text(["db"])
    expect(page.locator("#after-map .node .flag")).to_have_text(["cordoned"])
    expect(page.locator("#account")).to_contain_text("1 × node(s) didn't match pod anti-affinity rules")
    page.click("#account .link")
    expect(page.locator("#panel h2")).to_have_text("db-0")


def test_hosts_are_ranked_by_what_their_failure_means(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair())
    page = visits.open(shown.address)
    page.click("#tab-whatif")
    page.click("#whatif .more")
    expect(page.locator(".ranks b")).to_have_text(["esx-h1", "esx-h2"])
    expect(page.locator(".ranks .hurts")).to_have_text(["2 new findings", "2 new findings"])
    page.fill("#whatif input", "nowhere")
    page.click("#whatif .act")
    expect(page.locator("#whatif [role=alert]")).to_have_text("There is no host nowhere.")
    page.select_option("#whatif select", "maintain host")
    page.fill("#whatif input", "esx-h2")
    page.keyboard.press("Enter")
    expect(page.locator("#banner")).to_contain_text("If host esx-h2 enters maintenance")


def test_on_a_phone_the_outcome_is_below_today(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair())
    page = visits.open(shown.address, size=PHONE)
    page.click("#map .host-head >> nth=0")
    page.click("#panel .act >> nth=0")
    expect(page.locator("#after-map")).to_be_visible()
    today, after = page.locator("#today").bounding_box(), page.locator("#after").bounding_box()
    assert after["y"] >= today["y"] + today["height"] - 1
    assert page.evaluate("document.documentElement.scrollWidth") == 390


# ---------------------------------------------------------------------------------------------------------- the past
@pytest.fixture
def remembering(browser: Any) -> Iterator[tuple[RememberingSite, Visits]]:
    """The pair, of which 20 hours ago the second one's VM was on the first one's host for 18 minutes."""
    with RememberingSite() as site, honest(browser) as visits:
        site.past.state(a_pair(), hours_ago(23))
        site.past.state(a_pair(second="h1"), hours_ago(20))
        site.past.finding(a_finding("f1", "shop/db-0", "shop/db-1"), hours_ago(20))
        site.past.state(a_pair(), hours_ago(19.7))
        site.past.finding(a_finding("f1", "shop/db-0", "shop/db-1", state="resolved"), hours_ago(19.7))
        site.put(a_pair())
        yield site, visits


def test_without_a_past_there_is_no_slider(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    expect(page.locator("#past")).not_to_be_visible()


def test_a_finding_of_20_hours_ago_is_read_in_three_actions(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    page = visits.open(shown.address)
    expect(page.locator("#past output")).to_have_text("now")
    expect(page.locator(".ticks .began")).to_have_count(1)
    expect(page.locator(".ticks .ended")).to_have_count(1)
    expect(page.locator("#findings .note.good")).to_be_visible()
    page.keyboard.press(",")  # it ended
    expect(page.locator("#then")).to_contain_text("no finding open then")
    page.keyboard.press(",")  # it opened
    expect(page.locator("#then")).to_contain_text("1 finding open then")
    page.click("#findings .item")
    expect(page.locator("#findings .chosen .message")).to_contain_text("both run on ESXi host esx-h1")
    expect(page.locator("#map .host.lit .name >> nth=0")).to_have_text("esx-h1")
    assert names(page, "#map", "esx-h1").all_text_contents() == ["n1", "n2"]


def test_everything_that_is_shown_is_of_the_moment(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    page = visits.open(shown.address)
    page.keyboard.press(",")
    page.keyboard.press(",")
    expect(page.locator("#summary .chip")).to_have_text("physical 1")
    expect(page.locator("#today-title")).to_have_text("As it was")
    shown.put(a_pair(), a_finding("f9", "shop/db-1", severity="drift"))  # the present goes on, and is not shown
    expect(page.locator("#findings .item")).to_have_count(1)
    page.click("#map .host-head >> nth=0")
    expect(page.locator("#panel .facts")).to_contain_text("2 nodes, 2 pods")
    page.click("#panel [data-key='node:n2']")
    expect(page.locator("#panel .where")).to_contain_text("esx-h1")
    expect(page.locator("#panel .figures")).to_contain_text("n2")  # its VM, from the worker
    page.click("#panel .pod-list .link")
    expect(page.locator("#panel h3", has_text="might have run then")).to_be_visible()
    expect(page.locator("#panel .verdict .shared")).to_contain_text("shares its host with 1 pod to keep apart")
    page.click("#panel .where .link >> nth=1")
    page.click("#panel .act >> nth=0")
    expect(page.locator("#banner .figures")).to_contain_text("2 VMs on another host")  # today it is one
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#then")).not_to_be_visible()
    expect(page.locator("#findings .item .severity")).to_have_text("drift")
    expect(page.locator("#today-title")).to_have_text("Today")


def test_the_slider_zooms_and_leads_to_any_moment(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    page = visits.open(shown.address)
    slider = page.locator("#past input")
    assert slider.evaluate("(slider) => slider.value === slider.max")
    page.keyboard.press(",")
    page.select_option("#past select", label="1 h")
    span = slider.evaluate("(slider) => slider.max - slider.min")
    assert 3_600_000 <= span <= 3_601_000
    expect(page.locator(".ticks i")).to_have_count(2)
    middle = "(Number(slider.min) + Number(slider.max)) / 2"  # it ended then
    slider.evaluate(f"(slider) => {{ slider.value = {middle} - 600000; slider.dispatchEvent(new Event('input')); }}")
    expect(page.locator("#then")).to_contain_text("1 finding open then")
    slider.focus()
    page.keyboard.press(".")  # the keys of the page work on the slider
    expect(page.locator("#then")).to_contain_text("no finding open then")
    page.keyboard.press(".")
    expect(page.locator("#then")).not_to_be_visible()


def test_an_answer_that_comes_late_does_not_move_the_slider_back(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    page = visits.open(shown.address)
    held: list[Any] = []
    page.route("**/api/v1/map?*at=*", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/api/v1/map?*at=*"):
        page.keyboard.press(",")  # it ended
    slider = page.locator("#past input")
    slider.evaluate(  # a hand that holds the slider moves it again and again
        """(slider) => {
          slider.value = Date.now() - 19.9 * 3600 * 1000;
          window.hand = setInterval(() => slider.dispatchEvent(new Event("input")), 20);
        }"""
    )
    expect(page.locator("#past .note")).to_have_text("working it out…")
    held[0].continue_()
    expect(page.locator("#past .note")).to_have_text("")
    page.evaluate("clearInterval(window.hand)")
    expect(page.locator("#then")).to_contain_text("1 finding open then")


def test_a_moment_is_told_in_local_time_with_its_zone(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    page = visits.open(shown.address, timezone_id="Asia/Kolkata", locale="en-GB", path="?at=2026-01-05T08:00:00.000Z")
    expect(page.locator("#past output")).to_have_text("5 Jan, 13:30:00 GMT+5:30")
    exact = "5 Jan 2026, 13:30:00.000 GMT+5:30 = 2026-01-05T08:00:00.000Z"
    expect(page.locator("#past output")).to_have_attribute("title", exact)
    expect(page.locator("#then")).to_contain_text("its history begins at")  # it cannot be told, and says so
    expect(page.locator("#map .host-head .name")).to_have_text(["esx-h1", "esx-h2"])
    visits.errors.clear()  # the browser itself tells of the 422
    ended = page.locator(".past-list time")
    assert "GMT+5:30" in ended.get_attribute("title")
    expect(ended).to_contain_text("19 h ago")


def test_an_address_may_say_how_long_ago(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    page = visits.open(shown.address, path="?at=30m")
    expect(page.locator("#then")).to_contain_text("The past")
    expect(page.locator("#past output")).not_to_have_text("now")
    assert page.evaluate("new URLSearchParams(location.search).get('at')") == "30m"


@pytest.mark.parametrize(
    ("at", "why"),
    [
        pytest.param("foo", "'foo': a time is expected, 2026-11-21T03:00:00Z or 10m for ten minutes ago", id="no time"),
        pytest.param("2999-01-01T00:00:00Z", "at 2999-01-01T00:00:00Z: this is still to come", id="still to come"),
    ],
)
def test_a_moment_that_cannot_be_told_is_told_as_such(
    remembering: tuple[RememberingSite, Visits], at: str, why: str
) -> None:
    shown, visits = remembering
    page = visits.open(shown.address, path=f"?at={at}")
    expect(page.locator("#then")).to_contain_text(why)
    expect(page.locator("#map .host")).to_have_count(2)
    page.close()
    visits.errors = [each for each in visits.errors if "422" not in each]  # Chromium tells every refusal


def test_a_link_to_a_finding_that_has_ended_leads_to_when_it_was_open(
    remembering: tuple[RememberingSite, Visits],
) -> None:
    shown, visits = remembering
    page = visits.open(shown.address, path="?finding=f1")
    expect(page.locator("#findings .missing")).to_contain_text("The finding f1 is not open.")
    expect(page.locator("#findings .missing")).to_contain_text("and ended")
    page.click("#findings .missing .link")
    expect(page.locator("#then")).to_contain_text("1 finding open then")
    page.reload()
    expect(page.locator("#then")).to_contain_text("1 finding open then")
    page.go_back()
    expect(page.locator("#then")).to_be_hidden()
