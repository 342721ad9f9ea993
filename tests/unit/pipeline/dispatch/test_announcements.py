"""What is told of a site's records: of which ones, and what is waited for before anything is said."""

import time
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from underhost.agents.pipeline.dispatch import announcements as announcements_module
from underhost.agents.pipeline.dispatch.announcements import Announcements
from underhost.schemas.errors import BadEvent
from underhost.schemas.kubernetes import Metadata, Pod, PodSpec
from underhost.schemas.records import Action, FindingEvent, NodeHost, Outcome
from underhost.schemas.topics import ACTIONS, NODE_HOSTS, NODES, OUTCOMES, PODS, VIOLATIONS, Topic
from underhost.streams.derived import outgoing

OPENED = FindingEvent(
    "f1", "opened", "prod", "physical", "PhysicalHost", "r", "m", "0", "1", {"nodes": 7, "pods": 7}, "shop/db-0"
)
EVICTED = Outcome("a1", "evict", "pod/shop/db-0", "applied", "it shared a host")
MOVED = Outcome("a2", "move", "vm/vm-1", "applied", "moved to esx-2")


class Picture:
    """The rows of site prod, which show a pod once this record has been read."""

    def __init__(self, shown_by: int, ahead: Iterable[int] = ()) -> None:
        """`ahead`: how far each look finds the topics read, before they are read to the end."""
        self.states: dict[str, Any] = {}
        self._shown_by, self._ahead = shown_by, iter(ahead)

    def partition_of(self, site: str) -> int:
        return 3

    def following(self, topic: Topic, partition: int) -> int:
        assert (topic in (NODES, PODS), partition) == (True, 3)
        read = next(self._ahead, 1000)
        if read >= self._shown_by:
            pod = Pod(Metadata(name="db-0", namespace="shop"), spec=PodSpec(node_name="n1"))
            self.states["prod"] = SimpleNamespace(rows=lambda topic: {"shop/db-0": pod})
        return read


class Rows:
    """The tables of the derived topics."""

    def __init__(self, *rows: tuple[Topic, str, Any], raw: dict[str, bytes] | None = None) -> None:
        self._rows, self._raw = rows, raw or {}

    def records(self, topic: Topic, record: type[Any], site: str | None = None) -> Iterator[Any]:
        for one, key, value in self._rows:
            if one is topic and isinstance(value, record) and key.startswith(f"{site}/"):
                yield value

    def row(self, topic: Topic, key: str) -> bytes | None:
        found = [outgoing(one, at, value).value for one, at, value in self._rows if (one, at) == (topic, key)]
        return found[0] if found else self._raw.get(key)


async def told(announcements: Announcements, topic: Topic, row: Any, age: float = 0.0) -> list[str]:
    """The objects that are told of a record that is so many seconds old."""
    message = SimpleNamespace(value=outgoing(topic, "prod/x", row).value, timestamp=time.time() - age)
    about = [action.desired["regarding"] for action in await announcements.commands_of(topic, message)]
    return [f"{one['kind']} {one['name']}" for one in about]  # type: ignore[index]


def announcing(*rows: tuple[Topic, str, Any], picture: Picture | None = None, **raw: Any) -> Announcements:
    return Announcements("prod", picture or Picture(0), Rows(*rows, **raw))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some looks are all that is waited for."""
    monkeypatch.setattr(announcements_module, "LOOK", 0.001)
    monkeypatch.setattr(announcements_module, "LAG", 0.01)


@pytest.mark.parametrize(
    ("topic", "row", "age", "expected"),
    [
        pytest.param(VIOLATIONS, OPENED, 600, ["Pod db-0", "Node n1"], id="a finding of ten minutes ago"),
        pytest.param(VIOLATIONS, OPENED, 1200, [], id="a finding of before"),
        pytest.param(OUTCOMES, EVICTED, 600, ["Pod db-0"], id="an eviction of ten minutes ago"),
        pytest.param(OUTCOMES, EVICTED, 1200, [], id="an eviction of before"),
    ],
)
async def test_of_what_is_long_ago_nothing_is_told(topic: Topic, row: Any, age: float, expected: list[str]) -> None:
    assert await told(announcing(), topic, row, age) == expected


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        pytest.param((8, 8), ["Pod db-0", "Node n1"], id="both topics are read that far"),
        pytest.param((7, 8, 7, 8, 8), ["Pod db-0", "Node n1"], id="the record itself is still to be read"),
        pytest.param((0,) * 100, ["Pod db-0"], id="for a moment and no longer"),
    ],
)
async def test_a_finding_waits_for_the_picture_that_it_was_found_in(ahead: Iterable[int], expected: list[str]) -> None:
    assert await told(announcing(picture=Picture(8, ahead)), VIOLATIONS, OPENED) == expected


@pytest.mark.parametrize(
    ("ordered", "expected"),
    [
        pytest.param("a1", ["Pod db-0", "Node n1"], id="this command"),
        pytest.param("a9", ["Pod db-0"], id="a newer command of its target"),
        pytest.param(None, ["Pod db-0"], id="none that can be read"),
    ],
)
async def test_an_outcome_is_told_with_what_its_own_command_says(ordered: str | None, expected: list[str]) -> None:
    key = "prod/pod/shop/db-0"
    if ordered is None:
        announcements = announcing(raw={key: b"{"})
    else:
        announcements = announcing((ACTIONS, key, Action(ordered, "evict", "pod/shop/db-0", {"node": "n1"}, "", {})))
    assert await told(announcements, OUTCOMES, EVICTED) == expected


async def test_what_becomes_of_a_vm_is_told_to_the_node_that_it_is() -> None:
    hosts = [
        (NODE_HOSTS, f"{site}/{node}", NodeHost(node, vm, "h1", "esx-1", "name"))
        for site, node, vm in (("prod", "n1", "vm-1"), ("prod", "n2", "vm-2"), ("other", "n3", "vm-1"))
    ]
    assert await told(announcing(*hosts), OUTCOMES, MOVED) == ["Node n1"]


async def test_who_was_told_of_an_open_finding_before_a_restart_is_not_told_again() -> None:
    open_ = [(VIOLATIONS, f"{site}/f1", OPENED) for site in ("prod", "other")]
    announcements = announcing(open_[1])
    announcements.resume()
    updated = msgspec.structs.replace(OPENED, state="updated", peers=["shop/db-1"])
    assert await told(announcements, VIOLATIONS, updated) == ["Pod db-0", "Pod db-1", "Node n1"], "another site's"
    picture = Picture(0)
    announcements = announcing(open_[0], picture=picture)
    picture.following(PODS, 3)
    announcements.resume()
    assert await told(announcements, VIOLATIONS, updated) == ["Pod db-1"]


async def test_what_cannot_be_read_is_told_to_nobody() -> None:
    with pytest.raises(BadEvent):
        await announcing().commands_of(VIOLATIONS, SimpleNamespace(value=b"{", timestamp=time.time()))
