"""The id of a command is a digest of its whole content; what keeps one from being carried out is its outcome."""

from typing import Any

import msgspec
import pytest

from underhost.agents.sinks.orders import answer, digest_of, forged, order, seconds_of
from underhost.schemas.errors import Conflict, Gone, InputError, Refused, Retry, Unreachable
from underhost.schemas.records import Action, Outcome

COMMAND = order("label", "node/n1", {"uid": "u", "labels": {"host": "h1"}}, "node n1 runs on host h1", {"nodes": 4})


def test_equal_content_gives_an_equal_id_whatever_the_order_of_its_fields() -> None:
    same = order("label", "node/n1", {"labels": {"host": "h1"}, "uid": "u"}, COMMAND.because, {"nodes": 4})
    assert (same.id, forged(same)) == (COMMAND.id, "")


def test_a_command_that_came_over_a_topic_is_the_one_that_was_ordered() -> None:
    read = msgspec.json.decode(msgspec.json.encode(COMMAND), type=Action)
    assert (digest_of(read), forged(read)) == (COMMAND.id, "")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"kind": "bind"}, id="another kind"),
        pytest.param({"target": "node/n2"}, id="another target"),
        pytest.param({"desired": {"uid": "u", "labels": {"host": "h2"}}}, id="another value of a label"),
        pytest.param({"because": "somebody says so"}, id="another reason"),
        pytest.param({"snapshot": {"nodes": 5}}, id="another picture"),
    ],
)
def test_whatever_of_its_content_is_changed_the_id_is_not_its_own(change: dict[str, Any]) -> None:
    changed = msgspec.structs.replace(COMMAND, **change)
    assert forged(changed) == f"its id {COMMAND.id!r} is not its content's, {digest_of(changed)}"


@pytest.mark.parametrize(
    ("at", "seconds"),
    [
        pytest.param("1970-01-01T00:01:00Z", 60.0, id="a time"),
        pytest.param("", 0.0, id="nothing"),
        pytest.param("yesterday", 0.0, id="a word"),
        pytest.param("0001-01-01T00:00:00", 0.0, id="a time before all calendars"),
    ],
)
def test_what_is_no_time_of_a_command_is_long_ago(at: str, seconds: float) -> None:
    assert seconds_of(at) == seconds


@pytest.mark.parametrize(
    ("error", "result"),
    [
        pytest.param(Gone("why"), "refused", id="the object is gone"),
        pytest.param(Conflict("why"), "refused", id="it is another one"),
        pytest.param(Refused("why"), "refused", id="a right is missing"),
        pytest.param(InputError("why"), "refused", id="the password's file is missing"),
        pytest.param(Retry("why", 5), "failed", id="later"),
        pytest.param(Unreachable("why"), "failed", id="no answer"),
    ],
)
async def test_what_keeps_a_command_from_being_carried_out_is_its_outcome(error: Exception, result: str) -> None:
    async def writing() -> tuple[str, str]:
        raise error

    assert await answer(COMMAND, writing()) == Outcome(COMMAND.id, "label", "node/n1", result, "why")
