"""Plans beside the evaluation: made by a thread of its own, from one site after another."""

from support.sites.moving import MovingSite, replicas

from underhost.agents.planner.plan import Planned
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.planning import PlansBeside, repair_plan
from underhost.agents.site.snapshot import Options


def taken(plans: PlansBeside) -> Planned:
    """The plan, as soon as it is made."""
    while (found := plans.take()) is None:
        pass
    return found


def test_one_plan_after_another_is_of_the_site_as_it_was_given() -> None:
    site, plans = MovingSite({"n1": "h1", "n2": "h1"}, *replicas("db", "n1", "n2")), PlansBeside(Options(), repair_plan)
    asked = RepairTerms(evictions=None)
    plans.begin(site.snapshot(), asked)
    assert plans.is_busy
    [move] = taken(plans).moves
    assert (move.vm, move.name, move.from_, move.to, move.wave) == ("vm-n2", "n2", "h1", "h2", 1)
    site.vcenter.at["vm-n2"] = "h2"
    plans.begin(site.snapshot(), asked)
    assert taken(plans).moves == []
    assert not plans.is_busy


def test_what_is_held_and_barred_is_left_out() -> None:
    site, plans = MovingSite({"n1": "h1", "n2": "h1"}, *replicas("db", "n1", "n2")), PlansBeside(Options(), repair_plan)
    plans.begin(
        site.snapshot(),
        RepairTerms(evictions=None, held={"vm-n2": "a person has it"}, barred=frozenset({("vm-n1", "h2")})),
    )
    [move] = taken(plans).moves
    assert (move.vm, move.to) == ("vm-n1", "h3")


def test_a_vm_that_is_held_is_named_in_what_stays() -> None:
    site, plans = MovingSite({"n1": "h1", "n2": "h1"}, *replicas("db", "n1", "n2")), PlansBeside(Options(), repair_plan)
    held = {"vm-n1": "a person has it", "vm-n2": "a person has it"}
    plans.begin(site.snapshot(), RepairTerms(evictions=None, held=held))
    [stays] = taken(plans).document.unrepairable
    assert any("a person has it" in fact for fact in stays.conflict)


def test_what_is_forgotten_is_not_made() -> None:
    site, plans = MovingSite({"n1": "h1"}), PlansBeside(Options(), repair_plan)
    plans.begin(site.snapshot(), RepairTerms())
    plans.forget()
    assert (plans.is_busy, plans.take()) == (False, None)
