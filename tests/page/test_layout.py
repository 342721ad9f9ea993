"""Where things lie on the page: details leave the map as it was, pods that wait lie side by side."""

from typing import Any

import pytest
from playwright.sync_api import expect
from support.build import a_node, a_pod, a_site
from support.processes.browser import Visits
from support.sites.shop import SHARED, a_shop
from support.sites.shown import ShownSite

WAITING = 60


def boxes(page: Any, what: str) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of each."""
    found: list[tuple[float, float, float, float]] = page.locator(what).evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.x, box.y, box.width, box.height])"
    )
    return found


@pytest.mark.parametrize("what", ["#map .host-head", "#map .node-head", "#map .pod.named"])
def test_details_that_open_move_nothing_of_the_map(visits: Visits, shown: ShownSite, what: str) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    expect(page.locator("#map .host")).to_have_count(2)
    before = boxes(page, "#map .host")
    page.locator(what).first.click()
    expect(page.locator("#panel h2")).to_be_visible()
    assert boxes(page, "#map .host") == before


@pytest.mark.parametrize("detail", ["blocks", "dense"])
def test_pods_that_wait_lie_side_by_side(visits: Visits, shown: ShownSite, detail: str) -> None:
    shown.put(a_site(a_node("n1"), *(a_pod(f"job-{at}") for at in range(WAITING)), site="prod"))
    page = visits.open(shown.address)
    expect(page.locator(".tray-head")).to_have_text(f"{WAITING} pods wait for a node")
    page.select_option("#detail", detail)
    [tray] = boxes(page, ".tray .pods")
    assert tray[2] > 4 * tray[3]


def test_the_dots_of_a_node_stay_in_it(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_site(a_node("n1"), *(a_pod(f"job-{at}").on("n1") for at in range(WAITING)), site="prod"))
    page = visits.open(shown.address)
    page.select_option("#detail", "dense")
    [node], [dots] = boxes(page, "#map .node"), boxes(page, "#map .node canvas")
    assert node[0] < dots[0]
    assert dots[0] + dots[2] < node[0] + node[2]
