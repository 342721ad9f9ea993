"""The demo's story as somebody sees it on the page: a VM moved by hand, a host that dies; red, then repaired."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import PHONE, honest
from support.processes.underhost import UNDERHOST
from support.simulation.clock import LogicalClock
from support.sites.shown import LiveDemo

from underhost.agents.demo.operator import Operator
from underhost.agents.demo.pace import Pace
from underhost.agents.demo.story import Act, Verb, moved_by_hand, quorum_at_risk
from underhost.streams.simulated import failures


def host(page: Any, name: str) -> Any:
    return page.locator(".map .host").filter(has=page.locator(f".host-head .name:text-is('{name}')"))


def nodes_on(page: Any, name: str) -> Any:
    return host(page, name).locator(".node-head .name")


def shared(page: Any) -> Any:
    """The finding about pods that share esx-1; beside it one may say that labels are not there yet."""
    return page.locator("#findings .item .subject", has_text="share esx-1")


def test_a_vm_moved_by_hand_turns_its_host_red_and_drs_repairs_it(browser: Any, tmp_path: Path) -> None:
    with LiveDemo(tmp_path, drs_interval=4.0) as demo, honest(browser) as visits:
        page, phone = visits.open(demo.address), visits.open(demo.address, size=PHONE)
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator(".figure.waiting")).to_have_count(0)  # the binder has placed every pod
        expect(nodes_on(page, "esx-1")).to_have_text(["kni-worker", "kni-worker2"])
        expect(page.locator("#findings .note.good")).to_contain_text("No open finding")

        demo.do(lambda: demo.site.move_vm("kni-worker6", "esx-1"))
        for each in (page, phone):
            expect(nodes_on(each, "esx-1")).to_have_text(["kni-worker", "kni-worker2", "kni-worker6"])
            expect(host(each, "esx-1")).to_contain_class("wrong grave")
        expect(shared(page)).to_have_count(1)
        expect(host(page, "esx-1").locator(".pod.wrong .label")).to_have_text(["mssql2016", "mssql2016"])

        for each in (page, phone):  # DRS keeps the rule that the pipeline wrote
            expect(host(each, "esx-1")).not_to_contain_class("wrong")
            expect(nodes_on(each, "esx-1")).to_have_text(["kni-worker", "kni-worker2"])
        expect(page.locator(".past-list .subject", has_text="shared esx-1").first).to_be_visible()
        page.click("#tab-activity")
        expect(page.locator("#activity .link", has_text="kni-worker6 moved")).to_have_count(2)
        expect(page.locator("#activity .link", has_text="from esx-3 to esx-1")).to_have_count(1)


def test_a_host_dies_and_what_ha_breaks_is_repaired(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "HA_DETECTS", 1.0)
    monkeypatch.setattr(failures, "BOOT", 8.0)
    with LiveDemo(tmp_path, drs_interval=6.0) as demo, honest(browser) as visits:
        page = visits.open(demo.address)
        expect(page.locator(".figure.waiting")).to_have_count(0)
        page.click("#tab-activity")
        expect(page.locator("#activity li", has_text="DRS rule")).to_have_count(2)  # both are in vCenter
        page.click("#tab-findings")

        demo.do(lambda: demo.site.fail_host("esx-1"))
        expect(host(page, "esx-1").locator(".flag")).to_have_text("disconnected")
        expect(host(page, "esx-1").locator(".empty")).to_have_text("no node here")
        expect(host(page, "esx-2")).to_contain_class("wrong grave")  # HA checks no rule: two databases on one host
        chip = page.locator("#summary .chip", has_text="physical")
        expect(chip).to_have_text("physical 1")

        expect(chip).to_have_count(0)
        expect(host(page, "esx-2")).not_to_contain_class("wrong grave")
        expect(page.locator(".past-list .subject", has_text="mssql2016")).to_contain_text("shared esx-2")


def test_a_host_that_holds_a_majority_is_found_and_relieved(browser: Any, tmp_path: Path) -> None:
    with LiveDemo(tmp_path, drs_interval=4.0) as demo, honest(browser) as visits:
        operator, scenario = Operator(demo.site), demo.site.scenario
        page = visits.open(demo.address)
        page.click("#tab-activity")
        expect(page.locator("#activity li", has_text="DRS rule")).to_have_count(2)  # both are in vCenter
        page.click("#tab-findings")
        wrong, _, _, end = quorum_at_risk(scenario.quorum, *scenario.quorum_move)
        for act in wrong.acts:
            demo.do(lambda act=act: operator.do(act))
        item = page.locator("#findings .item", has_text="quorum")
        expect(item.locator(".message")).to_contain_text(
            "run on ESXi host esx-1: its failure leaves 1, and 2 must stay."
        )
        expect(host(page, "esx-1")).to_contain_class("wrong grave")
        demo.do(lambda: operator.do(Act(Verb.RELEASE_DRS)))
        expect(host(page, "esx-1")).not_to_contain_class("wrong")
        expect(item).to_have_count(0)
        for act in end.acts:
            demo.do(lambda act=act: operator.do(act))
        expect(page.locator("#findings .note.good")).to_contain_text("No open finding")


def test_who_opens_the_demo_after_a_minute_finds_the_finding_and_has_time_to_read_it(
    browser: Any, tmp_path: Path
) -> None:
    clock = LogicalClock(time.time())
    with LiveDemo(tmp_path, clock=clock, drs_interval=5.0) as demo, honest(browser) as visits:
        operator, pace = Operator(demo.site), Pace()
        page = visits.open(demo.address)
        page.click("#tab-activity")
        expect(page.locator("#activity li", has_text="DRS rule")).to_have_count(2)  # both are in vCenter
        expect(page.locator("#live")).to_have_text("live")
        page.close()
        before = demo.visits
        for act in moved_by_hand("kni-worker6", "esx-1")[0].acts:
            demo.do(lambda act=act: operator.do(act))
        demo.do(lambda: demo.site.advance(2))
        pace.rest(clock.now())
        for _ in range(12):  # a minute, in which DRS looks twelve times
            demo.do(lambda: demo.site.advance(5))
        assert pace.left(clock.now()) is None

        page = visits.open(demo.address)
        expect(page.locator("#live")).to_have_text("live")  # a page is drawn before it follows
        assert demo.visits > before
        pace.visit(clock.now())
        expect(shared(page)).to_have_count(1)
        demo.do(lambda: demo.site.advance(44))
        assert pace.left(clock.now()) == pytest.approx(1)
        expect(host(page, "esx-1")).to_contain_class("wrong grave")

        demo.do(lambda: demo.site.advance(1))
        assert pace.left(clock.now()) == pytest.approx(0)
        demo.do(lambda: operator.do(Act(Verb.RELEASE_DRS)))
        demo.do(lambda: demo.site.advance(7))
        expect(host(page, "esx-1")).not_to_contain_class("wrong")
        expect(page.locator(".past-list .subject", has_text="shared esx-1").first).to_be_visible()


def test_a_worker_that_is_killed_leaves_its_age_and_one_that_comes_back_is_followed(
    browser: Any, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [UNDERHOST, "demo", "--listen", listen, "--embedded", str(tmp_path / "demo.db")]
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    with honest(browser) as visits, subprocess.Popen(command, **quiet) as first:
        assert any("A finding opens" in line for line in first.stdout)
        page = visits.open(f"http://{listen}/")
        expect(shared(page)).to_have_count(1)
        first.kill()
        expect(page.locator("#stale")).to_contain_text("Nothing new is heard: the worker does not answer.")
        expect(page.locator("#stale time")).to_contain_text("·")
        expect(shared(page)).to_have_count(1)  # as it was heard last
        expect(page.locator("body")).to_have_attribute("data-state", "lost")
        with subprocess.Popen(command, **quiet) as second:
            assert any("The page:" in line for line in second.stdout)
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator("#stale")).to_be_hidden()
            second.kill()
        visits.errors.clear()  # nobody answers: that is what is tried
