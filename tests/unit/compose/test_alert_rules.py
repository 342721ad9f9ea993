"""The alert rules for Prometheus, their tests, and their runbooks."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from underhost.agents.alerts.alert import severity_alert
from underhost.schemas.severities import SEVERITIES

ROOT = Path(__file__).parents[3]
RULES = ROOT / "compose/prometheus/rules/underhost.yml"
TESTS = ROOT / "compose/prometheus/tests/underhost_test.yml"
ALERTS = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}


@pytest.mark.real
@pytest.mark.parametrize("arguments", [("check", "rules", RULES), ("test", "rules", TESTS)], ids=["check", "test"])
def test_promtool_is_content_with_the_rules(arguments: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        why = "needs promtool (Debian's prometheus)"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_tested_to_fire() -> None:
    tested = {
        each["alertname"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for each in test["alert_rule_test"]
        if each["exp_alerts"]
    }
    assert tested == set(ALERTS)


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_a_rule_says_what_is_wrong_how_bad_it_is_and_where_its_runbook_is(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"docs/runbooks/{name}.md"


def test_there_is_a_runbook_for_every_alert_and_for_nothing_else() -> None:
    pages = {page.stem for page in (ROOT / "docs/runbooks").glob("*.md")}
    assert pages == set(ALERTS) | {severity_alert(severity) for severity in SEVERITIES}


@pytest.mark.parametrize("page", sorted((ROOT / "docs/runbooks").glob("*.md")), ids=lambda page: page.stem)
def test_a_runbook_says_what_it_means_and_what_to_do_step_by_step(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n\n")
    assert re.findall(r"^## (.*)$", text, re.M) == ["Steps"]
    steps = re.findall(r"^(\d+)\. ", text, re.M)
    assert steps == [str(number) for number in range(1, len(steps) + 1)] != []


REACHED = (
    "   `kubectl -n underhost port-forward service/underhost 8080` makes a worker in a cluster answer there. "
    "Add `--token-file FILE` where it asks for a token.\n"
)


@pytest.mark.parametrize("page", sorted((ROOT / "docs/runbooks").glob("*.md")), ids=lambda page: page.stem)
def test_a_runbook_asks_a_worker_what_is_open_and_says_how_to_reach_it(page: Path) -> None:
    text = page.read_text()
    asked = re.findall(r"^ +underhost violations.*", text, re.M)
    assert [line for line in asked if not line.endswith(" --server http://127.0.0.1:8080")] == []
    assert text.count(REACHED) == ("--server" in text)
