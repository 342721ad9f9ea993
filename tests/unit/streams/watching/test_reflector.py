"""Following a feed: when it is resumed, listed again, or left alone for a while."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from support.fakes.topics import FakeTopics

from underhost.schemas.errors import Gone, Refused, Retry, Unreachable
from underhost.schemas.kubernetes import Metadata, Pod, PodSpec, decode
from underhost.schemas.topics import DEAD_LETTERS, PODS
from underhost.streams.timing import Timing
from underhost.streams.watching import reflector
from underhost.streams.watching.changes import Listing, Seen, Unreadable, WatchBatch
from underhost.streams.watching.reflector import Held, Reflector, held_of


class LowRandom(random.Random):
    """Never any jitter."""

    def random(self) -> float:
        return 0.0


class Naps:
    """Sleeps that are noted and pass at once; `enough` is set after so many."""

    def __init__(self, enough: int = 0) -> None:
        self.taken: list[float] = []
        self.enough = asyncio.Event()
        self._count = enough

    async def __call__(self, seconds: float) -> None:
        self.taken.append(round(seconds, 3))
        if len(self.taken) >= self._count:
            self.enough.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)


class Script:
    """A feed whose answers are written out: for each list a Listing or an error, for each watch batches and errors."""

    name = "pods"

    def __init__(self, lists: Sequence[object] = (), watches: Sequence[Sequence[object]] = ()) -> None:
        self._lists, self._watches = list(lists), list(watches)
        self.positions: list[str] = []

    async def list(self) -> Listing:
        answer = self._lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Listing)
        return answer

    async def watch(self, position: str) -> AsyncGenerator[WatchBatch, None]:
        self.positions.append(position)
        for answer in self._watches.pop(0) if self._watches else ():
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, WatchBatch)
            yield answer


def pod(name: str, version: str = "1", node: str = "") -> Seen:
    value = Pod(Metadata(name=name, uid=f"uid-{name}", resource_version=version), PodSpec(node_name=node))
    return Seen(f"s/pod/shop/{name}", f"uid-{name}", value)


def batch(position: str, *changes: Seen | Unreadable) -> WatchBatch:
    return WatchBatch(changes, position)


def listing(position: str, *seen: Seen) -> Listing:
    return Listing({one.key: one for one in seen}, (), position)


async def follow(
    feed: Script, naps: Naps, *, held: Sequence[Seen] = (), position: str | None = "10", **options: Any
) -> tuple[FakeTopics, Reflector]:
    """Follow until so many naps were taken; what was published by then."""
    topics = FakeTopics()
    timing = Timing(sleep=naps, rng=LowRandom(), steady=1e9)

    start: dict[str, Held] = {one.key: held_of(one) for one in held}
    following = Reflector(feed, PODS, topics, start, timing, doubted=asyncio.Event(), **options)
    task = asyncio.create_task(following.run(position))
    await asyncio.wait_for(naps.enough.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return topics, following


async def test_a_stream_that_ends_is_resumed_from_the_last_position() -> None:
    feed = Script(watches=[[batch("11", pod("a")), batch("12")], [batch("13", pod("b"))]])
    topics, _ = await follow(feed, Naps(4))
    assert feed.positions == ["10", "12", "13"]
    assert [record.key for record in topics.records] == ["s/pod/shop/a", "s/pod/shop/b"]


async def test_dropped_connections_are_retried_at_once_then_with_growing_delays() -> None:
    drop = [Unreachable("dropped")]
    naps = Naps(8)
    await follow(Script(watches=[drop, drop, drop, drop, [batch("11", pod("a")), *drop], drop, drop]), naps)
    assert naps.taken == [0.0, 0.0, 0.8, 1.6, 3.2, 0.0, 0.8, 1.6]


async def test_streams_that_end_at_once_again_and_again_are_no_hot_loop() -> None:
    naps = Naps(5)
    await follow(Script(), naps)
    assert naps.taken == [0.0, 0.0, 0.8, 1.6, 3.2]


async def test_a_server_that_asks_for_time_gets_it_and_is_not_listed() -> None:
    naps = Naps(4)
    feed = Script(watches=[[Retry("slow down", 7.0)], [Retry("slow down", 7.0)], [Retry("slow down", 0.0)]])
    await follow(feed, naps)
    assert naps.taken == [0.0, 7.0, 7.0, 1.6]
    assert feed.positions == ["10", "10", "10"]


async def test_an_expired_position_is_replaced_by_a_new_list() -> None:
    feed = Script(
        lists=[listing("50", pod("a", "40", node="n2"), pod("b", "20"), pod("c", "45"))],
        watches=[[Gone("too old")], [batch("51")]],
    )
    topics, reflector = await follow(feed, Naps(3), held=[pod("a"), pod("b"), pod("x"), pod("y")])
    assert feed.positions == ["10", "50"]
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/a", False),
        ("s/pod/shop/c", False),
        ("s/pod/shop/x", True),
        ("s/pod/shop/y", True),
    ]
    assert reflector.relists == 1


async def test_lists_that_expire_again_and_again_are_spaced_out() -> None:
    naps = Naps(5)
    gone = [Gone("too old")]
    await follow(Script(lists=[listing("50")] * 4, watches=[gone, gone, gone, gone]), naps)
    assert naps.taken == [0.0, 0.0, 0.8, 1.6, 3.2]


async def test_a_list_that_fails_is_tried_again() -> None:
    feed = Script(
        lists=[Unreachable("away"), Refused("no"), Retry("busy", 3.0), listing("50", pod("a"))], watches=[[Gone("old")]]
    )
    naps = Naps(6)
    topics, _ = await follow(feed, naps)
    assert naps.taken[:5] == [0.0, 0.0, 0.8, 1.6, 3.2]
    assert [record.key for record in topics.records] == ["s/pod/shop/a"]


async def test_an_empty_list_is_not_believed_and_the_watch_goes_on_beside_it() -> None:
    feed = Script(lists=[listing("50")], watches=[[Gone("old")], [batch("51", pod("b", node="n1"), pod("c"))]])
    topics, reflector = await follow(feed, Naps(3), held=[pod("a"), pod("b")], protected=True)
    assert feed.positions == ["10", "50"]
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/b", False),
        ("s/pod/shop/c", False),
    ]
    assert reflector.shrunk == follower_line(2, 2)
    assert reflector.relists == 1


async def test_a_collapsed_list_holds_back_what_it_lacks_and_nothing_else() -> None:
    feed = Script(lists=[listing("50", pod("a", node="n1"), pod("new"))], watches=[[Gone("old")]])
    held = [pod(name) for name in ("a", "b", "c", "d")]
    topics, reflector = await follow(feed, Naps(3), held=held, protected=True, guarded=True)
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/a", False),
        ("s/pod/shop/new", False),
    ]
    assert reflector.shrunk == follower_line(3, 4)


def gone(name: str) -> WatchBatch:
    return batch("60", Seen(f"s/pod/shop/{name}", f"uid-{name}", None))


async def test_a_pod_that_is_certain_comes_changes_and_goes_beside_a_doubt() -> None:
    missing = [f"s/pod/shop/lost-{number}" for number in range(40)]
    changes = [batch("51", pod("a", node="n1")), batch("52", pod("b")), gone("b"), gone("a")]
    topics, reflector = await follow(
        Script(watches=[changes]), Naps(2), held=[pod("a")], missing=missing, protected=True
    )
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/a", False),
        ("s/pod/shop/b", False),
        ("s/pod/shop/b", True),
        ("s/pod/shop/a", True),
    ]
    assert reflector.accept() == []  # whoever has listed tells of the doubt


async def test_when_all_objects_are_back_the_doubt_lasts_until_a_person_accepts_it() -> None:
    feed = Script(
        lists=[listing("50"), listing("60", pod("a"), pod("b", node="n1"))], watches=[[Gone("old")], [Gone("old")]]
    )
    topics, reflector = await follow(feed, Naps(4), held=[pod("a"), pod("b")], protected=True)
    assert [(record.key, record.value is None) for record in topics.records] == [("s/pod/shop/b", False)]
    assert reflector.shrunk == follower_line(2, 2)
    assert reflector.accept() == [follower_line(2, 2)]
    assert reflector.shrunk == ""


def follower_line(missing: int, of: int) -> str:
    return f"pods: {missing} of {of} objects are missing in the new list; none is deleted"


async def test_what_a_person_accepted_is_deleted_unless_a_new_list_shows_it() -> None:
    lists = [listing("50", pod("a")), Unreachable("away"), listing("60", pod("a"), pod("c", node="n3"))]
    naps, topics = Naps(2), FakeTopics()
    held = {one.key: held_of(one) for one in map(pod, ("a", "b", "c", "d"))}
    doubted = asyncio.Event()
    reflector = Reflector(
        Script(lists), PODS, topics, held, Timing(sleep=naps), protected=True, guarded=True, doubted=doubted
    )
    running = asyncio.create_task(reflector.run(None))
    await naps.enough.wait()  # the second nap never ends by itself
    running.cancel()
    assert doubted.is_set()
    assert topics.records == []
    reflector.accept()
    with pytest.raises(Unreachable):
        await reflector.delete_accepted()
    assert topics.records == []
    await reflector.delete_accepted()
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/b", True),
        ("s/pod/shop/c", False),
        ("s/pod/shop/d", True),
    ]
    await reflector.delete_accepted()  # nothing is left to do, and nothing is listed


async def test_what_a_person_accepted_is_deleted_though_a_new_list_comes_before() -> None:
    lists, doubted = [listing("50", pod("a")), listing("60", pod("a")), listing("70", pod("a"))], asyncio.Event()
    held = {one.key: held_of(one) for one in map(pod, ("a", "b", "c"))}
    naps, topics = Naps(2), FakeTopics()
    feed = Script(lists, watches=[[], [], []])
    reflector = Reflector(feed, PODS, topics, held, Timing(sleep=naps), protected=True, guarded=True, doubted=doubted)
    running = asyncio.create_task(reflector.run(None))
    await naps.enough.wait()
    running.cancel()
    reflector.accept()
    naps.taken.clear()
    naps.enough.clear()
    running = asyncio.create_task(reflector.run(None))  # a watch that has expired
    await naps.enough.wait()
    running.cancel()
    await reflector.delete_accepted()
    assert [(record.key, record.value) for record in topics.records] == [("s/pod/shop/b", None), ("s/pod/shop/c", None)]


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        pytest.param(listing("60", pod("a"), pod("b", "55")), "is not at 60 yet", id="the watch will show it"),
        pytest.param(listing("40", pod("a"), pod("b", "30")), "older than what was seen, 50", id="it may have gone"),
    ],
)
async def test_what_was_accepted_waits_for_a_list_that_fits_the_watch(shown: Listing, why: str) -> None:
    topics, reflector = await follow(
        Script([listing("50", pod("a")), shown, listing("60", pod("a"), pod("b", "45"))], [[], []]),
        Naps(2),
        held=[pod(name) for name in ("a", "b", "c", "d")],
        position=None,
        protected=True,
        guarded=True,
    )
    reflector.accept()
    with pytest.raises(Retry, match=why):
        await reflector.delete_accepted()
    assert topics.records == []
    await reflector.delete_accepted()
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/c", True),
        ("s/pod/shop/d", True),
    ]


async def test_too_many_deletions_in_a_minute_are_held_back_until_a_person_accepts_them() -> None:
    names = [f"p{number}" for number in range(5)]
    went = [Seen(f"s/pod/shop/{name}", f"uid-{name}", None) for name in names[:4]]
    watch = [batch("11", went[0], went[1]), batch("12", went[2], went[3]), batch("13", pod("p3", node="n2"))]
    topics, reflector = await follow(
        Script(lists=[listing("20", pod("p3"), pod("p4"))], watches=[watch]),
        Naps(2),
        held=[pod(name) for name in names],
        protected=True,
        guarded=True,
    )
    assert [(record.key, record.value is None) for record in topics.records] == [
        ("s/pod/shop/p0", True),
        ("s/pod/shop/p1", True),
        ("s/pod/shop/p3", False),  # it is there again
    ]
    assert reflector.shrunk == "pods: 4 of 5 were deleted at once; not believed"
    reflector.accept()
    await reflector.delete_accepted()
    assert [(record.key, record.value) for record in topics.records[3:]] == [("s/pod/shop/p2", None)]
    assert reflector.shrunk == ""


async def test_an_optional_kind_that_is_not_served_is_asked_for_every_ten_minutes() -> None:
    feed = Script(lists=[Gone("404"), Refused("403"), listing("50", pod("a"))])
    naps = Naps(4)
    topics, _ = await follow(feed, naps, position=None, optional=True)
    assert naps.taken[:3] == [600.0, 600.0, 600.0]
    assert [record.key for record in topics.records] == ["s/pod/shop/a"]


async def test_an_optional_kind_that_was_served_is_asked_for_again_soon_when_it_is_refused() -> None:
    feed = Script(lists=[Refused("401"), Refused("403"), listing("50", pod("a"))], watches=[[batch("11"), Gone("410")]])
    naps = Naps(5)
    topics, _ = await follow(feed, naps, optional=True)
    assert naps.taken[:4] == [0.0, 0.0, 0.8, 1.6]
    assert [record.key for record in topics.records] == ["s/pod/shop/a"]


async def test_only_real_changes_are_published() -> None:
    changes = [pod("a", "2"), pod("a", "3", node="n1"), pod("a", "4", node="n1"), pod("a", "5")]
    topics, _ = await follow(Script(watches=[[batch("5", *changes)]]), Naps(2), held=[pod("a", "1")])
    assert [record.event_id for record in topics.records] == ["uid-a/3", "uid-a/5"]


async def test_a_pod_made_anew_under_its_name_is_a_change() -> None:
    reborn = Seen("s/pod/shop/a", "uid-2", Pod(Metadata(name="a", uid="uid-2", resource_version="9")))
    gone = Seen("s/pod/shop/a", "uid-a", None)
    topics, _ = await follow(Script(watches=[[batch("9", gone, reborn)]]), Naps(2), held=[pod("a")])
    assert [record.event_id for record in topics.records] == ["uid-a/deleted", "uid-2/9"]


async def test_a_position_of_more_digits_than_python_reads_is_watched_from() -> None:
    endless = "9" * 5000
    feed = Script(watches=[[batch(endless, pod("a", endless))], [batch("12", pod("a", "12", "n2"))]])
    topics, _ = await follow(feed, Naps(4), held=[pod("a", "7", "n1")])
    assert feed.positions == ["10", endless, "12"]
    assert [record.event_id for record in topics.records] == [f"uid-a/{endless}", "uid-a/12"]


async def test_a_list_of_the_past_after_a_lost_watch_is_listed_again() -> None:
    lists = [listing("20", pod("a", "7")), listing("42", pod("a", "7"), pod("b", "40"))]
    feed = Script(lists=lists, watches=[[Gone("too old resource version")]])
    topics, _ = await follow(feed, Naps(4), held=[pod("a", "7"), pod("b", "40")], position="41")
    assert (topics.records, feed.positions) == ([], ["41", "42"])


async def test_after_etcd_was_restored_every_object_replaces_what_readers_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "PAST", 0.0)
    feed = Script(lists=[listing("20", pod("a", "7"), pod("b", "15"))], watches=[[Gone("Too large resource version")]])
    topics, _ = await follow(feed, Naps(3), held=[pod("a", "7"), pod("b", "40"), pod("c", "41")], position="41")
    records = [(record.key.rpartition("/")[2], record.event_id.rpartition("/")[2]) for record in topics.records]
    assert records == [("a", "deleted"), ("a", "7"), ("b", "deleted"), ("b", "15"), ("c", "deleted")]


async def test_what_cannot_be_read_is_a_dead_letter_with_its_origin() -> None:
    bad = Unreadable("s/pod/shop/a", b"{bad", "expected an object")
    topics, _ = await follow(Script(watches=[[batch("11", bad, pod("b"))]]), Naps(2))
    letter, good = topics.records
    assert (letter.topic, letter.key, letter.original) == (DEAD_LETTERS, "s/pod/shop/a", b"{bad")
    assert letter.headers == {
        "origin_topic": b"underhost.pods",
        "origin_partition": b"-1",
        "origin_offset": b"-1",
        "origin_bytes": b"4",
        "stage": b"watch",
        "error": b"expected an object",
    }
    assert good.key == "s/pod/shop/b"


async def test_an_unreadable_object_of_a_new_list_is_not_taken_for_a_deleted_one() -> None:
    relisted = Listing({}, [Unreadable("s/pod/shop/a", b"{bad", "odd")], "50")
    topics, _ = await follow(Script(lists=[relisted], watches=[[Gone("old")]]), Naps(3), held=[pod("a")])
    assert [record.topic for record in topics.records] == [DEAD_LETTERS]


async def test_published_bytes_are_the_trimmed_object() -> None:
    topics, _ = await follow(Script(watches=[[batch("11", pod("a", "3", node="n1"))]]), Naps(2))
    value = topics.records[0].value
    assert value is not None
    assert decode(value, Pod).spec.node_name == "n1"
