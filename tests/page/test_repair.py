"""A plan beside today's map, step by step: a repair by its moves, rolling maintenance by its waves."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import expect
from support.build import HOST, a_pod, a_site, nodes, term
from support.processes.browser import PHONE, Visits
from support.published import a_finding
from support.sites.shop import two_pods
from support.sites.shown import ShownSite

from underhost.agents.evaluate.check import check
from underhost.agents.sinks.maintenance.run import MaintenanceRun, MaintenanceTerms
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.maintenance import Chosen
from underhost.schemas.records import FindingEvent
from underhost.schemas.vsphere import Host

DB, WEB = {"app": "db"}, {"app": "web"}
HOSTS = [Host(id=f"h{at}", name=f"esx-h{at}", cluster="C0", memory_mib=32_768) for at in (1, 2, 3)]
PICTURE = a_site(
    *nodes("n1", "n2", "n3", "n4", "n5"),
    a_pod("db-0").on("n1").labels(DB).apart(term(HOST, DB)),
    a_pod("db-1").on("n2").labels(DB).apart(term(HOST, DB)),
    a_pod("web-0").on("n3").labels(WEB).apart(term(HOST, WEB)),
    a_pod("web-1").on("n4").labels(WEB).apart(term(HOST, WEB)),
    on={"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2", "n5": "h3"},
    hosts=HOSTS,
    site="prod",
)
SIZES = {"vm-n1": 4096, "vm-n2": 8192, "vm-n3": 4096, "vm-n4": 8192, "vm-n5": 4096}
SITE = replace(PICTURE, vms={ref: structs.replace(vm, memory_mib=SIZES[ref]) for ref, vm in PICTURE.vms.items()})
"""Two databases share h1, two web servers h2; h3 has only an empty node. The smaller VM of each pair moves there."""


def found() -> list[FindingEvent]:
    """What is wrong there, by the ids that a plan names."""
    findings = check(SITE, Options()).findings
    return [a_finding(one.id, one.pod or "", *one.peers) for one in findings if one.severity == "physical"]


def query(page: Any) -> str:
    return str(page.evaluate("decodeURIComponent(location.search)"))


def nodes_on(page: Any, map_: str, host: str) -> list[str]:
    place = page.locator(f"{map_} .host").filter(has=page.locator(f".host-head .name:text-is('{host}')"))
    names: list[str] = place.locator(".node-head .name").all_inner_texts()
    return names


@pytest.fixture
def site(shown: ShownSite) -> ShownSite:
    shown.put(SITE, *found())
    return shown


def test_a_repair_is_shown_beside_today_step_by_step(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address)
    page.click("#tab-repair")
    page.click("#repair .act >> nth=0")
    expect(page.locator("#banner .if")).to_have_text("A repair")
    expect(page.locator("#banner")).to_contain_text("2 vMotions")
    expect(page.locator("#banner")).to_contain_text("2 findings resolved")
    expect(page.locator("#banner")).to_contain_text("Nothing is changed.")
    assert query(page) == "?plan=repair"
    expect(page.locator("#steps output")).to_have_text("Step 2 of 2: vMotion of n3")
    assert nodes_on(page, "#map", "esx-h3") == ["n5"]
    assert nodes_on(page, "#after-map", "esx-h3") == ["n1", "n3", "n5"]
    expect(page.locator("#after-map .host.wrong")).to_have_count(0)
    expect(page.locator("#account .steps-list .because >> nth=0")).to_contain_text("physical")
    expect(page.locator("#account .steps-list .move")).to_have_text(["esx-h1 → esx-h3", "esx-h2 → esx-h3"])

    page.click("#steps [aria-label='Step before']")
    expect(page.locator("#steps output")).to_have_text("Step 1 of 2: vMotion of n1")
    assert nodes_on(page, "#after-map", "esx-h3") == ["n1", "n5"]
    expect(page.locator("#after-map .host.wrong .host-head .name")).to_have_text(["esx-h2"])
    expect(page.locator("#account [aria-current=step]")).to_contain_text("1. vMotion of n1")


def test_a_plan_and_its_step_have_an_address_and_back_works(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address, path="?plan=repair&step=1")
    expect(page.locator("#steps output")).to_have_text("Step 1 of 2: vMotion of n1")
    page.click("#account .item >> nth=1")
    expect(page.locator("#steps output")).to_have_text("Step 2 of 2: vMotion of n3")
    assert query(page) == "?plan=repair&step=2"
    page.reload()
    expect(page.locator("#steps output")).to_have_text("Step 2 of 2: vMotion of n3")
    page.goto(site.address)
    page.click("#tab-repair")
    page.click("#repair .act >> nth=0")
    expect(page.locator("#steps output")).to_have_text("Step 2 of 2: vMotion of n3")
    page.click("#steps [aria-label='Step before']")
    page.click("#steps [aria-label='Step before']")
    expect(page.locator("#steps output")).to_have_text("Today, before 2 steps")
    assert query(page) == "?plan=repair&step=0"
    page.go_back()  # steps are one place: Back leads to where the plan opened
    expect(page.locator("#steps output")).to_have_text("Step 2 of 2: vMotion of n3")
    page.go_back()
    expect(page.locator("#after")).to_be_hidden()
    expect(page.locator("#steps")).to_be_hidden()
    expect(page.locator("#repair")).to_be_visible()


def test_the_steps_are_gone_through_with_keys(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address, path="?tab=repair")
    page.focus("#tab-repair")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#steps input")).to_be_visible()
    page.focus("#steps input")
    page.keyboard.press("Home")
    expect(page.locator("#steps input")).to_have_attribute("aria-valuetext", "Today, before 2 steps")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#steps input")).to_have_attribute("aria-valuetext", "Step 1 of 2: vMotion of n1")
    expect(page.locator("#steps input")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#after")).to_be_hidden()


def test_what_stays_is_told_with_its_reason(visits: Visits, shown: ShownSite) -> None:
    shown.put(two_pods("h1", "h1"), a_finding("f1", "shop/db-0", "shop/db-1"))
    page = visits.open(shown.address)
    page.click("#tab-repair")
    page.uncheck("#repair-evictions")
    page.click("#repair .act >> nth=0")
    expect(page.locator("#banner .hurts")).to_have_text("1 finding left")
    assert query(page) == "?plan=repair --no-evictions".replace(" ", "+")
    account = page.locator("#account")
    expect(account).to_contain_text("What stays, and why")
    expect(account).to_contain_text("no evictions are asked for")
    expect(account).to_contain_text("one more host in vSphere cluster C0")
    expect(page.locator("#steps")).to_be_hidden()


def test_what_was_picked_is_still_picked_after_its_plan(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address, path="?tab=repair")
    page.uncheck("#repair-evictions")
    page.select_option("#repair select", "maintain --cluster C0")
    for number, title in enumerate(("A repair", "Maintenance of hosts in turn")):
        page.click(f"#repair .act >> nth={number}")
        expect(page.locator("#banner .if")).to_have_text(title)
        page.click("#banner button")
        page.click("#tab-repair")
    expect(page.locator("#repair-evictions")).not_to_be_checked()
    expect(page.locator("#repair select")).to_have_value("maintain --cluster C0")
    page.click("#repair .act >> nth=0")
    expect(page.locator("#banner .if")).to_have_text("A repair")
    assert query(page) == "?plan=repair+--no-evictions"


@pytest.mark.parametrize(
    ("picture", "said"),
    [pytest.param(SITE, "2 vMotions (8.0 GiB)", id="known"), pytest.param(PICTURE, "2 vMotions", id="not known")],
)
def test_the_memory_that_moves_is_told_where_it_is_known(
    visits: Visits, shown: ShownSite, picture: Snapshot, said: str
) -> None:
    shown.put(picture, *found())
    page = visits.open(shown.address, path="?plan=repair")
    expect(page.locator("#banner .figures span").first).to_have_text(said)


def test_rolling_maintenance_is_shown_wave_by_wave(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address)
    page.click("#tab-repair")
    page.select_option("#repair select", "maintain --cluster C0")
    page.click("#repair .act >> nth=1")
    expect(page.locator("#banner .if")).to_have_text("Maintenance of hosts in turn")
    expect(page.locator("#banner")).to_contain_text("3 hosts in 3 waves")
    expect(page.locator("#banner")).to_contain_text("Nothing is changed.")
    expect(page.locator("#steps output")).to_contain_text("Step 1 of 3: Maintenance of esx-h3")
    expect(page.locator("#after-map .host .flag", has_text="maintenance")).to_have_count(1)
    assert nodes_on(page, "#after-map", "esx-h3") == []
    page.click("#account .item >> nth=1")
    expect(page.locator("#after-map .host .flag", has_text="maintenance")).to_have_count(1)
    assert query(page) == "?plan=maintain+--cluster+C0&step=2"
    page.reload()
    expect(page.locator("#steps output")).to_contain_text("Step 2 of 3")


def test_a_plan_that_cannot_be_made_says_why(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address, path="?plan=maintain+--cluster+C9")
    expect(page.locator("#banner .hurts")).to_have_text("Maintenance of hosts in turn: cluster C9: not there")
    expect(page.locator("#after")).to_be_hidden()
    visits.errors.clear()  # the browser says that the worker refused


def test_on_a_phone_a_plan_is_above_today_and_its_account_a_view(visits: Visits, site: ShownSite) -> None:
    page = visits.open(site.address, size=PHONE, has_touch=True)
    page.click(".foot [data-view=repair]")
    page.click("#repair .act >> nth=0")
    expect(page.locator("#after-map .host >> nth=0")).to_be_visible()
    expect(page.locator("#steps input")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.click(".foot [data-view=repair]")
    expect(page.locator("#account .steps-list")).to_be_visible()
    expect(page.locator("#after-map")).not_to_be_visible()
    page.click("#account .item >> nth=0")
    page.click(".foot [data-view=map]")
    expect(page.locator("#steps output")).to_have_text("Step 1 of 2: vMotion of n1")


class Carried:
    """What of a pipeline the page asks: one maintenance."""

    def __init__(self) -> None:
        self.run = MaintenanceRun("prod", MaintenanceTerms(Chosen(all=True)))
        self.run.plan(["esx-h1", "esx-h2"])

    def maintenance(self, id_: str = "") -> MaintenanceRun:
        return self.run


def test_maintenance_that_is_carried_out_is_told_in_the_tab(visits: Visits, site: ShownSite) -> None:
    site.repairing = carried = Carried()  # type: ignore[assignment]
    carried.run.host("esx-h1", "maintenance")
    carried.run.wait("a person or vLCM, to take esx-h1 out of maintenance mode")
    page = visits.open(site.address)
    page.click("#tab-repair")
    expect(page.locator("#repair p[role=status]")).to_have_text(
        "Maintenance is under way: 0 of 2 hosts done; esx-h1 (maintenance); it waits for a person or vLCM, to take"
        " esx-h1 out of maintenance mode."
    )
