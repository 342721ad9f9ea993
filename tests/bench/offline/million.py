"""A million pods of 50,000 applications on 20,000 nodes: a check of them, and one change judged while it is followed.

Prints `name<TAB>value` lines, those of each round (an argument) behind `run`. The pods are those of
`support.sites.large`, 0.8 KB each: rules and requests, and nothing of what an API server adds.
"""

import sys
import tempfile
from pathlib import Path

from bench.offline.curve import moves
from bench.rounds import tell
from bench.usage import usage_of
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

SITE = LargeSite.of(20_000, 50_000)


def main() -> None:
    """Measure and print each round."""
    rounds = int((sys.argv[1:] or ["1"])[0])
    with tempfile.TemporaryDirectory() as folder:
        dump, inventory = SITE.write(Path(folder))
        command = [UNDERHOST, "check", "-f", str(dump), "--inventory", str(inventory), "-o", "json"]
        checks = [usage_of(command) for _ in range(rounds)]
    found = [
        {
            "a million pods: check, CPU s": used.cpu,
            "a million pods: check, s": used.wall,
            "a million pods: check, memory, MiB": used.memory,
            "a million pods: a pod moved, p50 ms": moved,
        }
        for used, moved in zip(checks, moves(SITE, rounds), strict=True)
    ]
    tell(found)


if __name__ == "__main__":
    main()
