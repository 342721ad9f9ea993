"""A word to go on is a command like others: of its content's id, young, heard by a member, and not too often."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import msgspec
import pytest
from support.fakes.topics import FakeTopics

from underhost.agents.pipeline.gates.limits import WriteLimits
from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.pipeline.gates.resume import PER_MINUTE, STANDS, Resumes
from underhost.agents.sinks.orders import digest_of, order
from underhost.schemas.commands import RESUME
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import ACTIONS, Topic
from underhost.streams.derived import outgoing
from underhost.streams.ports import Record

NOON = 1_767_268_800.0
AT = "2026-01-01T12:00:00.000Z"
LOST = "vms: 39 of 40 are missing"


class Words(FakeTopics):
    """Topics that hold these words to go on."""

    def __init__(self, words: Iterable[tuple[str, Action]]) -> None:
        super().__init__()
        self._words = list(words)

    async def follow(
        self, topics: Iterable[Topic], *, from_beginning: bool = False, begun: asyncio.Event | None = None
    ) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        for offset, (key, action) in enumerate(self._words):
            yield Record(ACTIONS.name, 0, offset, 0, key.encode(), outgoing(ACTIONS, key, action).value, ())
        await asyncio.Event().wait()


def word(at: object = AT, target: str = "site/prod", **desired: object) -> Action:
    return order(RESUME, target, {"at": at, **desired}, "somebody", {})


async def heard(*words: Action, gates: Iterable[Gate] = (), key: str = "prod/site//prod") -> tuple[int, list[Outcome]]:
    """How often what the sources doubt was accepted, and the answers."""
    accepted: list[str] = []
    topics = Words((key, action) for action in words)

    def accept() -> list[str]:
        accepted.append(LOST)
        return [LOST]

    resumes = Resumes("prod", accept, topics, topics, None, lambda task: None, gates=gates, wall=lambda: NOON)
    resumes.start()
    await topics.until(lambda now: len(now.records) == len({word.id for word in words}))
    await resumes.stop()
    return len(accepted), [msgspec.json.decode(record.value or b"", type=Outcome) for record in topics.records]


async def test_a_word_that_was_given_just_now_is_followed() -> None:
    times, [answer] = await heard(word())
    assert (times, answer.result, answer.reason) == (1, "applied", LOST)


FORGED = msgspec.structs.replace(word(), because="the same id, and other content")


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(FORGED, f"its id {FORGED.id!r} is not its content's, {digest_of(FORGED)}", id="another's id"),
        pytest.param(
            word("2026-01-01T11:00:00Z"), "it was given 3600 s ago by this worker's clock", id="an old record"
        ),
        pytest.param(word("2026-01-01T13:00:00Z"), "it was given -3600 s ago by this worker's clock", id="the future"),
        pytest.param(word("noon"), "it does not say when it was given", id="no time"),
        pytest.param(word(None), "it does not say when it was given", id="nothing for a time"),
        pytest.param(word("0001-01-01T00:00:00"), "it does not say when it was given", id="a time before all times"),
        pytest.param(word(target="site/other"), "it names site/other, and came for site prod", id="another site's"),
    ],
)
async def test_a_word_that_nobody_can_have_given_just_now_is_refused(action: Action, reason: str) -> None:
    times, [answer] = await heard(action)
    assert (times, answer.result, answer.reason) == (0, "refused", reason)


async def test_a_word_holds_for_five_minutes_of_clocks_that_differ() -> None:
    assert (STANDS, (await heard(word("2026-01-01T12:05:00Z")))[0]) == (300.0, 1)


async def test_a_word_that_comes_twice_is_followed_once() -> None:
    one, other = word(number=1), word(number=2)
    times, answers = await heard(one, one, other)
    assert (times, [answer.id for answer in answers]) == (2, [one.id, other.id])


async def test_more_words_than_a_person_can_give_in_a_minute_lift_nothing() -> None:
    words = [word(number=number) for number in range(PER_MINUTE + 1)]
    times, answers = await heard(*words, gates=[WriteLimits({RESUME: PER_MINUTE})])
    assert times == PER_MINUTE
    assert (answers[-1].result, answers[-1].reason) == (
        "failed",
        "held back: 6 resume writes in the last minute (limits)",
    )
