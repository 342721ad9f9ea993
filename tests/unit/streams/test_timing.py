"""Back-off: how long to wait after a failure, and publishing that waits for the broker."""

import random

import pytest
from support.fakes.topics import FakeTopics

from underhost.schemas.errors import Unreachable
from underhost.schemas.topics import PODS
from underhost.streams.ports import Outgoing
from underhost.streams.publish import publish_until_taken
from underhost.streams.timing import Backoff, Timing


class HighRandom(random.Random):
    """Always the largest jitter."""

    def random(self) -> float:
        return 1.0


class LowRandom(random.Random):
    """Never any jitter."""

    def random(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("rng", "expected"),
    [
        pytest.param(LowRandom(), [0.0, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0], id="without jitter"),
        pytest.param(HighRandom(), [0.0, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0], id="with the largest jitter"),
    ],
)
def test_the_first_retry_is_at_once_and_the_others_back_off_to_half_a_minute(
    rng: random.Random, expected: list[float]
) -> None:
    backoff = Backoff(Timing(rng=rng))
    assert [round(backoff.next(), 3) for _ in range(9)] == expected
    backoff.reset()
    assert backoff.next() == 0.0


async def test_publishing_waits_for_the_broker_however_long_it_takes() -> None:
    topics, naps = FakeTopics(), list[float]()
    topics.faults = [Unreachable("the broker is away")] * 10

    async def nap(seconds: float) -> None:
        naps.append(seconds)

    record = Outgoing(PODS, "s/pod/shop/a", b"{}", "u/1")
    await publish_until_taken(topics, [record], "changes", Timing(sleep=nap, rng=LowRandom()))
    assert topics.records == [record]
    assert naps == [0.0, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]
