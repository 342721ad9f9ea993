"""The worker's event loop, and what Python's collector does beside it."""

import asyncio
import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from underhost.agents.pipeline import event_loop


class Site:
    """Something that only a collection can free: it refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_a_worker_runs_on_uvloop() -> None:
    async def kind() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert event_loop.run(kind()) == "uvloop"


def test_without_uvloop_a_worker_runs_on_the_loop_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    async def kind() -> str:
        return type(asyncio.get_running_loop()).__module__

    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert event_loop.run(kind()) == "asyncio.unix_events"


@pytest.mark.usefixtures("_thawed")
def test_objects_of_a_ready_pipeline_are_not_collected_until_the_next_one_is_ready() -> None:
    site = Site()
    gone = weakref.ref(site)
    event_loop.settle()
    del site
    gc.collect()
    assert gone() is not None, "it is not looked at"
    event_loop.settle()
    assert gone() is None, "what the earlier pipeline left behind is freed"
