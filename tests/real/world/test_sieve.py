"""A small share of the plans of `make trust ARGS=sieve`: workers that are killed, or shown too little, or the past."""

from collections import Counter
from pathlib import Path

import pytest
from trust.sieve.plans import PLANS, Kill
from trust.sieve.plays import play_all

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SHARE = PLANS[6:15]
"""The table is mixed: after the stories that are told undisturbed, any part of it has some of each kind."""


async def test_a_killed_or_deceived_worker_ends_where_an_undisturbed_one_does(parts: Path, tmp_path: Path) -> None:
    assert len(Counter(plan.regime for plan in SHARE)) == 3
    verdicts = await play_all(SHARE, tmp_path, parts, lanes=3)
    assert {verdict.plan: verdict.wrong for verdict in verdicts} == {plan.number: [] for plan in SHARE}


async def test_the_plans_find_an_eviction_that_names_no_uid(parts: Path, tmp_path: Path) -> None:
    plan = next(plan for plan in PLANS if plan.fault == Kill("evict", 1, "after"))
    [verdict] = await play_all([plan], tmp_path, parts, mutant="an eviction names no uid")
    assert [line for line in verdict.wrong if line.startswith("the eviction of") and line.endswith("names no uid")]
