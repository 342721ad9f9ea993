from support.answers.rules import verdict
from support.build import a_node, a_pod, a_site

from underhost.agents.rules.scheduling_gates import reason
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options

GATED = a_pod("web").spec(schedulingGates=[{"name": "quota"}, {"name": "image"}])


def test_a_gated_pod_is_not_placed_and_its_gates_are_the_reason() -> None:
    found = schedule(a_site(a_node("n1"), GATED, a_pod("other")), Options())
    assert found.placements == {"shop/web": None, "shop/other": "n1"}
    assert found.failed == {"shop/web": {reason(("quota", "image")): 0}}
    assert reason(("quota", "image")) == "waiting for scheduling gates: [quota image]"


def test_a_gated_pod_is_explained_as_if_it_had_no_gates() -> None:
    found = verdict(a_site(a_node("n1"), GATED), "web")
    assert found.gated is True and found.nodes["n1"].feasible
