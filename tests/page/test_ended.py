"""What has ended: a finding that is mended is told from one that is gone with its pods, live and in a simulation."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect
from support.processes.browser import Visits
from support.published import a_finding
from support.sites.shop import a_pair
from support.sites.shown import ShownSite

from underhost.agents.site.snapshot import Snapshot

FINDING = a_finding("f1", "shop/db-0", "shop/db-1")


def without(site: Snapshot, pod: str) -> Snapshot:
    return replace(site, pods={key: one for key, one in site.pods.items() if key != pod})


@pytest.mark.parametrize(
    ("then", "said"),
    [
        pytest.param(a_pair("h2"), "resolved", id="a VM that moved away"),
        pytest.param(without(a_pair("h1"), "shop/db-1"), "ended: it is gone", id="a pod that is gone"),
    ],
)
def test_what_ended_says_whether_it_was_mended(visits: Visits, shown: ShownSite, then: Snapshot, said: str) -> None:
    shown.put(a_pair("h1"), FINDING)
    page = visits.open(shown.address)
    expect(page.locator("#findings .item")).to_have_count(1)
    shown.put(then)
    expect(page.locator("#findings .severity.good, #findings .severity.gone")).to_have_text([said])


@pytest.mark.parametrize(
    ("site", "figures", "listed"),
    [
        pytest.param(
            a_pair("h1"),
            "1 pod without a node1 finding gone with pods that are down",
            "Findings gone with pods that are down (1)",
            id="no other node",
        ),
        pytest.param(
            a_pair("h1", n3="h2"),
            "1 pod on another node1 finding mended",
            "Findings that are mended (1)",
            id="a node on another host",
        ),
    ],
)
def test_a_simulation_tells_what_it_mends_from_what_dies_in_it(
    visits: Visits, shown: ShownSite, site: Snapshot, figures: str, listed: str
) -> None:
    shown.put(site, FINDING)
    page = visits.open(shown.address)
    page.click("#map .node-head:has-text('n2')")
    page.click("#panel .act:text('Simulate a drain')")
    expect(page.locator("#banner .figures")).to_have_text(figures)
    expect(page.locator("#account h3", has_text="Findings")).to_have_text([listed])
