"""A large site comes in pieces: its pods are asked for when somebody looks at them; all is as if they were there."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from support.processes.browser import Visits
from support.published import a_finding
from support.sites.big import big_site, shared_hosts
from support.sites.shown import ShownSite

SITE = big_site(600, 12_000)
FIRST = next(iter(SITE.pods))
LAST = list(SITE.pods)[-1]


def asked(page: Any) -> list[str]:
    """The questions for maps that the page has put, by what they ask for."""
    urls = page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    found = [urlsplit(url) for url in urls]
    return [
        each.query.split("&")[1].split("=")[0] for each in found if each.path == "/api/v1/map" and "&" in each.query
    ]


def dots(page: Any, host: str) -> Any:
    return page.locator("#map .host").filter(has=page.locator(f".host-head .name:text-is('{host}')")).locator("canvas")


def test_the_pods_in_view_are_asked_for_and_those_below_once_they_come_into_view(
    visits: Visits, shown: ShownSite
) -> None:
    shown.put(SITE, *shared_hosts(SITE, 50))
    page = visits.open(shown.address)
    expect(page.locator("#summary .figure >> nth=2")).to_have_text("12,000 pods")
    expect(page.locator("#findings .item")).to_have_count(50)
    before = asked(page)
    assert before[0] == "pods"
    assert 1 <= before.count("node") < 600 / 60  # of those that are in view
    page.locator("#map").evaluate("map => map.closest('.pane').scrollTo(0, map.scrollHeight)")
    last = dots(page, "esx-074").last
    expect(last).to_have_js_property("lacking", False)  # its pods have come, and are drawn
    assert asked(page).count("node") > before.count("node")
    last.click(position={"x": 4, "y": 4})
    expect(page.locator("#panel .kind")).to_contain_text("pod")


@pytest.mark.parametrize(
    ("link", "shows"),
    [
        pytest.param(f"?pod={LAST}", LAST.partition("/")[2], id="a pod"),
        pytest.param("?node=worker-0599", "worker-0599", id="a node"),
        pytest.param("?host=esx-074", "esx-074", id="a host"),
    ],
)
def test_a_link_leads_to_what_is_not_there_yet(visits: Visits, shown: ShownSite, link: str, shows: str) -> None:
    shown.put(SITE)
    page = visits.open(shown.address, path=link)
    expect(page.locator("#panel h2")).to_have_text(shows)
    if "pod=" in link:
        expect(page.locator("#panel .where .link").first).to_contain_text("worker-")
    else:
        expect(page.locator("#panel .facts, #panel h3", has_text="pods").first).to_be_visible()
    if "node=" in link:
        expect(page.locator("#panel .pod-list li")).to_have_count(20)


def test_a_search_and_a_plan_look_at_all_pods(visits: Visits, shown: ShownSite) -> None:
    shown.put(SITE)
    page = visits.open(shown.address)
    page.fill("#search", "app-77-")
    expect(page.locator("#search-count")).to_have_text("25 pods")
    page.keyboard.press("Escape")
    page.goto(f"{shown.address}?plan=fail+host/esx-003")
    expect(page.locator("#banner .if")).to_have_text("If host esx-003 fails")
    expect(page.locator("#after-map .host.off .name").first).to_have_text("esx-003")


def test_counts_and_findings_follow_pods_that_nobody_has_looked_at(visits: Visits, shown: ShownSite) -> None:
    shown.put(SITE)
    page = visits.open(shown.address)
    expect(page.locator("#live")).to_have_text("live")
    pods = dict(SITE.pods)
    node = pods.pop(LAST).spec.node_name
    shown.put(replace(SITE, pods=pods), a_finding("f1", FIRST))
    expect(page.locator("#summary .figure >> nth=2")).to_have_text("11,999 pods")
    expect(page.locator("#map .host.wrong .name >> nth=0")).to_have_text("esx-000")
    page.goto(f"{shown.address}?node={node}")
    expect(page.locator("#panel .pod-list li")).to_have_count(19)
