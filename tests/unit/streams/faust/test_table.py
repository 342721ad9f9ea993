"""A table that is recovered holds what its owners wrote, and nothing that a former owner wrote after them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from underhost.streams.faust.app import build_app
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

CHANGELOG = TP("changelog", 0)
Change = tuple[int | None, float, str, str | None]
"""Generation (None: without the header), seconds, key, value."""


@pytest.fixture
def table(tmp_path: Path) -> Any:
    settings = Settings(kafka=KafkaSettings(embedded=tmp_path / "log.db"))
    return build_app(settings, app_id="t").Table("pods", partitions=1, key_type=bytes, value_type=bytes)


def recovered(table: Any, *changes: Change, first: int = 0) -> dict[bytes, bytes]:
    """What the table holds once these changes are read, from the offset `first` on."""
    table.apply_changelog_batch([event(first + at, *change) for at, change in enumerate(changes)])
    return dict(table.data.data)


def event(offset: int, generation: int | None, seconds: float, key: str, value: str | None) -> Any:
    """As Faust hands it over."""
    raw = None if value is None else value.encode()
    headers = {} if generation is None else {"generation": str(generation).encode()}
    message = SimpleNamespace(
        tp=CHANGELOG, partition=0, offset=offset, timestamp=seconds, headers=headers, key=key.encode(), value=raw
    )
    return SimpleNamespace(message=message, key=message.key, value=raw)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            [(5, 0.0, "p", "old"), (6, 20.0, "p", "new"), (5, 32.0, "p", "old"), (5, 32.0, "q", "old")],
            {b"p": b"new"},
            id="what a former owner writes late is left out",
        ),
        pytest.param(
            [(5, 0.0, "p", "old"), (6, 20.0, "p", None), (5, 32.0, "p", "old")],
            {},
            id="a row that the new owner has deleted does not come back",
        ),
        pytest.param(
            [(6, 20.0, "p", "new"), (5, 32.0, "p", None)],
            {b"p": b"new"},
            id="a late deletion deletes nothing",
        ),
        pytest.param(
            [(5, 0.0, "p", "one"), (6, 20.0, "p", "two"), (7, 40.0, "p", "three")],
            {b"p": b"three"},
            id="each new owner goes on",
        ),
        pytest.param(
            [(900, 0.0, "p", "old"), (1, 700.0, "p", "new"), (2, 701.0, "p", "newer")],
            {b"p": b"newer"},
            id="a group that Kafka has forgotten counts anew",
        ),
        pytest.param(
            [(6, 0.0, "p", "old"), (None, 1.0, "p", "new")],
            {b"p": b"new"},
            id="what says no generation is never late",
        ),
    ],
)
def test_a_recovered_table_holds_what_its_newest_owner_wrote(
    table: Any, changes: list[Change], expected: dict[bytes, bytes]
) -> None:
    assert recovered(table, *changes) == expected


def test_a_changelog_that_is_read_once_more_from_its_beginning_is_whole(table: Any) -> None:
    changes: list[Change] = [(5, 0.0, "p", "old"), (5, 1.0, "q", "kept"), (6, 20.0, "p", "new")]
    recovered(table, *changes)
    table.data.data.clear()
    assert recovered(table, *changes) == {b"p": b"new", b"q": b"kept"}
