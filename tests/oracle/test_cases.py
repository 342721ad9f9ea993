"""The fixed cases: the seeds' clusters and hand-worked traps, with what upstream's plugins said of each (without Go).

`cases/NAME.json` is a List, `cases/expected/NAME.json` upstream's answer, written by `oracle -running -both`. The
answers were compared with expectations worked out by hand when the cases were made.
"""

import json
from pathlib import Path

import pytest
from oracle import compare

from underhost.agents.schedule.explain import explain

CASES = Path(__file__).parent / "cases"
NEGATIVE = "hand-12-ns-negative"  # pins kubernetes#141526, where we follow the documentation
NAMES = sorted(path.stem for path in CASES.glob("*.json"))


def test_there_are_cases() -> None:
    assert len(NAMES) == 37
    assert NEGATIVE in NAMES


@pytest.mark.parametrize("part", ["explain", "running", "schedule", "check"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != NEGATIVE])
def test_a_fixed_case_is_judged_as_upstream_judges_it(name: str, part: str) -> None:
    answer = json.loads((CASES / "expected" / f"{name}.json").read_bytes())
    assert compare.compare((CASES / f"{name}.json").read_bytes(), answer, frozenset([part])) == []


def test_a_negative_namespace_selector_matches_only_the_namespaces_that_it_says() -> None:
    verdicts = explain(compare.snapshot((CASES / f"{NEGATIVE}.json").read_bytes()), compare.OPTIONS).pods
    refused = {pod: [name for name, node in one.nodes.items() if not node.feasible] for pod, one in verdicts.items()}
    # wp (node a) is in p (prod), wd (node b) in d (dev); guard (node c) is against new pods outside prod
    assert refused == {"d/notin": ["b"], "d/dne": [], "d/in": ["b"], "p/new": [], "d/new": ["c"]}
