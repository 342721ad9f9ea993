"""The gates before a write: the first refusal counts, and whoever had to wait is asked from the start."""

import asyncio

from underhost.agents.pipeline.gates.may_write import Gate, refusal
from underhost.schemas.records import Action, Outcome

COMMAND = Action("id", "label", "node/n1", {}, "", {})


class Door(Gate):
    """Refuses with its reason, if it has one; waits as long as it is asked to."""

    def __init__(self, name: str, asked: list[str], reason: str = "", busy: asyncio.Event | None = None) -> None:
        self.name, self.reason, self._asked, self._busy = name, reason, asked, busy

    def refuses(self, action: Action) -> Outcome | None:
        """See `Gate`."""
        self._asked.append(self.name)
        return Outcome(action.id, action.kind, action.target, "failed", self.reason) if self.reason else None

    def is_unsure(self, action: Action) -> bool:
        """See `Gate`."""
        return self._busy is not None and not self._busy.is_set()

    async def settled(self, action: Action) -> None:
        """See `Gate`."""
        assert self._busy is not None
        await self._busy.wait()


async def test_where_no_gate_refuses_every_one_is_asked_once_in_order() -> None:
    asked: list[str] = []
    assert await refusal([Door("first", asked), Door("second", asked)], COMMAND) is None
    assert asked == ["first", "second"]


async def test_the_first_refusal_counts_and_no_later_gate_is_asked() -> None:
    asked: list[str] = []
    refused = await refusal([Door("first", asked, "it is late"), Door("second", asked, "it rains")], COMMAND)
    assert refused is not None and refused.reason == "it is late"
    assert asked == ["first"]


async def test_after_a_wait_the_gates_before_are_asked_again() -> None:
    asked, open_ = list[str](), asyncio.Event()
    first, second = Door("first", asked), Door("second", asked, busy=open_)
    asking = asyncio.create_task(refusal([first, second, Door("third", asked)], COMMAND))
    await asyncio.sleep(0)
    first.reason = "writes have stopped meanwhile"
    open_.set()
    refused = await asking
    assert refused is not None and refused.reason == "writes have stopped meanwhile"
    assert asked == ["first", "second", "first"]


async def test_a_command_that_somebody_waits_for_is_held_up_by_no_gate() -> None:
    asked: list[str] = []
    assert await refusal([Door("first", asked, busy=asyncio.Event())], COMMAND, patient=False) is None
