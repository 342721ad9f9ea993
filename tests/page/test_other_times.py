"""What if, and what was: the map of a simulation beside today's, and the map at a time of the past."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from playwright.sync_api import expect
from support.build import HOST, a_node, a_pod, a_site, a_workload, term
from support.processes.browser import PHONE, Visits, honest
from support.published import a_finding
from support.sites.shop import a_shop
from support.sites.shown import ShownSite

from underhost.agents.site.snapshot import Snapshot

DB = {"app": "db"}


def a_pair() -> Snapshot:
    """Two databases that must not share a host, each on a host of its own, and a third host with room."""
    return a_site(
        a_node("n1"),
        a_node("n2"),
        a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)).owned_by("StatefulSet/db"),
        a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)).owned_by("StatefulSet/db"),
        a_workload("StatefulSet", "db", replicas=2),
        on={"n1": "h1", "n2": "h2"},
        site="prod",
    )


def names(page: Any, pane: str, host: str) -> Any:
    return (
        page.locator(f"{pane} .host").filter(has=page.locator(f".name:text-is('{host}')")).locator(".node-head .name")
    )


def test_a_hosts_failure_is_shown_beside_today_and_touches_nothing(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair())
    page = visits.open(shown.address)
    expect(page.locator("#after")).not_to_be_visible()
    page.click("#map .host-head >> nth=0")
    page.click("#panel .act:text('If this host fails')")
    expect(page.locator("#banner")).to_contain_text("If host esx-h1 fails")
    expect(page.locator("#banner")).to_contain_text("Nothing is touched.")
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
    page.locator("#map .node").first.focus()
    page.keyboard.press("Enter")
    page.click("#panel .act:text('If this node is drained')")
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
FROM, TO = "2026-01-05T08:00:00.000Z", "2026-01-05T09:00:00.400Z"  # between two stops of the slider


async def _history(request: web.Request) -> web.Response:
    return web.json_response({"from": FROM, "to": TO})


class RememberingSite(ShownSite):
    """A site whose worker can tell the past."""

    features = ("history", "whatif")
    more = (web.get("/api/v1/history", _history),)


@pytest.fixture
def remembering(browser: Any) -> Iterator[tuple[RememberingSite, Visits]]:
    with RememberingSite() as site, honest(browser) as visits:
        yield site, visits


def test_without_a_past_there_is_no_slider(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    expect(page.locator("#past")).not_to_be_visible()


def test_the_slider_shows_the_map_as_it_was_and_comes_back(remembering: tuple[RememberingSite, Visits]) -> None:
    shown, visits = remembering
    shown.put(a_pair(), a_finding("f1", "shop/db-0"))
    page = visits.open(shown.address)
    expect(page.locator("#past output")).to_have_text("now")
    assert page.locator("#past input").evaluate("(slider) => [slider.value === slider.max, Number(slider.value)]") == [
        True,
        1767603601000,
    ]
    asked: list[str] = []

    def then(route: Any) -> None:
        url = urlsplit(route.request.url)
        asked.append(parse_qs(url.query)["at"][0])
        was = {"hosts": [{"id": "h9", "name": "esx-old"}], "nodes": [], "pods": [], "vsphere": True}
        found = {"findings": []}
        route.fulfill(body=json.dumps(was if url.path.endswith("/map") else found), content_type="application/json")

    page.route("**/api/v1/*at=*", then)
    slider = page.locator("#past input")
    slider.evaluate(
        "(slider) => { slider.value = Number(slider.min) + 600000; slider.dispatchEvent(new Event('input')); }"
    )
    expect(page.locator("#map .host-head .name")).to_have_text(["esx-old"])
    expect(page.locator("#banner")).to_contain_text("The past")
    expect(page.locator("#banner")).to_contain_text("no finding open then")
    assert asked == ["2026-01-05T08:10:00.000Z"] * 2
    shown.put(a_pair())  # the present goes on, and is not shown
    expect(page.locator("#findings .item")).to_have_count(0)
    expect(page.locator("#map .host-head .name")).to_have_text(["esx-old"])
    page.keyboard.press("Escape")
    expect(page.locator("#map .host-head .name")).to_have_text(["esx-h1", "esx-h2"])
    expect(page.locator("#banner")).not_to_be_visible()
