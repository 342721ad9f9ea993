"""Namespaces take turns with a cluster's edits, and each has its share of them."""

import pytest
from support.fakes.vcenter import FakeDrsWriter

from underhost.agents.drs.names import rule_name
from underhost.agents.drs.shares import LeftOut
from underhost.agents.sinks.drs.decider import DrsDecider, Pacing
from underhost.agents.sinks.drs.sink import DrsSink
from underhost.agents.sinks.orders import REFUSED
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Outcome
from underhost.schemas.shares import Capped
from underhost.schemas.vsphere import DrsRule

EVIL = [rule_name("s", f"evil.x-{at:02}") for at in range(1, 21)]
DB = rule_name("s", "shop.db")
SITE = Snapshot(site="s", vsphere=True, offsets={"underhost.pods": 1})
LEFT = LeftOut("C0", EVIL[19], Capped("drsRules", "evil", "", "it asks for 30 DRS rules, and 20 are made"))
SAID = "namespace evil has its share (shares.drsRules): it asks for 30 DRS rules, and 20 are made"


def decider(*names: str, **pacing: float) -> DrsDecider:
    wanted = [DrsRule(name=name, type="anti-affinity", vms=["vm-1", "vm-2"], cluster="C0") for name in names]
    return DrsDecider("s", lambda snapshot: wanted, pacing=Pacing(steady=0.0, **pacing))  # type: ignore[arg-type]


def ordered(one: DrsDecider, now: float) -> list[str]:
    return [action.target.rpartition("/")[2] for action in one.decide(SITE, now)]


def test_a_namespace_that_wants_much_leaves_every_other_its_turn() -> None:
    one = decider(*EVIL, DB, edits=2)
    assert ordered(one, 0.0) == [EVIL[0], DB]


def test_who_was_served_longest_ago_comes_first() -> None:
    other = rule_name("s", "aaa.web")
    one = decider(*EVIL, other, DB, edits=2)
    assert ordered(one, 0.0) == [other, EVIL[0]]
    assert ordered(one, 60.0) == [EVIL[1], DB]


@pytest.mark.parametrize(
    ("now", "names"),
    [
        pytest.param(0.0, [*EVIL[:3], DB], id="its share of the hour at once"),
        pytest.param(3599.0, [DB], id="and nothing more within it"),
        pytest.param(3600.0, [*EVIL[:3], DB], id="until the hour is over"),
    ],
)
def test_one_namespace_has_its_share_of_an_hours_edits(now: float, names: list[str]) -> None:
    one = decider(*EVIL, DB, edits=10, tenant_edits=3)
    first = ordered(one, 0.0)
    assert (ordered(one, now) if now else first) == names  # an order that nobody answers is given again


async def test_what_is_beyond_a_share_is_refused_with_the_reason_and_is_no_edit() -> None:
    one = DrsDecider("s", lambda snapshot: [], pacing=Pacing(steady=0.0, edits=1), left_out=lambda: [LEFT])
    [action] = one.decide(SITE, 0.0)
    writer = FakeDrsWriter()
    outcome = await DrsSink(writer, "s", vms=lambda: {"vm-1", "vm-2"}, enabled=True).apply(action)
    assert outcome == Outcome(action.id, "drs-rule", f"drs-rule/C0/{EVIL[19]}", REFUSED, SAID)
    one.observe(outcome, 1.0)
    assert one.decide(SITE, 599.0) == []
    assert len(one.decide(SITE, 601.0)) == 1
