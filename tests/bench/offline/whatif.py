"""How long is a plan? A drain beside a check of the same files: 5,000 nodes on 512 hosts, 150,000 pods, 750 budgets.

Prints `name<TAB>value` lines. The dump is that of `support.sites.large`, with a budget for every tenth application, so
that drains go in steps.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.usage import usage_of
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

ROUNDS = 2
MANY = 1_250  # hosts of four nodes each
PLANS = {
    "drain of a node": ["drain", "n0001"],
    "drain of 20 nodes": ["drain", *(f"n{at:04d}" for at in range(1, 21))],
    "host with HA": ["fail", "host/esx-1"],
    "host without HA": ["fail", "host/esx-1", "--no-ha"],
    "maintenance": ["maintain", "host/esx-1"],
}


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        site = LargeSite()
        dump, inventory = site.write(Path(folder), _budgets(site.apps))
        given = ["-f", str(dump), "--inventory", str(inventory), "-o", "json"]
        check = _least([UNDERHOST, "check", *given])
        print(f"check: whole command, CPU s\t{check[0]:.2f}")
        for name, plan in PLANS.items():
            cpu, memory = _least([UNDERHOST, *plan, *given])
            print(f"{name}: CPU s\t{cpu:.2f}")
            print(f"{name}: CPU / check's\t{cpu / check[0]:.2f}")
            print(f"{name}: memory, MiB\t{memory:.0f}")
        each = usage_of([UNDERHOST, "fail", "--each", "host", *given])
        print(f"each of 512 hosts with HA: CPU s\t{each.cpu:.1f}")
        print(f"each of 512 hosts with HA: CPU / check's\t{each.cpu / check[0]:.1f}")
        dump, inventory = LargeSite(hosts=MANY).write(Path(folder))
        command = [UNDERHOST, "fail", "--each", "host", "-f", str(dump), "--inventory", str(inventory), "-o", "json"]
        each = usage_of(command)
        print(f"each of {MANY:,} hosts with HA: CPU s\t{each.cpu:.1f}")
        print(f"each of {MANY:,} hosts with HA: s\t{each.wall:.1f}")
        print(f"each of {MANY:,} hosts with HA: memory, MiB\t{each.memory:.0f}")


def _least(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, MiB) of the quickest of some runs."""
    runs = [usage_of(command) for _ in range(ROUNDS)]
    return min(run.cpu for run in runs), min(run.memory for run in runs)


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
    sys.exit(main())
