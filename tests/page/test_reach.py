"""Who can use the page: with keys only, in the dark, on a phone, on a site of any size."""

from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import PHONE, Visits
from support.sites.big import big_site, shared_hosts
from support.sites.shop import DRIFTED, SHARED, a_shop
from support.sites.shown import ShownSite


def focused(page: Any) -> str:
    """What has the focus, by its label or text."""
    text: str = page.evaluate(
        "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
    )
    return text


def test_everything_is_reached_with_keys(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the map"
    page.keyboard.press("Enter")
    told = []
    for key in (
        "",
        "PageDown",
        "ArrowDown",
        "ArrowDown",
        "ArrowDown",
        "ArrowLeft",
        "ArrowLeft",
        "PageDown",
        "ArrowRight",
        "End",
    ):
        page.keyboard.press(key) if key else None
        told.append(focused(page).split(",")[0])
    assert told == [
        "1 pod waits for a node",
        "host esx-h1",
        "node n1",
        "db 0: pod shop/db-0",
        "pod shop/logs-1",
        "node n1",
        "host esx-h1",
        "host esx-h2",
        "node n3",
        "bare: pod lab/bare",
    ]
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_be_focused()
    expect(page.locator("#panel h2")).to_have_text("bare")
    page.keyboard.press("Escape")
    assert focused(page).startswith("bare: pod lab/bare")
    page.keyboard.press("f")
    page.keyboard.press("Enter")
    expect(page.locator("#findings .item")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#findings .item")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#findings .item")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("?")
    expect(page.locator("#help-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help-dialog")).not_to_be_visible()


def test_one_element_of_the_map_is_in_the_tab_order(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    expect(page.locator("#map [tabindex='0']")).to_have_count(1)
    page.locator("#map .node-head >> nth=1").focus()
    expect(page.locator("#map [tabindex='0']")).to_have_count(1)
    levels = page.locator(".host [role=treeitem]").evaluate_all("all => [...new Set(all.map(e => e.ariaLevel))]")
    assert levels == ["1", "2", "3"]


@pytest.mark.parametrize(
    "link",
    [
        pytest.param("?finding=gone", id="a finding that has ended"),
        pytest.param("?finding=f1&severity=drift", id="a finding that the filter leaves out"),
        pytest.param("?finding=f2", id="a finding that is listed"),
        pytest.param("", id="none"),
    ],
)
def test_one_finding_is_in_the_tab_order_whichever_is_chosen(visits: Visits, shown: ShownSite, link: str) -> None:
    shown.put(a_shop(), SHARED, DRIFTED)
    page = visits.open(shown.address, path=link)
    expect(page.locator("#findings .item[tabindex='0']")).to_have_count(1)


def test_the_theme_is_the_systems_until_it_is_chosen_and_then_kept(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    light, dark = visits.open(shown.address), visits.open(shown.address, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert (light.evaluate(background), dark.evaluate(background)) == ("rgb(238, 241, 245)", "rgb(12, 16, 22)")
    light.click("#theme")
    light.click("#theme")
    expect(light.locator("#theme")).to_have_attribute("aria-label", "Theme: dark")
    light.reload()
    light.wait_for_selector("body[data-drawn]")
    assert light.evaluate(background) == "rgb(12, 16, 22)"


def test_text_can_be_read_in_both_themes(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    for scheme in ("light", "dark"):
        page = visits.open(shown.address, color_scheme=scheme)
        for colour in ("text", "muted", "faint", "bad", "good", "accent", "s-physical", "s-drift", "s-co-located"):
            ratio = page.evaluate(CONTRAST, [f"--{colour}", "--surface"])
            assert ratio >= 4.5, (scheme, colour, ratio)


CONTRAST = """([one, other]) => {
  const light = (name) => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = `var(${name})`;
    const parts = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
    probe.remove();
    const [r, g, b] = parts.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


def test_on_a_phone_nothing_is_wider_than_the_screen(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, size=PHONE, has_touch=True)
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) == 390
    expect(page.locator("#findings")).not_to_be_visible()
    page.click(".foot [data-view=findings]")
    expect(page.locator("#map")).not_to_be_visible()
    page.click("#findings .item")
    page.click("#findings .phone")
    expect(page.locator(".host.lit")).to_be_visible()
    page.click("#map .pod.named >> nth=0")
    expect(page.locator("#panel h2")).to_be_visible()
    expect(page.locator("#panel .verdict > li")).to_have_count(3)
    assert page.evaluate(wide) == 390
    page.click("#panel [data-key=close]")
    expect(page.locator("#map")).to_be_visible()


def test_a_thousand_nodes_and_twenty_thousand_pods_are_drawn_densely_and_stay_usable(
    visits: Visits, shown: ShownSite
) -> None:
    site = big_site(1000, 20_000)
    shown.put(site, *shared_hosts(site, 150))
    page = visits.open(shown.address)
    expect(page.locator("#map")).to_have_attribute("data-detail", "dense")
    expect(page.locator("#map .host")).to_have_count(125)
    expect(page.locator("#map .node").first).to_be_visible()  # the others are drawn once they come near the view
    expect(page.locator("#map .pod")).to_have_count(0)  # they are dots on a canvas
    expect(page.locator("#overview i")).to_have_count(125)
    expect(page.locator("#findings .item")).to_have_count(100)
    expect(page.locator("#findings .more")).to_have_text("Show more of 150")
    drawn = page.evaluate("""() => [...document.querySelector('canvas').getContext('2d')
        .getImageData(0, 0, 60, 8).data].some((value) => value > 0)""")
    assert drawn
    page.fill("#search", "worker-0815")
    expect(page.locator("#search-count")).to_have_text("1 node")
    expect(page.locator("#map .host:visible .host-head .name")).to_have_text(["esx-101"])
    page.keyboard.press("Enter")
    assert focused(page) == "node worker-0815, zone c, 20 pods"
    page.keyboard.press("Enter")
    expect(page.locator("#panel .pod-list li")).to_have_count(20)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.click(".host canvas >> nth=0", position={"x": 4, "y": 4})
    expect(page.locator("#panel .kind")).to_contain_text("pod")
    shown.put(site)
    expect(page.locator("#summary .chip.good")).to_have_text("no open finding")


def test_plans_are_asked_for_with_keys_and_the_focus_is_never_lost(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?tab=whatif")
    page.focus("#whatif input")
    page.keyboard.type("nope")
    page.keyboard.press("Enter")
    expect(page.locator("#whatif [role=alert]")).to_have_text("There is no host nope.")
    expect(page.locator("#whatif input")).to_be_focused()
    page.focus("#whatif .more")
    page.keyboard.press("Enter")
    expect(page.locator("#whatif .ranks .item")).to_have_count(2)
    expect(page.locator("#whatif .more")).to_be_focused()
    page.focus("#whatif input")
    page.keyboard.press("Control+A")
    page.keyboard.type("esx-h1")
    page.keyboard.press("Enter")
    expect(page.locator("#account h2")).to_have_text("If host esx-h1 fails")
    expect(page.locator("#account h2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#banner")).not_to_be_visible()
    expect(page.locator("#map :focus")).to_have_count(1)
    page.locator("#map .host-head").first.focus()
    page.keyboard.press("Enter")
    page.focus("#panel [data-key='fail host']")
    page.keyboard.press("Enter")
    expect(page.locator("#account h2")).to_be_focused()


def test_a_repair_is_asked_for_with_keys_and_the_focus_goes_to_its_account(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address, path="?tab=repair")
    page.focus("#repair-evictions")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator("#account h2")).to_have_text("A repair")
    expect(page.locator("#account h2")).to_be_focused()
