"""Where things lie on the page: details leave the map as it was, pods that wait lie side by side."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from playwright.sync_api import expect
from support.build import a_node, a_pod, a_site
from support.processes.browser import Visits
from support.published import a_finding
from support.sites.shop import SHARED, a_shop
from support.sites.shown import ShownSite

from underhost.agents.site.snapshot import Snapshot

WAITING = 60
NOT_READY = [{"type": "Ready", "status": "False"}]


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


def long_names() -> Snapshot:
    """Names of 60 characters, all that a head can say, a workload whose name is long."""
    host, node = (f"{what}-01.rack-17.fra1.datacenter.eu-central-1.example.internal" for what in ("esx", "knd"))
    owner = "StatefulSet/payment-gateway-transaction-processor-of-the-night"
    site = a_site(
        a_node(node).zone("eu-central-1-of-the-north").cordoned().put("status", "conditions", value=NOT_READY),
        a_pod("payment-gateway-transaction-processor-of-the-night-0", "n" * 63).on(node).owned_by(owner),
        a_pod("db-0").on(node),
        on={node: host},
        site="prod",
    )
    [(ref, there)] = site.hosts.items()
    both = {ref: msgspec.structs.replace(there, name=host), "h2": msgspec.structs.replace(there, id="h2", name="esx-4")}
    hosts = {id_: msgspec.structs.replace(each, state="maintenance") for id_, each in both.items()}
    return replace(site, hosts=hosts)


def cut(page: Any, what: str) -> list[str]:
    """What stands in there, shown or not, that reaches beyond it or is not all to be seen; a name may end in `…`."""
    found: list[str] = page.locator(what).evaluate_all(
        """all => all.flatMap(one => {
          const box = one.getBoundingClientRect();
          const shown = [...one.children].filter(each => !each.matches(".unseen") && each.getClientRects().length);
          return shown.filter(each => {
            const { left, right, width } = each.getBoundingClientRect();
            const whole = each.matches(".name, .label, .zone") ? width > 24 : each.scrollWidth <= each.clientWidth + 1;
            return left < box.left || right > box.right + .5 || !whole;
          }).map(each => each.textContent);
        })"""
    )
    return found


@pytest.mark.parametrize("detail", ["names", "blocks", "dense"])
@pytest.mark.parametrize("width", [1600, 1280, 390])
def test_nothing_in_a_head_is_cut_off_or_lies_over_what_is_beside_it(
    visits: Visits, shown: ShownSite, width: int, detail: str
) -> None:
    shown.put(long_names(), a_finding("f1", "shop/db-0"))
    page = visits.open(shown.address, size={"width": width, "height": 900}, path=f"?pods={detail}")
    expect(page.locator("#map .host")).to_have_count(2)
    assert [cut(page, what) for what in ("#map .host-head", "#map .node-head", "#legend .key")] == [[], [], []]


def test_the_dots_of_a_node_stay_in_it(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_site(a_node("n1"), *(a_pod(f"job-{at}").on("n1") for at in range(WAITING)), site="prod"))
    page = visits.open(shown.address)
    page.select_option("#detail", "dense")
    [node], [dots] = boxes(page, "#map .node"), boxes(page, "#map .node canvas")
    assert node[0] < dots[0]
    assert dots[0] + dots[2] < node[0] + node[2]
