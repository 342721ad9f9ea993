"""Rows of commands end with the object that they are about, whichever of the two topics is read first."""

from pathlib import Path

import msgspec
import pytest
from support.fakes.tables import StoredTables

from underhost.agents.pipeline.tables.orphans import KEPT
from underhost.agents.sinks.orders import order
from underhost.schemas.keys import object_key
from underhost.schemas.kubernetes import Metadata, Node, Pod, encode
from underhost.schemas.records import Outcome, Placement
from underhost.schemas.topics import ACTIONS, DRS_RULES, NODES, OUTCOMES, PLACEMENTS, PODS, Topic
from underhost.schemas.vsphere import DrsRule
from underhost.streams.derived import target_key

SITE = "prod"
READ = (NODES, PODS, DRS_RULES)
DERIVED = (PLACEMENTS, ACTIONS, OUTCOMES)
OBJECTS: dict[str, tuple[Topic, str, msgspec.Struct]] = {
    "pod/shop/db-0": (PODS, object_key(SITE, "pod", "db-0", "shop"), Pod(Metadata(name="db-0", namespace="shop"))),
    "node/n1": (NODES, object_key(SITE, "node", "n1"), Node(Metadata(name="n1"))),
    "drs-rule/C0/r": (DRS_RULES, object_key(SITE, "drs-rule", "C0:r"), DrsRule("r", "affinity", cluster="C0")),
}
TARGETS = pytest.mark.parametrize("target", OBJECTS)
LATER = KEPT + 1


async def command(tables: StoredTables, target: str, *, at: float = 0.0, kind: str = "label") -> None:
    """A command and its outcome."""
    action = order(kind, target, {}, "", {})
    outcome = Outcome("a", kind, target, "applied", "")
    await tables.take(ACTIONS, target_key(SITE, target), msgspec.json.encode(action), at=at)
    await tables.take(OUTCOMES, target_key(SITE, target), msgspec.json.encode(outcome), at=at)


async def appear(tables: StoredTables, target: str) -> None:
    topic, key, value = OBJECTS[target]
    await tables.take(topic, key, encode(value))


async def vanish(tables: StoredTables, target: str, *, at: float = 0.0) -> None:
    topic, key, _ = OBJECTS[target]
    await tables.take(topic, key, None, at=at)


def rows(tables: StoredTables) -> list[str]:
    """The keys of the rows of all commands."""
    return sorted({key.decode() for topic in DERIVED for key, _ in tables.rows(topic)})


@TARGETS
async def test_rows_of_an_object_that_is_there_are_kept(tmp_path: Path, target: str) -> None:
    tables = StoredTables(tmp_path, READ, DERIVED)
    await appear(tables, target)
    await command(tables, target)
    await command(tables, "node/other", at=LATER)
    assert rows(tables) == sorted([target_key(SITE, target), target_key(SITE, "node/other")])


@TARGETS
async def test_rows_of_an_object_that_has_gone_are_forgotten(tmp_path: Path, target: str) -> None:
    tables = StoredTables(tmp_path, READ, DERIVED)
    await appear(tables, target)
    await command(tables, target)
    await vanish(tables, target)
    await command(tables, "node/other", at=LATER)
    assert rows(tables) == [target_key(SITE, "node/other")]


@TARGETS
async def test_an_outcome_that_comes_after_its_objects_end_is_forgotten(tmp_path: Path, target: str) -> None:
    tables = StoredTables(tmp_path, READ, DERIVED)
    await command(tables, target)
    await command(tables, "node/other", at=LATER)
    assert rows(tables) == [target_key(SITE, "node/other")]


async def test_where_the_objects_are_not_read_rows_are_kept_for_a_while_only(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, (NODES,), (OUTCOMES,))
    for number in range(3):
        row = Outcome("a", "bind", f"pod/shop/p{number}", "applied", "")
        key = target_key(SITE, row.target)
        await tables.take(OUTCOMES, key, msgspec.json.encode(row), at=number * KEPT)
    assert rows_of(tables, OUTCOMES) == ["prod/pod/shop/p2"]
    assert tables.sites.states == {}, "a site of which only commands are read is not one to wait for"


async def test_an_object_that_comes_in_time_keeps_its_rows(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, READ, DERIVED)
    await command(tables, "node/n1")
    await appear(tables, "node/n1")
    await command(tables, "node/other", at=LATER)
    assert target_key(SITE, "node/n1") in rows(tables)


async def test_what_the_evictor_remembers_of_pods_that_are_gone_stays(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, READ, DERIVED)
    key = target_key(SITE, "pod/shop/db-0")
    desired: dict[str, object] = {"uid": "u", "at": "2026-01-05T08:00:00.000Z"}
    action = order("evict", "pod/shop/db-0", desired, "", {})
    moment = 1_767_600_000.0
    await tables.take(ACTIONS, key, msgspec.json.encode(action), at=moment)
    row = Placement("shop/other", "u", "n1", 0, 0, {}, {})
    await tables.take(PLACEMENTS, target_key(SITE, "pod/shop/other"), msgspec.json.encode(row), at=moment + LATER)
    assert rows_of(tables, ACTIONS) == [key]


async def test_rows_that_were_left_by_an_earlier_run_are_forgotten(tmp_path: Path) -> None:
    before = StoredTables(tmp_path, READ, DERIVED)
    await command(before, "pod/shop/db-0")
    after = await before.restarted()
    after.look_for_orphans(0.0)
    await command(after, "node/other", at=LATER)
    assert rows(after) == [target_key(SITE, "node/other")]


def rows_of(tables: StoredTables, topic: Topic) -> list[str]:
    return sorted(key.decode() for key, _ in tables.rows(topic))


YEARS = 10 * 365 * 86_400.0


async def test_one_record_of_the_future_keeps_no_rows_that_came_after_it(tmp_path: Path) -> None:
    """A clock that was wrong for a moment: whatever was kept after that was kept for ten years."""
    tables = StoredTables(tmp_path, READ, DERIVED)
    for number in range(3):
        tables.wall = number * LATER
        await command(tables, f"pod/shop/p{number}", at=tables.wall + (YEARS if number == 0 else 0.0))
    assert rows(tables) == ["prod/pod/shop/p2"]


async def test_one_record_of_the_future_ends_no_rows_before_their_time(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, READ, DERIVED)
    tables.wall = 1.0
    await command(tables, "pod/shop/p0", at=1.0)
    await command(tables, "pod/shop/p1", at=YEARS)
    assert rows(tables) == ["prod/pod/shop/p0", "prod/pod/shop/p1"]


async def test_one_record_of_the_future_makes_the_evictor_forget_nothing(tmp_path: Path) -> None:
    moment = 1_767_600_000.0
    tables = StoredTables(tmp_path, READ, DERIVED)
    tables.wall = moment
    desired: dict[str, object] = {"uid": "u", "at": "2026-01-05T08:00:00.000Z"}
    for name, at in (("db-0", moment), ("db-1", moment + YEARS)):
        action = order("evict", f"pod/shop/{name}", desired, "", {})
        await tables.take(ACTIONS, target_key(SITE, action.target), msgspec.json.encode(action), at=at)
    assert rows_of(tables, ACTIONS) == ["prod/pod/shop/db-0", "prod/pod/shop/db-1"]
