"""Commands that an earlier run left under way, and how records are keyed."""

import pytest

from underhost.agents.pipeline.decide.unfinished import UnfinishedCommands
from underhost.agents.sinks.orders import UNANSWERED
from underhost.schemas.records import Action, Outcome
from underhost.streams.derived import event_id, pod_key, rfc3339, target_key


def action(id_: str, target: str = "node/n1", host: str = "h1") -> Action:
    return Action(id_, "label", target, {"uid": "u", "labels": {"host": host}}, "", {})


def test_what_is_under_way_is_not_ordered_again() -> None:
    orders = UnfinishedCommands("prod", [action("old")], [], 0.0)
    assert orders.fresh([action("new"), action("other", "node/n2")], 1.0) == [action("other", "node/n2")]


def test_an_earlier_command_that_asks_for_the_same_is_confirmed() -> None:
    orders = UnfinishedCommands(
        "prod", [action("old"), action("gone", "node/n2"), action("other", "node/n3", "h9")], [], 0.0
    )
    orders.fresh([action("new"), action("else", "node/n3")], 1.0)
    assert orders.confirmed == {"old"}


def test_another_command_for_the_target_is_ordered() -> None:
    orders = UnfinishedCommands("prod", [action("old", host="h1")], [], 0.0)
    assert orders.fresh([action("new", host="h2")], 1.0) == [action("new", host="h2")]


def test_what_was_answered_is_under_way_no_more() -> None:
    answer = Outcome("old", "label", "node/n1", "applied", "")
    assert UnfinishedCommands("prod", [action("old")], [answer], 0.0).fresh([action("new")], 1.0) == [action("new")]
    orders = UnfinishedCommands("prod", [action("old")], [], 0.0)
    orders.observe(Outcome("older", "label", "node/n1", "applied", ""))
    assert orders.fresh([action("new")], 1.0) == []
    orders.observe(answer)
    assert orders.fresh([action("new")], 1.0) == [action("new")]


def test_a_command_that_is_not_answered_for_long_is_lost() -> None:
    orders = UnfinishedCommands("prod", [action("old")], [], 100.0)
    assert orders.fresh([action("new")], 100.0 + UNANSWERED) == [action("new")]


def test_an_action_is_published_under_its_targets_key() -> None:
    [record] = UnfinishedCommands("prod", [], [], 0.0).records([action("new")])
    assert record.key == "prod/node//n1"
    assert record.value == (
        b'{"because":"","desired":{"labels":{"host":"h1"},"uid":"u"},"id":"new","kind":"label","snapshot":{},'
        b'"target":"node/n1"}'
    )
    assert record.event_id == event_id("prod/node//n1", record.value)


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("node/n1", "prod/node//n1"),
        ("pod/shop/db-0", "prod/pod/shop/db-0"),
        ("drs-rule/C0/underhost-prod-a", "prod/drs-rule/C0/underhost-prod-a"),
    ],
)
def test_the_key_of_a_target_is_the_key_of_its_object(target: str, key: str) -> None:
    assert target_key("prod", target) == key


def test_pods_and_moments_are_written_as_the_contract_says() -> None:
    assert pod_key("prod", "shop/db-0") == "prod/pod/shop/db-0"
    assert rfc3339(1767600000.0625) == "2026-01-05T08:00:00.062Z"
