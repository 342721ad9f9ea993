"""What if: its outcome beside today's map says what stays as it is, and what nobody has judged."""

from typing import Any

import pytest
from playwright.sync_api import expect
from support.build import a_pod, a_site, nodes
from support.processes.browser import Visits
from support.sites.shown import ShownSite

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import Cluster, Host

HOSTS = [Host(id=f"h{at}", name=f"esx-h{at}", cluster="C0") for at in (1, 2)]


def a_pair(*, drs: bool = True, **on: str) -> Snapshot:
    """Nodes, each on its host ("": not known), two hosts at the most."""
    wanted = set(on.values())
    return a_site(
        *nodes(*on),
        a_pod("web-0").on("n1"),
        on=on,
        hosts=[host for host in HOSTS if host.ref in wanted],
        clusters=[Cluster("C0", drs=drs)],
        site="prod",
    )


def flags_of(page: Any, host: str) -> Any:
    """What the outcome's map says of a host and of the nodes on it, beside their names."""
    return page.locator("#after-map .host").filter(has=page.locator(f".name:text-is('{host}')")).locator(".flag")


@pytest.mark.parametrize(
    ("site", "figure"),
    [
        pytest.param(
            a_pair(n1="h1", n2="h1", n3="h1"),
            "3 VMs cannot move; the host does not enter maintenance",
            id="there is no other host",
        ),
        pytest.param(
            a_pair(drs=False, n1="h1", n2="h2"),
            "1 VM cannot move; the host does not enter maintenance",
            id="DRS is off",
        ),
    ],
)
def test_a_host_that_cannot_be_emptied_is_said_to_stay(
    visits: Visits, shown: ShownSite, site: Snapshot, figure: str
) -> None:
    shown.put(site)
    page = visits.open(shown.address, path="?plan=maintain+host/esx-h1")
    expect(page.locator("#banner .figures")).to_have_text(figure)
    expect(page.locator("#banner .hurts")).to_have_text(figure)
    expect(page.locator("#after-map .host .node-head .name").first).to_have_text("n1")
    expect(page.locator("#after-map .host .flag")).to_have_count(0)
    expect(page.locator("#account h3").first).to_contain_text("VMs that cannot move")
    expect(page.locator("#account li").first).to_have_text(
        "n1 stays on esx-h1: no other host can take it (room, a DRS rule, or DRS is off)"
    )


@pytest.mark.parametrize("host", ["esx-h1", "h1"], ids=["by its name", "by its id"])
def test_a_host_that_is_emptied_is_in_maintenance(visits: Visits, shown: ShownSite, host: str) -> None:
    shown.put(a_pair(n1="h1", n2="h2"))
    page = visits.open(shown.address, path=f"?plan=maintain+host/{host}")
    expect(page.locator("#banner .figures")).to_have_text("1 VM on another host")
    expect(flags_of(page, "esx-h1")).to_have_text(["maintenance"])
    expect(flags_of(page, "esx-h2")).to_have_count(0)


def test_the_nodes_of_a_host_that_fails_are_lost_where_nothing_restarts_them(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair(n1="h1", n2="h2"))
    page = visits.open(shown.address, path="?plan=fail+host/h1+--no-ha")
    expect(flags_of(page, "esx-h1")).to_have_text(["lost", "lost"])


def test_an_outcome_says_what_was_not_judged(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_site(*nodes("n1", "n2"), a_pod("web-0").on("n1"), site="prod"))
    page = visits.open(shown.address, path="?plan=drain+n2")
    expect(page.locator("#banner .figures")).to_have_text("Nothing would change.")
    expect(page.locator("#account .note")).to_have_text("Not judged: PhysicalHost (no inventory)")


def test_a_ranking_says_what_was_not_judged(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair(n1="h1", n2="h2", n3=""))
    page = visits.open(shown.address, path="?tab=whatif")
    page.click("#whatif .more")
    expect(page.locator("#whatif .ranks li")).to_have_count(2)
    expect(page.locator("#whatif .note").last).to_have_text(
        "Not judged: PhysicalHost on 1 node (their hosts are not known)"
    )


def test_what_was_picked_is_still_picked_after_its_plan(visits: Visits, shown: ShownSite) -> None:
    shown.put(a_pair(n1="h1", n2="h2"))
    page = visits.open(shown.address, path="?tab=whatif")
    page.select_option("#whatif select", label="drain node")
    page.fill("#whatif input", "n2")
    page.click("#whatif .try .act")
    expect(page.locator("#banner .if")).to_have_text("If node n2 is drained")
    page.click("#banner button")
    page.click("#tab-whatif")
    expect(page.locator("#whatif select option:checked")).to_have_text("drain node")
    expect(page.locator("#whatif input")).to_have_value("n2")
    expect(page.locator("#whatif-names option")).to_have_count(2)
    assert page.locator("#whatif-names option").first.get_attribute("value") == "n1"
