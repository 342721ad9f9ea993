"""The parts of Faust that our modules stand for are as they were when these were written (decision 12).

Where one has changed: compare it with the module that stands for it, run tests/real/kafka, write the new digest here.
"""

from collections.abc import Callable
from typing import Any

import pytest
from faust.events import Event
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.conductor import Conductor, ConductorCompiler
from faust.transport.consumer import Consumer
from faust.types.tuples import ConsumerMessage, Message
from mode.utils.queues import FlowControlQueue, ThrowableQueue
from support.sources import Parts, cases, digest_of

STOOD_FOR: Parts = {
    "commits": [(Consumer.ack, "5fcf41cf4515"), (Consumer.track_message, "217d7f1399a4")],
    "events": [
        (Event.ack, "2d29a6eda87c"),
        (Message.ack, "4751b72c4ed8"),
        (ConsumerMessage.on_final_ack, "45d670b6a8ac"),
    ],
    "handing": [
        (Conductor._compile_message_handler, "9fbc0538097a"),
        (ConductorCompiler.build, "837cf521368c"),
        (Consumer._drain_messages, "44a2500309e8"),
        (Consumer._wait_next_records, "6218e1969a63"),
        (Consumer.getmany, "4b168d84882a"),
        (Consumer.on_buffer_full, "c8961679e0bc"),
        (Consumer.on_buffer_drop, "4b57e8a418d5"),
    ],
    "queue": [
        (FlowControlQueue.put_nowait_enhanced, "f1839f43dda3"),
        (FlowControlQueue.force_put_nowait, "e029f3d27824"),
        (FlowControlQueue.get_nowait, "57cb9b5c12e7"),
        (ThrowableQueue.get_nowait, "d42b1be9219a"),
    ],
    "recovering": [
        (Recovery._slurp_changelogs.fun, "7825c7e50f76"),
        (Recovery.need_recovery, "fd1dc345b5d5"),
        (Recovery.on_recovery_completed, "6ef567acf072"),
        (TableManager.on_standbys_ready, "46be52cea696"),
    ],
}


@pytest.mark.parametrize(("module", "part", "digest"), cases(STOOD_FOR))
def test_what_we_stand_for_in_faust_is_as_it_was(module: str, part: Callable[..., Any], digest: str) -> None:
    assert digest_of(part) == digest, f"compare it with streams/faust/{module}.py"
