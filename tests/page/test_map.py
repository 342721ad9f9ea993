"""The map, the findings beside it and a pod's details, as somebody with a mouse uses them."""

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from playwright.sync_api import expect
from support.build import a_node, a_pod, a_site
from support.processes.browser import Visits
from support.published import a_finding
from support.sites.shop import DRIFTED, SHARED, ZONE, a_shop
from support.sites.shown import ShownSite

from underhost.agents.http import events
from underhost.schemas.records import NodeHost, Placement
from underhost.schemas.topics import PLACEMENTS
from underhost.schemas.vsphere import Host


def lit(page: Any, what: str) -> list[str]:
    """The names of what is lit."""
    names: list[str] = page.locator(f"#map .{what}.lit").evaluate_all(
        "all => all.map(each => each.querySelector('.name, .label')?.textContent ?? '')"
    )
    return names


def test_hosts_hold_nodes_and_nodes_hold_pods(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    expect(page.locator(".host-head .name")).to_have_text(["esx-h1", "esx-h2"])
    first, second = page.locator(".host").all()
    expect(first.locator(".node-head .name")).to_have_text(["n1", "n2"])
    expect(first.locator(".pod.named .label")).to_have_text(["db", "db"])
    expect(first.locator(".pod.named .tail")).to_have_text(["0", "1"])
    expect(first.locator(".pod.block")).to_have_attribute("aria-label", "pod shop/logs-1, DaemonSet/logs, running")
    expect(second.locator(".node-head .flag")).to_have_text(["cordoned"])
    expect(second.locator(".pod.hollow .label")).to_have_text(["bare"])
    expect(page.locator("#summary .figure")).to_have_text(["2 hosts", "3 nodes", "6 pods", "1 waiting for a node"])
    expect(page.locator("#legend .key")).to_have_text(["db 2", "web 2", "no workload 1", "belongs to its node 1"])
    colours = first.locator(".pod.named .swatch").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    assert colours[0] == colours[1]  # replicas look alike
    expect(page.locator(".tray-head")).to_have_text("1 pod waits for a node")
    expect(page.locator(".tray .label")).to_have_text(["web"])


def test_a_finding_lights_up_its_pods_nodes_and_host(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop(), SHARED, DRIFTED)
    page = visits.open(shown.address)
    page.click(".item:has-text('share'), .item:has-text('db 0 and 1')")
    assert (lit(page, "host"), lit(page, "node"), lit(page, "pod")) == (["esx-h1"], ["n1", "n2"], ["db", "db"])
    expect(page.locator(".chosen button.link:not(.phone)")).to_have_text(
        ["shop/db-0", "shop/db-1", "n1", "n2", "esx-h1"]
    )
    page.keyboard.press("Escape")
    assert lit(page, "host") == []


def test_findings_are_filtered_by_text_severity_rule_and_namespace(visits: Visits, shown: ShownSite) -> None:
    other = replace_rule(a_finding("f3", "shop/web-5d9c7b8f6d-x7f2p", severity="violation"), "NodeAffinity")
    shown.put(a_shop(), SHARED, DRIFTED, other)
    page = visits.open(shown.address)
    rules = page.locator("#findings .item .severity")
    expect(rules).to_have_text(["violation", "physical", "drift"])  # the gravest first
    expect(page.locator("#findings time").first).to_have_attribute("datetime", "2026-01-05T08:00:00.000Z")
    page.fill("#findings input", "db-1")
    expect(rules).to_have_text(["physical"])
    page.fill("#findings input", "")
    page.click("#findings .chip[data-severity=drift]")
    expect(rules).to_have_text(["drift"])
    page.click("#findings .chip[data-severity=drift]")
    page.select_option("#findings select[aria-label=Rule]", "NodeAffinity")
    expect(rules).to_have_text(["violation"])
    page.select_option("#findings select[aria-label=Rule]", "")
    page.select_option("#findings select[aria-label=Namespace]", "lab")
    expect(rules).to_have_text(["drift"])
    expect(page.locator("#findings .note")).to_have_text("1 finding of 3 · Not judged: 1 pod (pending)")


def replace_rule(finding: Any, rule: str) -> Any:
    import msgspec

    return msgspec.structs.replace(finding, rule=rule)


def test_a_pod_tells_every_rules_word_on_every_node_its_scores_and_its_history(
    visits: Visits, shown: ShownSite
) -> None:
    shown.put(a_shop(), SHARED)
    page = visits.open(shown.address)
    shown.tell(PLACEMENTS, "prod/pod/shop/db-0", Placement("shop/db-0", "u", "n1", 7, 0, {}, {"pods": 3}))
    page.click("#map .host .pod.named >> nth=0")
    expect(page.locator("#panel h2")).to_have_text("db-0")
    rows = page.locator("#panel .verdict > li")
    expect(rows.locator(".item-head .link")).to_have_text(["n1", "n2", "n3"])
    rows = rows.all()
    expect(rows[0]).to_contain_class("here")
    expect(rows[0]).to_contain_text("shares its host with 1 pod to keep apart: db-1 is on esx-h1")
    said = "InterPodAffinity node(s) didn't match pod anti-affinity rules: db-1 is in zone b"
    expect(rows[1].locator(".why")).to_have_text([said])
    expect(page.locator("#panel .happened li")).to_contain_text(["shop/db-0 is to run on n1 (score 7)"])
    page.click("#panel .where .link >> nth=1")
    expect(page.locator("#panel h2")).to_have_text("esx-h1")
    expect(page.locator("#panel")).to_contain_text("Workloads with several replicas here")
    page.click("#panel [data-key=close]")
    expect(page.locator("#findings")).to_be_visible()


def test_the_page_follows_every_change_and_a_moved_vm_is_seen_to_move(visits: Visits, shown: ShownSite) -> None:
    site = a_shop()
    shown.put(site)
    page = visits.open(shown.address)
    moved = NodeHost("n2", "vm-n2", "h2", "esx-h2", "name", "2026-01-05T09:00:00.000Z")
    page.evaluate("""() => new MutationObserver((all) => all.forEach((each) => each.addedNodes.forEach((node) => {
      if (node.classList?.contains('flying')) document.body.dataset.flown = node.querySelector('.name').textContent;
    }))).observe(document.body, {childList: true})""")
    shown.put(replace(site, node_hosts={**site.node_hosts, "n2": moved}))
    expect(page.locator(".host >> nth=1").locator(".node-head .name")).to_have_text(["n2", "n3"])
    expect(page.locator("body")).to_have_attribute("data-flown", "n2")
    expect(page.locator(".flying")).to_have_count(0)
    pods = {**site.pods, "shop/new-1": a_pod("new-1").on("n3").build()}
    del pods["lab/bare"]
    shown.put(replace(site, pods=pods), SHARED)
    expect(page.locator(".host >> nth=1").locator(".pod.named")).to_have_count(2)
    expect(page.locator(".pod[aria-label*='shop/new-1']")).to_have_count(1)
    expect(page.locator(".pod[aria-label*='lab/bare']")).to_have_count(0)
    expect(page.locator("#findings .item")).to_have_count(1)


def test_nothing_moves_for_whoever_asked_for_calm(visits: Visits, shown: ShownSite) -> None:
    site = a_shop()
    shown.put(site)
    page = visits.open(shown.address, reduced_motion="reduce")
    page.evaluate("""() => new MutationObserver((all) => all.forEach((each) => each.addedNodes.forEach((node) => {
      if (node.classList?.contains('flying')) document.body.dataset.flown = 'yes';
    }))).observe(document.body, {childList: true})""")
    moved = NodeHost("n2", "vm-n2", "h2", "esx-h2", "name")
    shown.put(replace(site, node_hosts={**site.node_hosts, "n2": moved}))
    expect(page.locator(".host >> nth=1").locator(".node-head .name")).to_have_text(["n2", "n3"])
    assert page.locator("body").get_attribute("data-flown") is None


def test_a_host_without_nodes_says_so(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_site(a_node("n1"), on={"n1": "h1"}, hosts=[Host(id="h1", name="esx-1"), Host(id="h9", name="esx-9")]))
    page = visits.open(shown.address, path="?host=h9")
    expect(page.locator("#panel h2")).to_have_text("esx-9")
    expect(page.locator("#panel h3:text-is('Nodes') + *")).to_have_text("None runs on it.")


def test_hosts_are_grouped_by_a_label_of_their_nodes(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    page.select_option("#group", ZONE)
    expect(page.locator(".group-title")).to_have_text(
        ["zonea + b1 host, 2 nodes, 3 pods", "zonec1 host, 1 node, 2 pods"]
    )


def test_a_search_lights_what_is_found_and_enter_goes_there(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    page.keyboard.press("/")
    page.keyboard.type("Bare")
    expect(page.locator("#search-count")).to_have_text("1 pod")
    assert (lit(page, "host"), lit(page, "pod")) == (["esx-h2"], ["bare"])
    page.keyboard.press("Enter")
    expect(page.locator(".pod:focus")).to_have_attribute("aria-label", "bare: pod lab/bare, no workload, not ready")


def test_before_the_site_is_ready_the_page_says_what_it_waits_for(visits: Visits, shown: ShownSite) -> None:
    page = visits.visit(shown.address)
    expect(page.locator("#live")).to_have_text("waiting")
    expect(page.locator("#map")).to_have_text("Waiting: kubernetes has not listed pods")
    shown.put(a_shop())
    expect(page.locator(".host-head .name")).to_have_text(["esx-h1", "esx-h2"])
    expect(page.locator("#live")).to_have_text("live")


def test_a_site_that_is_lost_comes_back_by_itself(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    expect(page.locator("#live")).to_have_text("live")  # else its question for events finds no site
    shown.do(shown.latest.clear)
    expect(page.locator("#live")).to_have_text("waiting")
    silent = re.compile(r"Not judged: what changes since .+ \(.+\), 1 pod \(pending\)$")
    expect(page.locator("#findings .note.doubt")).to_have_text(silent)
    shown.put(a_shop(), SHARED)
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#findings .item")).to_have_count(1)
    expect(page.locator("#findings .note.doubt")).to_have_text("Not judged: 1 pod (pending)")


def test_thousands_are_written_alike_wherever_they_are_counted(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_site(a_node("n1"), *(a_pod(f"p{number}") for number in range(1_200)), on={"n1": "h1"}, site="prod"))
    page = visits.open(shown.address)
    expect(page.locator("#summary")).to_contain_text("1,200")
    expect(page.locator(".tray")).to_contain_text("1,200 pods wait for a node")
    expect(page.locator("#findings .note.doubt")).to_contain_text("Not judged: 1,200 pods (pending)")


def test_a_worker_that_ends_leaves_no_green_behind(visits: Visits) -> None:
    shop = a_shop()
    with ShownSite() as ending:
        ending.put(replace(shop, pods={name: pod for name, pod in shop.pods.items() if pod.spec.node_name}))
        page = visits.open(ending.address)
        expect(page.locator("#findings .note.good")).to_contain_text("every rule holds")
        expect(page.locator("#live")).to_have_text("live")
    silent = re.compile(r"^No open finding · Not judged: what changes since .+ \(the worker does not answer\)$")
    expect(page.locator("#live")).to_have_text("not connected")
    expect(page.locator("#findings .note.doubt")).to_have_text(silent)
    expect(page.locator("#summary .chip.doubt")).to_have_text("not all is judged")
    expect(page.locator("#stale")).to_contain_text("Nothing new is heard: the worker does not answer.")
    expect(page.locator("#stale")).to_contain_text(re.compile(r"What you see is of .+ (now|ago)\."))
    assert {error.rpartition("::")[2] for error in visits.errors} <= {"ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET"}
    visits.errors.clear()  # nobody answers: that is what is tried


def test_a_worker_that_stands_still_leaves_no_green_behind(visits: Visits, shown: ShownSite) -> None:
    shop = a_shop()
    shown.put(replace(shop, pods={name: pod for name, pod in shop.pods.items() if pod.spec.node_name}))
    page = visits.open(shown.address)
    expect(page.locator("#live")).to_have_text("live")
    page.clock.install()
    page.reload()  # its timers are of the clock that a test moves from now on
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#findings .note.good")).to_contain_text("every rule holds")
    with shown.frozen():
        page.clock.fast_forward("00:46")
        expect(page.locator("#live")).to_have_text("reconnecting")
        expect(page.locator("#findings .note.doubt")).to_contain_text("(the worker does not answer)")
        page.clock.fast_forward("00:30")
        expect(page.locator("#live")).to_have_text("not connected")
    page.clock.fast_forward("00:30")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#findings .note.good")).to_contain_text("every rule holds")


def test_a_worker_that_is_not_ready_any_more_leaves_no_green_behind(
    visits: Visits, shown: ShownSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.1)
    shop = a_shop()
    shown.put(replace(shop, pods={name: pod for name, pod in shop.pods.items() if pod.spec.node_name}))
    page = visits.open(shown.address)
    expect(page.locator("#findings .note.good")).to_contain_text("every rule holds")
    shown.reasons = {"kafka": "nothing can be published"}
    expect(page.locator("#live")).to_have_text("not up to date")
    expect(page.locator("#stale")).to_have_text("Not up to datekafka: nothing can be published.")
    silent = re.compile(r"^No open finding · Not judged: what changes since .+ \(kafka: nothing can be published\)$")
    expect(page.locator("#findings .note.doubt")).to_have_text(silent)
    expect(page).to_have_title("(not up to date) prod · Underhost")
    shown.reasons = {}
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#stale")).not_to_be_visible()
    expect(page.locator("#findings .note.good")).to_contain_text("every rule holds")


def test_what_is_seen_is_no_newer_because_a_worker_answers_that_has_no_site_yet(
    visits: Visits, shown: ShownSite
) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address)
    page.clock.install()
    page.reload()  # its timers are of the clock that a test moves from now on
    expect(page.locator("#live")).to_have_text("live")
    shown.reasons = {"site prod": "kubernetes has not listed pods"}
    shown.do(shown.latest.clear)
    expect(page.locator("#live")).to_have_text("waiting")
    page.clock.fast_forward("10:00")
    shown.reasons = {"site prod": "vsphere has not listed hosts"}
    expect(page.locator("#stale")).to_contain_text("Nothing new is heard: vsphere has not listed hosts.")
    expect(page.locator("#stale")).to_contain_text(re.compile(r"What you see is of .+ 10 min ago\."))


class BegunSite(ShownSite):
    """An answer of its map begins, and does not end before the site does."""

    def __init__(self) -> None:
        super().__init__()
        self.more = (web.get("/api/v1/map", self._begin),)
        self._over = asyncio.Event()

    def __exit__(self, *error: object) -> None:
        self.do(self._over.set)
        super().__exit__(*error)

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        await answer.write(b"{")
        await self._over.wait()
        return answer


def test_an_answer_that_does_not_end_is_none(visits: Visits) -> None:
    with BegunSite() as begun:
        begun.put(a_shop())
        page = visits.visit(begun.address)
        page.clock.install()
        with page.expect_response("**/api/v1/map?*"):
            page.reload()  # its timers are of the clock that a test moves from now on
        for _ in range(20):  # the page may hear of the answer's beginning, and start its timer, only after this one
            page.clock.fast_forward("05:00")
            with suppress(AssertionError):
                expect(page.locator("#live")).to_have_text("not connected", timeout=3_000)
                break
        expect(page.locator("#live")).to_have_attribute("title", "the worker does not answer")


async def _login_page(request: web.Request) -> web.Response:
    return web.Response(text="<html>Sign in</html>", content_type="text/html")


class StrangeSite(ShownSite):
    """Behind a proxy that answers in its place."""

    more = (web.get("/api/v1/map", _login_page),)


def test_a_page_in_the_place_of_the_workers_answer_is_told_as_such(visits: Visits) -> None:
    with StrangeSite() as strange:
        strange.put(a_shop())
        page = visits.visit(strange.address)
        expect(page.locator("#live")).to_have_text("not connected")
        expect(page.locator("#live")).to_have_attribute("title", "the answer is not that of a worker (200 OK)")


def test_a_question_that_a_worker_never_answers_ends_as_one(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_shop())
    page = visits.open(shown.address, path="?tab=whatif")
    expect(page.locator("#live")).to_have_text("live")
    page.clock.install()
    with shown.frozen():
        page.click("#whatif .more")
        expect(page.locator("#whatif [role=status]")).to_contain_text("Simulating")
        page.clock.fast_forward("05:00")
        expect(page.locator("#whatif [role=alert]")).to_have_text("the worker does not answer")


def test_a_site_without_vsphere_shows_its_nodes(visits: Visits, shown: ShownSite) -> None:
    shown.put(replace(a_shop(), hosts={}, vms={}, node_hosts={}, vsphere=False))
    page = visits.open(shown.address)
    expect(page.locator(".host-head .name")).to_have_text(["Nodes"])
    expect(page.locator(".node-head .name")).to_have_text(["n1", "n2", "n3"])


def test_green_is_only_what_was_judged(visits: Visits, shown: ShownSite) -> None:
    shop = a_shop()
    shown.put(shop)
    page = visits.open(shown.address)
    expect(page.locator("#findings .note.doubt")).to_have_text("No open finding · Not judged: 1 pod (pending)")
    expect(page.locator("#summary .chip.doubt")).to_have_text("not all is judged")
    expect(page.locator(".good:not(.live)")).to_have_count(0)
    placed = {**shop.pods, "shop/web-5d9c7b8f6d-q2w3e": a_pod("web-5d9c7b8f6d-q2w3e").on("n3").build()}
    shown.put(replace(shop, pods=placed))
    expect(page.locator("#findings .note.good")).to_have_text(
        "No open finding: every rule holds, down to the physical host."
    )
    expect(page.locator("#summary .chip.good")).to_have_text("no open finding")
    shown.put(replace(shop, pods=placed, hosts={}, vms={}, node_hosts={}, vsphere=False))
    expect(page.locator("#findings .note.doubt")).to_contain_text("Not judged: PhysicalHost (no inventory)")
    shown.put(replace(shop, pods=placed, hosts={}, vms={}, node_hosts={}, vsphere=False), SHARED)
    expect(page.locator("#findings .item")).to_have_count(1)
    expect(page.locator("#findings .note.doubt")).to_have_text("Not judged: PhysicalHost (no inventory)")
