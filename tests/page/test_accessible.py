"""axe-core finds nothing wrong with the page: at both sizes, in both themes, in every view."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.processes.browser import PHONE, WIDE, Visits
from support.sites.shop import DRIFTED, SHARED, a_shop
from support.sites.shown import ShownSite

AXE = Path(__file__).parents[1] / "data" / "axe-core" / "axe.min.js"
RUN = """async () => {
  const found = await axe.run(document, { rules: { "label-content-name-mismatch": { enabled: true } } });
  const each = ({ id, nodes }) => nodes.map(({ html, failureSummary }) => [id, html, failureSummary]);
  return found.violations.flatMap(each);
}"""


def violations(page: Any) -> list[Any]:
    found: list[Any] = page.evaluate(RUN)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1440x900", "390x844"])
def test_axe_finds_nothing_wrong(visits: Visits, shown: ShownSite, size: dict[str, int], scheme: str) -> None:
    shown.put(a_shop(), SHARED, DRIFTED)
    page = visits.open(shown.address, size=size, color_scheme=scheme, reduced_motion="reduce")
    page.evaluate(AXE.read_text())
    found = {"the map": violations(page)}
    for link, ready in (
        ("?finding=f1&tab=findings", "#findings .chosen"),
        ("?finding=gone&tab=findings", "#findings .missing"),
        ("?pod=shop/db-0", "#panel .verdict"),
        ("?node=n3", "#panel .figures"),
        ("?host=h1", "#panel .act"),
        ("?tab=activity", "#activity"),
        ("?tab=whatif", "#whatif .try"),
        ("?plan=fail+host%2Fesx-h1", "#account h3"),
        ("?tab=repair", "#repair .act"),
        ("?plan=repair", "#steps output"),
        ("?plan=repair&tab=repair", "#account .steps-list"),
        ("?plan=maintain+--all-hosts", "#steps output"),
    ):
        page.goto(f"{shown.address}{link}")
        page.wait_for_selector("body[data-drawn]")
        expect(page.locator(ready).first).to_be_attached()
        page.evaluate(AXE.read_text())
        found[link] = violations(page)
    page.click("#theme")
    page.evaluate("document.getElementById('help-dialog').showModal()")
    found["the help"] = violations(page)
    assert {view: wrong for view, wrong in found.items() if wrong} == {}
