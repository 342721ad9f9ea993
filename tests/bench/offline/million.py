"""A million pods of 50,000 applications on 20,000 nodes: a check of them, and one change judged while it is followed.

Prints `name<TAB>value` lines. The pods are those of `support.sites.large`, 0.8 KB each: rules and requests, and nothing
of what an API server adds.
"""

import tempfile
from pathlib import Path

from bench.offline.curve import moved
from bench.usage import usage_of
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

SITE = LargeSite.of(20_000, 50_000)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        dump, inventory = SITE.write(Path(folder))
        used = usage_of([UNDERHOST, "check", "-f", str(dump), "--inventory", str(inventory), "-o", "json"])
    print(f"a million pods: check, CPU s\t{used.cpu:.1f}")
    print(f"a million pods: check, s\t{used.wall:.1f}")
    print(f"a million pods: check, memory, MiB\t{used.memory:.0f}")
    print(f"a million pods: a pod moved, p50 ms\t{moved(SITE):.2f}")


if __name__ == "__main__":
    main()
