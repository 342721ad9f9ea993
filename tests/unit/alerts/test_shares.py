"""So many findings of one namespace fire at a receiver; nobody else's wait for them."""

import msgspec
import pytest

from underhost.agents.alerts.shares import AlertShares
from underhost.schemas.records import FindingEvent


def event(id_: str, pod: str | None = "evil/x", state: str = "opened", severity: str = "violation") -> FindingEvent:
    return FindingEvent(
        id=id_,
        state=state,
        site="s",
        severity=severity,
        rule="NodeAffinity",
        reason="",
        message="",
        first_seen="",
        updated_at="",
        snapshot={},
        pod=pod,
    )


def ended(id_: str) -> FindingEvent:
    return event(id_, state="resolved")


def told(shares: AlertShares, *events: FindingEvent) -> list[str]:
    return [f"{one.id} {one.state}" for each in events for one in shares.admit(each)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([event("a"), event("b"), event("c")], ["a opened", "b opened"], id="the share and no more"),
        pytest.param(
            [event("a"), event("b"), event("c", "shop/db")],
            ["a opened", "b opened", "c opened"],
            id="others have theirs",
        ),
        pytest.param(
            [event("a", None), event("b", None), event("c", None)],
            ["a opened", "b opened", "c opened"],
            id="a node has no share",
        ),
        pytest.param(
            [event("a"), event("b"), event("a", state="updated")],
            ["a opened", "b opened", "a updated"],
            id="what fires is told on",
        ),
        pytest.param(
            [event("a"), event("b"), event("c", severity="drift"), event("d"), ended("a")],
            ["a opened", "b opened", "a resolved", "d opened"],
            id="when one ends the gravest that waits fires",
        ),
        pytest.param(
            [event("a"), event("b"), event("c"), ended("a"), event("d"), ended("c")],
            ["a opened", "b opened", "a resolved", "c opened", "c resolved", "d opened"],
            id="what has waited counts while it fires",
        ),
        pytest.param(
            [event("a"), event("b"), event("c"), ended("c"), ended("a")],
            ["a opened", "b opened", "a resolved"],
            id="what never fired never ends",
        ),
        pytest.param([ended("z")], ["z resolved"], id="what an earlier run has told of ends"),
    ],
)
def test_a_namespace_has_its_share_of_what_fires(events: list[FindingEvent], expected: list[str]) -> None:
    assert told(AlertShares(2), *events) == expected


def test_the_rule_of_another_namespace_is_that_ones_share() -> None:
    foreign = [msgspec.structs.replace(event(id_, "shop/db"), object="Namespace/evil") for id_ in "abc"]
    assert told(AlertShares(2), *foreign, event("d", "shop/db")) == ["a opened", "b opened", "d opened"]
