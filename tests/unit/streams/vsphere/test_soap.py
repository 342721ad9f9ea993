"""When a task is begun, and what counts as an answer of a vCenter, over a real connection."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyVmomi import vim
from support.fakes.soap import FakeSoap, envelope

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.before_write import WriteQuestion
from underhost.streams.vsphere.client import Session, connect
from underhost.streams.vsphere.collector import PropertyFilterCollector

ASKED, ENTER = "asked", "EnterMaintenanceMode_Task"
PAGE = (
    '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" '
    '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd"><html xmlns="http://www.w3.org/1999/xhtml"><head>'
    "<title>Maintenance</title></head><body><p>Sorry</p></body></html>"
)


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


# ------------------------------------------------------------------------------------------------- when a task is begun
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


# ------------------------------------------------------------------------------------------------ what counts as answer
NO_ANSWERS = [
    pytest.param(200, PAGE, id="a page"),
    pytest.param(200, "<html><body>Maintenance</body></html>", id="a page without a type"),
    pytest.param(500, PAGE, id="a page with an error"),
    pytest.param(200, "<NotFoundResponse/>", id="XML of something else"),
    pytest.param(
        500,
        envelope(
            "<soapenv:Fault><faultcode>Server</faultcode><faultstring>busy</faultstring>"
            '<detail><source xmlns="urn:gateway"><code>1</code></source></detail></soapenv:Fault>'
        ),
        id="the fault of a gateway",
    ),
    pytest.param(500, envelope("<LogoutResponse/>"), id="an error that is none"),
]


@pytest.mark.parametrize(("status", "text"), NO_ANSWERS)
async def test_what_somebody_on_the_way_says_is_no_answer_of_a_vcenter(
    server: FakeSoap, status: int, text: str
) -> None:
    session = await connect(server.settings)
    server.pages = dict.fromkeys(("name", ENTER, "Logout"), (status, text))
    host = vim.HostSystem("h1", session.content.rootFolder._stub)
    asked: list[Any] = [lambda: host.name, lambda: enter(session), session.content.sessionManager.Logout]
    for ask in asked:
        with pytest.raises(Unreachable, match="the answer is not that of a vCenter"):
            await session.call(ask)


@pytest.mark.parametrize(("status", "text"), NO_ANSWERS)
async def test_a_page_in_the_place_of_an_update_does_not_mean_that_all_is_as_it_was(
    server: FakeSoap, status: int, text: str
) -> None:
    collector = await a_collector(server)
    assert await collector.wait("1") is None  # vCenter itself says so after some seconds, or sooner
    server.pages["WaitForUpdatesEx"] = status, text
    with pytest.raises(Unreachable, match="the answer is not that of a vCenter"):
        await collector.wait("1")
    del server.pages["WaitForUpdatesEx"]
    assert await collector.wait("1") is None


async def test_a_page_in_the_place_of_a_login_is_refused_as_no_vcenter(server: FakeSoap) -> None:
    server.pages["RetrieveServiceContent"] = 200, PAGE
    with pytest.raises(Refused, match="the answer is not that of a vCenter"):
        await connect(server.settings)


async def a_collector(server: FakeSoap) -> PropertyFilterCollector:
    server.answers |= {
        "CreatePropertyCollector": '<returnval type="PropertyCollector">ours</returnval>',
        "CreateContainerView": '<returnval type="ContainerView">view</returnval>',
        "CreateFilter": '<returnval type="PropertyFilter">filter</returnval>',
    }
    session = await connect(server.settings)
    return await session.call(PropertyFilterCollector, session)
