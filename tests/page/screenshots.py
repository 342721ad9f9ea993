"""Take the pictures of docs/images from the real page over the real pipeline, with the Python of `.venv`.

The moment is the one that the product is for: an operator has moved a VM by hand, and two databases that a rule keeps
apart share an ESXi host. Light, dark, on a phone, and the simulation of a host's failure.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import expect, sync_playwright
from support.processes.browser import CHROMIUM, PATIENCE, PHONE
from support.sites.shown import LiveDemo

OUT = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 1440, "height": 720}


def main() -> None:
    """Write the pictures."""
    OUT.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE * 2)
    with (
        tempfile.TemporaryDirectory() as folder,
        LiveDemo(Path(folder), drs_interval=3600.0) as demo,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        light, dark = _page(browser, demo.address, SIZE, "light"), _page(browser, demo.address, SIZE, "dark")
        phone, plan = _page(browser, demo.address, PHONE, "light"), _page(browser, demo.address, SIZE, "light")
        expect(light.locator(".tray")).to_have_count(0)
        plan.click("#map .host-head >> nth=2")
        plan.click("#panel .act >> nth=1")
        expect(plan.locator("#banner")).to_contain_text("Nothing is changed")
        plan.screenshot(path=OUT / "page-what-if.png")
        demo.do(lambda: demo.site.move_vm("kni-worker6", "esx-1"))
        for page in (light, dark, phone):
            expect(page.locator("#map .host.wrong")).to_have_count(1)
            expect(page.locator(".flying")).to_have_count(0)
        light.screenshot(path=OUT / "page.png")
        dark.screenshot(path=OUT / "page-dark.png")
        phone.screenshot(path=OUT / "page-phone.png")
        browser.close()


def _page(browser: Any, address: str, size: dict[str, int], scheme: str) -> Any:
    page = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce").new_page()
    page.goto(address)
    page.wait_for_selector("body[data-drawn]", timeout=PATIENCE)
    return page


if __name__ == "__main__":
    main()
