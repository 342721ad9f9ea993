"""From a fresh clone to the first finding on the page: git clone, `make run`, a browser that waits for the row.

Prints `name<TAB>value` lines. The package cache is made warm by a clone before; its time is told,
too. The commit of this checkout is cloned; what is not committed is not measured.
"""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from playwright.sync_api import sync_playwright
from support.processes.browser import CHROMIUM, WIDE

ROOT = Path(__file__).parents[2]
GOAL = 90
ADDRESS = re.compile(r"The page: (http://127\.0\.0\.1:\d+/)")
FIRST = "ul[aria-label='Open findings'] li"
WITHIN = 300_000


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        begun = time.monotonic()
        subprocess.run(
            ["make", "--silent", ".venv/.run"], cwd=_clone(Path(folder) / "before"), check=True, stdout=sys.stderr
        )
        print(f"a clone and its set-up before, s\t{time.monotonic() - begun:.0f}")
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(WITHIN)
        begun, used = time.monotonic(), _cpu()
        clone = _clone(Path(folder) / "measured")
        # `make run` is `make demo` where it is told nothing; the port is free, so that no other page is in the way.
        with subprocess.Popen(
            ["make", "demo", "ARGS=--listen 127.0.0.1:0"], cwd=clone, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True,
        ) as run:  # fmt: skip
            try:
                assert run.stdout is not None
                address = _address(run.stdout)
                served = time.monotonic() - begun
                page.goto(address)
                page.wait_for_selector(FIRST)
                seen = time.monotonic() - begun
                told = page.inner_text(FIRST).splitlines()
            finally:
                os.killpg(run.pid, signal.SIGINT)
        browser.close()
    print(f"until the page is served, s\t{served:.1f}")
    print(f"until the first finding is seen, s\t{seen:.1f}")
    print(f"CPU time of all that, s\t{_cpu() - used:.1f}")
    print(f"goal, s\t{GOAL}")
    print(f"what it says\t{' '.join(told)[:60]}")


def _cpu() -> float:
    """What children that have ended have used, and theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _clone(folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, folder], check=True)
    return folder


def _address(output: IO[str]) -> str:
    for line in output:
        found = ADDRESS.search(line)
        if found is not None:
            return found[1]
    sys.exit("the demo ended before it had a page")


if __name__ == "__main__":
    main()
