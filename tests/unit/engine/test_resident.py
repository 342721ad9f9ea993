"""A resident evaluator must say what a check that starts anew says, whatever has changed in between."""

import random
from dataclasses import replace

import pytest
from resident_changes import ChangingSite

from underhost.agents.engine.check import check
from underhost.agents.engine.resident import Resident
from underhost.agents.engine.schedule import decide
from underhost.agents.engine.snapshot import Options

OPTIONS = [Options(), Options(physical_host="required")]


@pytest.mark.parametrize("seed", range(10))
def test_after_each_of_200_changes_the_report_is_that_of_a_full_check(seed: int) -> None:
    site, options = ChangingSite(random.Random(seed), hosts=seed % 5 > 0), OPTIONS[seed % 2]
    resident = Resident(options)
    said: list[str] = []
    for _ in range(200):
        fresh = replace(site.snapshot)
        report = resident.update(site.snapshot)
        assert report == check(fresh, options), said[-3:]
        if site.pick.random() < 0.2:
            assert resident.decide(site.snapshot, {}) == decide(replace(fresh), options, {}), said[-3:]
        said.append(site.change())
