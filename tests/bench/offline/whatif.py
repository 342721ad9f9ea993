"""How long is a plan? A drain beside a check of the same files: 5,000 nodes on 512 hosts, 150,000 pods, 750 budgets.

Prints `name<TAB>value` lines, those of each round (an argument) behind `run`. The dump is that of
`support.sites.large`, with a budget for every tenth application, so that drains go in steps.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.rounds import tell
from bench.usage import usage_of
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

MANY = 1_250  # hosts of four nodes each
PLANS = {
    "drain of a node": ["drain", "n0001"],
    "drain of 20 nodes": ["drain", *(f"n{at:04d}" for at in range(1, 21))],
    "host with HA": ["fail", "host/esx-1"],
    "host without HA": ["fail", "host/esx-1", "--no-ha"],
    "maintenance": ["maintain", "host/esx-1"],
}


def main() -> None:
    """Measure and print each round."""
    rounds = int((sys.argv[1:] or ["1"])[0])
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        site = LargeSite()
        given, many = (
            ["-f", str(dump), "--inventory", str(inventory), "-o", "json"]
            for dump, inventory in (
                site.write(Path(one), _budgets(site.apps)),
                LargeSite(hosts=MANY).write(Path(other)),
            )
        )
        tell([_round(given, many) for _ in range(rounds)])


def _round(given: list[str], many: list[str]) -> dict[str, float]:
    """The figures of every plan, by the name of their line; `many`: the arguments of the site of more hosts."""
    check = usage_of([UNDERHOST, "check", *given]).cpu
    found = {"check: whole command, CPU s": check}
    for name, plan in PLANS.items():
        used = usage_of([UNDERHOST, *plan, *given])
        found |= {f"{name}: CPU s": used.cpu, f"{name}: CPU / check's": used.cpu / check}
        found[f"{name}: memory, MiB"] = used.memory
    each = usage_of([UNDERHOST, "fail", "--each", "host", *given])
    found |= {
        "each of 512 hosts with HA: CPU s": each.cpu,
        "each of 512 hosts with HA: CPU / check's": each.cpu / check,
    }
    each, title = usage_of([UNDERHOST, "fail", "--each", "host", *many]), f"each of {MANY:,} hosts with HA"
    return found | {f"{title}: CPU s": each.cpu, f"{title}: s": each.wall, f"{title}: memory, MiB": each.memory}


def _budgets(apps: int) -> list[dict[str, Any]]:
    return [
        {
            "kind": "PodDisruptionBudget",
            "apiVersion": "policy/v1",
            "metadata": {"name": f"app-{app}", "namespace": f"team-{app % 40}"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": f"app-{app}"}}},
        }
        for app in range(0, apps, 10)
    ]


if __name__ == "__main__":
    main()
