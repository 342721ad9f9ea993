"""When a task is begun, over a real connection."""

import threading
from collections.abc import Iterator

import pytest
from pyVmomi import vim
from support.fakes.soap import FakeSoap

from underhost.schemas.errors import Unreachable
from underhost.streams.before_write import WriteQuestion
from underhost.streams.vsphere.client import Session, connect

ASKED, ENTER = "asked", "EnterMaintenanceMode_Task"


@pytest.fixture
def server() -> Iterator[FakeSoap]:
    with FakeSoap().serving() as one:
        one.answers[ENTER] = '<returnval type="Task">task-1</returnval>'
        yield one


def lost() -> None:
    raise Unreachable("the lease is lost")


def enter(session: Session) -> str:
    """Blocks."""
    host = vim.HostSystem("h1", session.content.rootFolder._stub)
    return str(host.EnterMaintenanceMode_Task(timeout=60, evacuatePoweredOffVms=False)._GetMoId())


async def test_whether_it_may_be_written_is_asked_right_before_a_task_is_begun(server: FakeSoap) -> None:
    session = await connect(server.settings)
    before, connected = len(server.calls), threading.Event()

    def ask() -> None:
        connected.wait(60)  # the server hears of a connection after it stands
        server.calls.append(ASKED)

    server.on_connect = connected.set
    session.content.rootFolder._stub.DropConnections()
    with WriteQuestion(ask):
        assert [await session.call(enter, session) for _ in range(2)] == ["task-1"] * 2
    assert connected.is_set()
    assert server.calls[before:] == [ASKED, ENTER, ASKED, ENTER]


async def test_who_may_not_write_still_logs_in_reads_and_logs_out(server: FakeSoap) -> None:
    with WriteQuestion(lost):
        session = await connect(server.settings)
        host = vim.HostSystem("h1", session.content.rootFolder._stub)
        server.answers["parent"] = '<returnval type="ClusterComputeResource">C0</returnval>'
        assert (await session.call(lambda: host.parent))._GetMoId() == "C0"
        with pytest.raises(Unreachable, match="the lease is lost"):
            await session.call(enter, session)
        await session.close()
    assert server.calls[-2:] == ["parent", "Logout"]
