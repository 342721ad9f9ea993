"""What people ask a run for: begun only where VMs are moved here, and ended where the site may be another worker's."""

from typing import Any

import pytest

from underhost.agents.pipeline.repairs import PipelineRepairs
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.maintenance.run import MaintenanceTerms
from underhost.agents.sinks.moves.campaign import Campaigns
from underhost.agents.whatif.maintenance import Chosen
from underhost.schemas.errors import Unreachable

TERMS = MaintenanceTerms(Chosen(all=True))


class Leases:
    """A lease that is ours, or in doubt; implements what is asked of `RoleLeases`."""

    def __init__(self, doubt: str | None = None) -> None:
        self._doubt = doubt

    def of(self, role: str) -> "Leases":
        assert role == "mover"
        return self

    def doubt(self) -> str | None:
        return self._doubt


def a_run(
    *kinds: str, doubt: str | None = None, unsure: str | None = None, nudged: list[str] | None = None
) -> PipelineRepairs:
    leases: Any = Leases(doubt)
    nudge = (lambda site: None) if nudged is None else nudged.append
    return PipelineRepairs("s", kinds, Campaigns(), leases, lambda site: unsure, nudge)


def test_maintenance_is_begun_and_its_decider_is_asked() -> None:
    nudged: list[str] = []
    asked = a_run("move", "maintenance", nudged=nudged)
    run = asked.begin_maintenance("s", TERMS)
    assert (asked.maintenance(run.id), asked.maintenance(), nudged) == (run, run, ["s"])


@pytest.mark.parametrize(
    ("asked", "site", "why"),
    [
        pytest.param(a_run("move"), "t", "this worker acts on site s alone", id="site"),
        pytest.param(a_run("label"), "s", "this worker moves no VMs: it has no agent mover, or no vSphere", id="kind"),
        pytest.param(a_run("move", doubt="another has it"), "s", "another has it", id="lease"),
        pytest.param(a_run("move", unsure="stale"), "s", "stale", id="picture"),
    ],
)
def test_where_it_cannot_be_carried_out_it_is_said_why(asked: PipelineRepairs, site: str, why: str) -> None:
    with pytest.raises(Unreachable, match=why):
        asked.begin_maintenance(site, TERMS)
    with pytest.raises(Unreachable, match=why):
        asked.begin_repair(site, RepairTerms())


def test_where_the_site_may_be_another_workers_maintenance_ends() -> None:
    asked = a_run("move", "maintenance")
    run = asked.begin_maintenance("s", TERMS)
    asked.suspend()
    asked.suspend()
    assert run.progress.why == (
        "the worker that carried it out has ended, or has lost the site, and nobody goes on with it"
    )
    assert asked.begin_maintenance("s", TERMS) is asked.maintenance()
