"""The page in Chromium: from the click to the drawn map, what is on the wire till then, a search, a scroll.

`bench.page [large]`: 1,000 nodes and 20,000 pods with 100 findings, or 5,000 nodes and 150,000 pods with what `check`
finds in them. Prints `name<TAB>value` lines. The times are the page's own performance marks, in a window of 1440×900;
the map is drawn when the frame that holds it has been presented.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.resident import Site
from playwright.sync_api import sync_playwright
from support.processes.browser import CHROMIUM, PATIENCE, WIDE
from support.published import MONDAY
from support.sites.big import big_site, shared_hosts
from support.sites.large import LargeSite
from support.sites.shown import ShownSite

from underhost.agents.evaluate.check import check
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding, FindingEvent

RUNS = 7
MARKS = """() => Object.fromEntries(performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]))"""
BYTES = """() => performance.getEntriesByType('resource')
    .filter((each) => each.startTime < performance.getEntriesByName('underhost-drawn')[0].startTime)
    .reduce((sum, each) => sum + each.encodedBodySize, 0)"""
TYPED = """async () => {
  const box = document.getElementById('search');
  box.value = 'app-77';
  const begin = performance.now();
  box.dispatchEvent(new Event('input'));
  while (!document.getElementById('search-count').textContent.includes('pod'))
    await new Promise((done) => setTimeout(done, 5));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - begin;
}"""
SCROLLED = """async () => {
  const pane = document.getElementById('today');
  let worst = 0, before = performance.now();
  for (let step = 0; step < 40; step += 1) {
    pane.scrollBy(0, 180);
    const now = await new Promise((done) => requestAnimationFrame(done));
    worst = Math.max(worst, now - before);
    before = now;
  }
  return worst;
}"""


def main(size: str = "") -> None:
    """Measure and print."""
    site, findings = _large() if size == "large" else _usual()
    with ShownSite() as shown, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        shown.put(site, *findings)
        visits = [_visit(browser, shown.address) for _ in range(RUNS)]
        browser.close()
    print(f"nodes, pods, findings\t{len(site.nodes)}, {len(site.pods)}, {len(findings)}")
    for name in visits[0]:
        values = sorted(visit[name] for visit in visits)
        print(f"{name}, median and worst of {RUNS}\t{values[RUNS // 2]:.0f} and {values[-1]:.0f}")


def _usual() -> tuple[Snapshot, Sequence[FindingEvent]]:
    site = big_site(1000, 20_000)
    return site, shared_hosts(site, 100)


def _large() -> tuple[Snapshot, Sequence[FindingEvent]]:
    site = replace(Site(LargeSite()).snapshot, site="prod")
    return site, [_opened(one) for one in check(site, Options()).findings]


def _opened(finding: Finding) -> FindingEvent:
    told = {name: getattr(finding, name) for name in finding.__struct_fields__ if name != "field"}
    return FindingEvent(state="opened", site="prod", first_seen=MONDAY, updated_at=MONDAY, snapshot={}, **told)


def _visit(browser: Any, address: str) -> dict[str, float]:
    page = browser.new_page(viewport=WIDE)
    engine = page.context.new_cdp_session(page)
    engine.send("Performance.enable")
    begin = _spent(engine)
    page.goto(address)
    page.wait_for_selector("body[data-drawn]", timeout=PATIENCE)
    marks, spent = page.evaluate(MARKS), _spent(engine) - begin
    found = {
        "from the address to the drawn map, ms": marks["underhost-drawn"],
        "processor time of the page until then, ms": spent * 1000,
        "of it, from the data to the drawn map, ms": marks["underhost-drawn"] - marks["underhost-data"],
        "on the wire until then, KiB": page.evaluate(BYTES) / 1024,
        "a search, from the key to the frame, ms": page.evaluate(TYPED),
        "the longest frame of a scroll, ms": page.evaluate(SCROLLED),
        "memory of the page's script, MiB": page.evaluate("performance.memory.usedJSHeapSize") / (1 << 20),
    }
    page.close()
    return found


def _spent(engine: Any) -> float:
    """Seconds of processor time of the page's process: what a busy machine cannot lengthen much."""
    metrics = {each["name"]: each["value"] for each in engine.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ProcessTime"])


if __name__ == "__main__":
    main(*sys.argv[1:])
