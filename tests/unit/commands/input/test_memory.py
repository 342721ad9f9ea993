"""What a command that reads a whole site asks of the C library."""

import gc
from types import SimpleNamespace

from underhost.agents.commands.input.memory import keep_freed, kept


def test_what_is_freed_stays_for_the_next_use() -> None:
    asked: list[tuple[int, int]] = []
    keep_freed(SimpleNamespace(mallopt=lambda parameter, value: asked.append((parameter, value))))
    assert asked == [(-3, 32 * 1024 * 1024), (-1, 2147483647)]


def test_a_library_that_lets_nobody_ask_is_left_as_it_is() -> None:
    keep_freed(SimpleNamespace())


def test_no_collection_looks_at_what_was_read() -> None:
    before, thresholds = gc.get_freeze_count(), gc.get_threshold()
    try:
        with kept():
            read = [[] for _ in range(1000)]  # type: ignore[var-annotated]
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(read)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
