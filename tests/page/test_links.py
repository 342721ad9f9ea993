"""Every view has an address: it can be sent, reloaded, and gone back from."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import PHONE, Visits
from support.published import a_finding, decided
from support.sites.shop import DRIFTED, SHARED, ZONE, a_shop
from support.sites.shown import ShownSite

from underhost.schemas.severities import remedy_of


def query(page: Any) -> str:
    return str(page.evaluate("decodeURIComponent(location.search)"))


def test_a_finding_has_an_address_and_is_lit_where_a_link_leads_to_it(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED, DRIFTED)
    page = visits.open(shown.address, path="?finding=f1")
    expect(page.locator("#findings .chosen .rule")).to_have_text("PhysicalHost")
    expect(page.locator("#map .host.lit .name >> nth=0")).to_have_text("esx-h1")
    page.click("#findings .item >> nth=1")
    assert query(page) == "?finding=f2"
    page.go_back()
    expect(page.locator("#findings .chosen")).to_contain_text("f1 is wrong")
    assert query(page) == "?finding=f1"


@pytest.mark.parametrize(
    ("link", "title"),
    [
        pytest.param("?pod=shop/db-0", "db-0", id="a pod"),
        pytest.param("?node=n2", "n2", id="a node"),
        pytest.param("?host=h1", "esx-h1", id="a host by its id"),
        pytest.param("?host=esx-h1", "esx-h1", id="a host by its name"),
    ],
)
def test_what_is_open_has_an_address(visits: Visits, shown: ShownSite, link: str, title: str) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path=link)
    expect(page.locator("#panel h2")).to_have_text(title)
    expect(page.locator("#map .opened")).to_have_count(1)
    page.reload()
    expect(page.locator("#panel h2")).to_have_text(title)


def test_back_leads_through_what_was_looked_at(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    page.click("#map .host .pod.named >> nth=0")
    page.click("#panel .where .link >> nth=1")
    page.click("#panel .act >> nth=0")
    expect(page.locator("#banner .if")).to_have_text("If host esx-h1 fails")
    assert query(page) == "?plan=fail+host/esx-h1"
    page.reload()
    expect(page.locator("#banner .if")).to_have_text("If host esx-h1 fails")
    page.go_back()
    expect(page.locator("#panel h2")).to_have_text("esx-h1")
    expect(page.locator("#after")).to_be_hidden()
    page.go_back()
    expect(page.locator("#panel h2")).to_have_text("db-0")
    page.go_back()
    expect(page.locator("#panel")).to_be_hidden()
    assert query(page) == ""


def test_a_grouping_and_a_tab_outlive_a_reload(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    page.select_option("#group", ZONE)
    page.click("#tab-whatif")
    page.reload()
    expect(page.locator("#group")).to_have_value(ZONE)
    expect(page.locator("#map .group-title")).to_have_count(2)
    expect(page.locator("#whatif")).to_be_visible()
    page.select_option("#group", "")
    page.reload()
    expect(page.locator("#map .group-title:visible")).to_have_count(0)


def test_what_is_searched_drawn_coloured_and_filtered_is_in_the_address(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED, DRIFTED)
    page = visits.open(shown.address)
    page.locator("#search").press_sequentially("bare")
    expect(page.locator("#search-count")).to_have_text("1 pod")
    page.select_option("#detail", "blocks")
    page.select_option("#colours", "findings")
    page.click("#findings .chip[data-severity=drift]")
    page.select_option("#findings select[aria-label=Namespace]", "lab")
    page.select_option("#findings select[aria-label=Rule]", "PhysicalHost")
    page.locator("#findings input").press_sequentially("f2 is")
    assert query(page) == (
        "?pods=blocks&colours=findings&search=bare&filter=f2+is&severity=drift&rule=PhysicalHost&namespace=lab"
    )
    page.reload()
    expect(page.locator("#findings .item .message")).to_have_text(["f2 is wrong"])
    expect(page.locator("#findings input")).to_have_value("f2 is")
    expect(page.locator("#search-count")).to_have_text("1 pod")
    expect(page.locator("#map")).to_have_class("map plain dimmed")
    expect(page.locator("#map .pod.named")).to_have_count(0)
    expect(page.locator("#detail")).to_have_value("blocks")
    for _ in range(4):  # text, rule, namespace and severity: a text is one step, however long
        page.go_back()
    expect(page.locator("#findings .item")).to_have_count(2)
    page.go_back()
    expect(page.locator("#colours")).to_have_value("auto")
    page.go_back()
    expect(page.locator("#map .pod.named").first).to_be_visible()
    page.go_back()
    expect(page.locator("#search")).to_have_value("")
    expect(page.locator("#search-count")).to_have_text("")
    assert query(page) == ""


def test_where_nothing_is_wrong_the_filter_leaves_nothing_out(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    expect(page.locator("#findings .selects option")).to_have_text(["All rules", "All namespaces"])


def test_a_link_may_filter_by_what_nothing_has_now(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?rule=NodePorts&severity=quorum")
    expect(page.locator("#findings .note")).to_contain_text("0 findings of 1")
    expect(page.locator("#findings select[aria-label=Rule]")).to_have_value("NodePorts")
    page.click("#findings .chip[data-severity=quorum]")
    page.select_option("#findings select[aria-label=Rule]", "")
    expect(page.locator("#findings .item")).to_have_count(1)
    assert query(page) == ""


def test_a_finding_says_what_ends_it_and_leads_to_its_runbook(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?finding=f1")
    expect(page.locator("#findings .chosen .note")).to_have_text(
        f"{remedy_of('physical', 'PhysicalHost').replace('`', '')} Runbook"
    )
    with page.expect_popup() as opened:
        page.click("#findings .chosen .note .link")
    runbook = opened.value
    expect(runbook.locator("h1")).to_have_text("UnderhostPhysical")
    expect(runbook.locator("pre code").first).to_have_text(
        "underhost violations --severity physical --server http://127.0.0.1:8080"
    )
    runbook.click("a:text-is('UnderhostUnsatisfiable')")
    expect(runbook.locator("h1")).to_have_text("UnderhostUnsatisfiable")


def test_a_key_copies_the_link(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?pod=shop/db-0", permissions=["clipboard-read", "clipboard-write"])
    page.keyboard.press("l")
    expect(page.locator("#said")).to_have_text("Link copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"{shown.address}?pod=shop/db-0"


def test_where_there_is_no_clipboard_the_link_is_shown_to_be_copied(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?node=n1")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not here')); }")
    page.click("#link")
    expect(page.locator("#said input")).to_have_value(f"{shown.address}?node=n1")


def test_a_finding_that_nobody_knows_is_said_to_be_unknown(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?finding=nothing")
    expect(page.locator("#findings .missing")).to_contain_text("The finding nothing is not open.")


def test_a_link_finds_the_site_of_its_finding(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    elsewhere = replace(a_shop(), site="backup")
    shown.do(lambda: shown.latest.put("backup", decided(elsewhere, a_finding("f7", "shop/db-1"))))
    page = visits.open(shown.address, path="?finding=f7")
    expect(page.locator("#site")).to_have_value("backup")
    expect(page.locator("#findings .chosen")).to_contain_text("f7 is wrong")
    page.reload()
    expect(page.locator("#findings .chosen")).to_contain_text("f7 is wrong")
    page.select_option("#site", "prod")
    expect(page.locator("#findings .item .message")).to_have_text("f1 is wrong")
    page.go_back()
    expect(page.locator("#findings .chosen")).to_contain_text("f7 is wrong")


def test_on_a_phone_a_link_to_a_finding_shows_the_finding(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, size=PHONE, path="?finding=f1")
    expect(page.locator("#findings .chosen")).to_be_visible()
    page.click("#findings .phone")
    expect(page.locator("#map .host.lit")).to_be_visible()
    page.go_back()
    expect(page.locator("#findings .chosen")).to_be_visible()
