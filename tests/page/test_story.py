"""The demo's story as somebody sees it on the page: a VM moved by hand, a host that dies; red, then repaired."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import PHONE, honest
from support.sites.shown import LiveDemo

from underhost.streams.simulated import failures


def host(page: Any, name: str) -> Any:
    return page.locator(".map .host").filter(has=page.locator(f".host-head .name:text-is('{name}')"))


def nodes_on(page: Any, name: str) -> Any:
    return host(page, name).locator(".node-head .name")


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
        expect(page.locator("#findings .item .subject")).to_contain_text("share esx-1")
        expect(host(page, "esx-1").locator(".pod.wrong .label")).to_have_text(["mssql2016", "mssql2016"])

        for each in (page, phone):  # DRS keeps the rule that the pipeline wrote
            expect(host(each, "esx-1")).not_to_contain_class("wrong")
            expect(nodes_on(each, "esx-1")).to_have_text(["kni-worker", "kni-worker2"])
        expect(page.locator(".past-list .subject")).to_contain_text("shared esx-1")
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
        expect(host(page, "esx-2")).to_contain_class("wrong grave")  # HA asks no rule: two databases on one host
        chip = page.locator("#summary .chip", has_text="physical")
        expect(chip).to_have_text("physical 1")

        expect(chip).to_have_count(0)
        expect(host(page, "esx-2")).not_to_contain_class("wrong grave")
        expect(page.locator(".past-list .subject", has_text="mssql2016")).to_contain_text("shared esx-2")
