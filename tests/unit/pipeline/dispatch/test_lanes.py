"""Work that waits its turn: so much at once, first come first served."""

import asyncio

import pytest

from underhost.agents.pipeline.dispatch.lanes import Lanes


class LettersAtWork:
    """Lanes for letters, each of which is done once it is let go."""

    def __init__(self, count: int) -> None:
        self.begun: list[str] = []
        self.failures: list[BaseException] = []
        self._may_end: dict[str, asyncio.Event] = {}
        self.lanes = Lanes("letters", count, self._work, self._ended)

    async def _work(self, letter: str) -> None:
        self.begun.append(letter)
        if letter == "!":
            raise ValueError("a bug")
        await self._may_end.setdefault(letter, asyncio.Event()).wait()

    def _ended(self, task: "asyncio.Future[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    async def put(self, letters: str) -> None:
        for letter in letters:
            self.lanes.put(letter)
        await asyncio.sleep(0)

    async def end(self, letter: str) -> None:
        self._may_end[letter].set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("count", "begun"), [pytest.param(1, "a", id="one after another"), pytest.param(3, "abc", id="three at once")]
)
async def test_so_many_are_under_way_and_the_next_begins_when_one_is_done(count: int, begun: str) -> None:
    works = LettersAtWork(count)
    await works.put("abcde")
    assert works.begun == list(begun)
    await works.end("a")
    assert works.begun == [*begun, "abcde"[count]]


async def test_what_comes_after_all_is_done_is_begun() -> None:
    works = LettersAtWork(2)
    await works.put("a")
    await works.end("a")
    await works.put("b")
    assert works.begun == ["a", "b"]


async def test_at_the_end_what_waits_is_handed_back_and_what_is_under_way_cancelled() -> None:
    works = LettersAtWork(2)
    await works.put("abcd")
    assert works.lanes.stop() == ["c", "d"]
    await works.lanes.ended()
    assert works.begun == ["a", "b"]
    await works.put("e")
    assert works.begun == ["a", "b", "e"]


async def test_a_bug_in_the_work_is_told() -> None:
    works = LettersAtWork(1)
    await works.put("!")
    await asyncio.sleep(0)
    assert [str(error) for error in works.failures] == ["a bug"]
