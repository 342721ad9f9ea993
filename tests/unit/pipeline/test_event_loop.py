"""The worker's event loop, and what Python's collector does beside it."""

import asyncio
import ctypes
import gc
import resource
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in

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


@pytest.fixture
def _switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching")
def test_threads_beside_a_worker_give_way_to_its_loop_soon(tmp_path: Path) -> None:
    async def interval() -> float:
        async with running(settings_in(tmp_path), FakeCluster()):
            return sys.getswitchinterval()

    assert event_loop.run(interval()) == pytest.approx(0.0001)


BLOCKS = """
import resource
from underhost.agents.pipeline import event_loop

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20

async def freed(size):
    both = [(b"x" * size, b"x" * 60_000) for _ in range(40)]
    kept, before = [small for _, small in both], resident()
    del both
    return before - resident()

event_loop.run(freed(4 << 20))  # now glibc's own bound would be 4 MiB
print(event_loop.run(freed(3 << 20)))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc keeps it")
def test_large_blocks_go_back_to_the_system_at_once() -> None:
    alone = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, text=True, check=True)
    assert int(alone.stdout) >= 110


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


def resident() -> int:
    """Memory that the process holds, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def after_a_burst() -> list[bytes]:
    """Rows that stay of 200 MiB: glibc gives back only what lies behind the last of them."""
    return [bytes(4000) for _ in range(50_000)][::100]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps it")
async def test_what_a_burst_of_records_has_needed_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "EVERY", 0.01)
    kept = after_a_burst()
    before = resident()
    keeping = asyncio.ensure_future(event_loop.keep_memory_low())
    async with asyncio.timeout(60):
        while resident() > before - 100:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.01)
    keeping.cancel()
    assert len(kept) == 500


@pytest.mark.usefixtures("_thawed")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps it")
def test_what_the_start_has_needed_is_given_back_once_it_is_ready() -> None:
    kept = after_a_burst()
    before = resident()
    event_loop.settle()
    assert (len(kept), resident() < before - 100) == (500, True)
