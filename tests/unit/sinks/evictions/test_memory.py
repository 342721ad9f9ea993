"""What the evictor finds again after a restart: the newest word on each case of a workload, whoever says it."""

from typing import Any

import msgspec

from underhost.agents.sinks.evictions.loop_guard import CaseHistory, LoopGuard
from underhost.agents.sinks.evictions.memory import remembered
from underhost.agents.sinks.evictions.pace import EvictionPace
from underhost.agents.sinks.evictions.sink import DesiredEviction, PastCase
from underhost.agents.sinks.orders import APPLIED, seconds_of
from underhost.schemas.commands import EVICT
from underhost.schemas.records import Action, Outcome
from underhost.streams.settings.sinks import EvictionSettings

OWNER = "ReplicaSet/shop/db"
HOURS_LATER = seconds_of("2026-01-01T09:00:00Z")


def evicted(pod: str, at: str, severity: str, low: int, number: int, *others: PastCase) -> tuple[Action, Outcome]:
    """A pod of the workload went because of a finding of this severity; `low` and `number` as in `DesiredEviction`."""
    desired = DesiredEviction("u", at, owner=OWNER, severity=severity, rule="R", low=low, number=number)
    desired.others = list(others)
    target, told = f"pod/shop/{pod}", msgspec.to_builtins(desired)
    return Action(pod, EVICT, target, told, "because", {}), Outcome(pod, EVICT, target, APPLIED, "gone")


def cases(*rows: tuple[Action, Outcome]) -> dict[str, CaseHistory]:
    """What the guard knows of the workload after a restart, by severity."""
    guard, settings = LoopGuard(tries=3, pause=600.0), EvictionSettings()
    given: list[Any] = [list(each) for each in zip(*rows, strict=True)]
    remembered(*given, EvictionPace(settings), guard, 0.0, HOURS_LATER)
    assert {(key.owner, key.rule) for key in guard.cases} == {(OWNER, "R")}
    return {key.severity: case for key, case in guard.cases.items()}


def test_a_later_command_says_what_became_of_another_case_of_its_workload() -> None:
    first = evicted("db-0", "2026-01-01T01:00:00Z", "physical", 2, 1)
    later = evicted("db-1", "2026-01-01T02:00:00Z", "violation", 1, 1, PastCase("physical", "R", low=1, number=2))
    found = cases(later, first)
    assert (found["physical"].low, found["physical"].tries) == (1, 2)


def test_what_an_earlier_command_says_of_a_case_is_not_newer_than_its_own() -> None:
    first = evicted("db-0", "2026-01-01T01:00:00Z", "physical", 2, 1, PastCase("violation", "R", low=5, number=0))
    later = evicted("db-1", "2026-01-01T02:00:00Z", "violation", 1, 3)
    found = cases(later, first)
    assert (found["violation"].low, found["violation"].tries) == (1, 2), "the last one is not seen to have gone"
