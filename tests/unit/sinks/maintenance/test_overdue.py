"""A maintenance of which nothing is heard, or that cannot be planned any more: it ends, and says how things stand."""

import pytest
from support.sites.maintained import MaintainedSite

from underhost.agents.sinks.maintenance.run import MaintenanceRun
from underhost.agents.whatif.maintenance import Chosen
from underhost.schemas.commands import MAINTENANCE
from underhost.schemas.errors import InputError
from underhost.streams.settings.sinks import MaintenanceSettings

LEFT = "host esx-1 was to be emptied; esx-2 was not begun"


def begun() -> tuple[MaintainedSite, MaintenanceRun]:
    """Hosts 1 and 2 are to have their turn; each host has room for two VMs, and no VM is on the fourth."""
    site = MaintainedSite({"n1": "h1", "n2": "h2", "n3": "h3"}, mib=8192)
    return site, site.ask(Chosen(hosts=("h1", "h2")))


async def until_ordered(site: MaintainedSite, worker: MaintainedSite.Worker, kind: str) -> None:
    """Until a command of this kind is ordered, which nobody carries out."""
    while kind not in {action.kind for action in worker.decide()}:
        await worker.carry_out(site.orders[len(site.outcomes) :])
        site.now += 1.0


@pytest.mark.parametrize(
    ("kind", "after", "why"),
    [
        pytest.param("move", 3660, f"nobody has said what became of the vMotion of VM n1; {LEFT}", id="a vMotion"),
        pytest.param(
            MAINTENANCE,
            7320,
            "nobody has said what became of host esx-1; host esx-1 may be in maintenance mode; esx-2 was not begun",
            id="a mode",
        ),
    ],
)
async def test_a_command_that_nobody_answers_ends_it_once_it_counts_as_lost(kind: str, after: float, why: str) -> None:
    site, run = begun()
    worker = site.worker()
    await until_ordered(site, worker, kind)
    site.now += after - 1.0
    worker.decide()
    assert run.progress.state == "acting"
    site.now += 1.0
    worker.decide()
    assert (run.progress.state, run.progress.why) == ("ended", why)


async def test_a_mode_that_no_picture_shows_ends_it_after_a_minute() -> None:
    site, run = begun()
    worker = site.worker()
    await until_ordered(site, worker, MAINTENANCE)
    await worker.carry_out(site.orders[-1:])
    site.vcenter.in_maintenance.clear()  # the picture shows what was before
    await worker.run(59)
    assert (run.progress.state, worker.decider.due) == ("acting", site.now + 1.0)
    await worker.run(2)
    assert (run.progress.state, run.progress.why) == (
        "ended",
        "no inventory shows the mode that host esx-1 was brought into;"
        " host esx-1 is in maintenance mode; esx-2 was not begun",
    )


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(InputError("too many VMs"), "too many VMs", id="of this site"),
        pytest.param(ValueError("a bug"), "ValueError: a bug", id="a bug"),
    ],
)
async def test_what_cannot_be_planned_ends_with_the_reason(error: Exception, why: str) -> None:
    def fail(*args: object) -> None:
        raise error

    site, run = begun()
    site.rolling._make = fail  # type: ignore[assignment]
    await site.worker().run(5)
    assert (run.progress.state, run.progress.why) == ("ended", f"no plan can be made: {why}")


async def test_hosts_that_cannot_be_emptied_together_any_more_stay_as_they_are() -> None:
    site, run = begun()
    worker = site.worker(MaintenanceSettings(max_hosts=2))
    await worker.run(1)
    assert [one.state for one in run.progress.hosts] == ["emptying"] * 2
    site.host("h4", memory_mib=1)
    await worker.run(5)
    assert (run.progress.state, run.progress.why) == (
        "ended",
        "the plan is not valid any more: esx-1, esx-2 cannot be emptied at a time;"
        " host esx-1 was to be emptied; host esx-2 was to be emptied",
    )
    assert (site.vcenter.moves, site.vcenter.modes) == ([], [])
