"""Grafana's dashboard asks for nothing that the worker does not say. Grafana itself cannot be run in these tests."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from underhost.agents.pipeline.metrics import Metrics

ROOT = Path(__file__).parents[3]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "compose/grafana/dashboards/underhost.json").read_text())
EXPRESSIONS = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
METRIC = re.compile(r"underhost_[a-z_]+")
USED = re.compile(r"(underhost_[a-z_]+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"by \(([^)]*)\)")


def known() -> dict[str, set[str]]:
    """The labels of every series name that /metrics can show."""
    found: dict[str, set[str]] = {}
    for collector in list(Metrics().registry._collector_to_names):
        for family in collector.describe() if hasattr(collector, "describe") else collector.collect():
            labels = set(collector._labelnames)
            suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
            for suffix in suffixes:
                found[family.name + suffix] = labels | ({"le"} if suffix == "_bucket" else set())
    return found


KNOWN = known()


@pytest.mark.parametrize(("panel", "expression"), EXPRESSIONS, ids=[title for title, _ in EXPRESSIONS])
def test_a_panel_asks_for_metrics_and_labels_that_there_are(panel: str, expression: str) -> None:
    uses = USED.findall(expression)
    assert uses, panel
    for name, selected in uses:
        assert name in KNOWN, name
        asked = set(re.findall(r"(\w+)\s*[=!]", selected))
        assert asked <= KNOWN[name], (name, asked)
        for grouped in GROUPED.findall(expression):
            assert {label.strip() for label in grouped.split(",")} <= KNOWN[name], (name, grouped)


def test_the_dashboard_shows_every_metric_that_there_is() -> None:
    shown = {METRIC.match(name).group() for _, expression in EXPRESSIONS for name in METRIC.findall(expression)}  # type: ignore[union-attr]
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in KNOWN}
    assert families - {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown} == {
        "underhost_source_doubted",
    }, "what a source doubts is shown as the writes that it stops"


def test_every_panel_says_what_it_shows_and_none_covers_another() -> None:
    taken = set()
    for panel in DASHBOARD["panels"]:
        assert panel["description"].endswith("."), panel["title"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.real
def test_prometheus_can_read_every_expression(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        why = "needs promtool (Debian's prometheus)"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    groups = [
        {"name": f"g{at}", "rules": [{"record": "r", "expr": expression.replace("$site", ".*")}]}
        for at, (_, expression) in enumerate(EXPRESSIONS)
    ]
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"groups": groups}))
    done = subprocess.run([promtool, "check", "rules", rules], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
