"""What the mover asks a vCenter, call by call."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from underhost.agents.sinks.moves.writer import VSphereVmMover
from underhost.schemas.errors import Gone, Refused, Unreachable
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.client import Session

READ, MOVE, LOGIN = "RetrievePropertiesEx", "Relocate", "login"


class FakeServer:
    """A vCenter below pyVmomi: VM vm-1 on host h1 of cluster C0, where h2 is, too; h9 is in C1.

    Attributes:
        calls: all that was asked of it, in order. faults: raised by the next relocations. tasks: how tasks stand.
        withheld: why the next readings show nothing of the VM.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.faults: list[Exception] = []
        self.withheld: list[Exception] = []
        self.tasks: dict[str, vim.TaskInfo] = {}

    async def log_in(self, settings: VSphereSettings) -> Session:
        self.calls.append(LOGIN)
        content: Any = SimpleNamespace(
            rootFolder=vim.Folder("root", self),
            propertyCollector=vmodl.query.PropertyCollector("collector", self),
            sessionManager=vim.SessionManager("sessions", self),
        )
        return Session("v:443", content)

    def InvokeMethod(self, one: Any, info: Any, arguments: Any) -> Any:  # as pyVmomi spells it
        self.calls.append(info.name)
        if info.name == READ and self.withheld:
            missing = vmodl.query.PropertyCollector.MissingProperty(path="runtime.host", fault=self.withheld.pop())
            nothing = vmodl.query.PropertyCollector.ObjectContent(obj=vim.VirtualMachine("vm-1", self))
            nothing.missingSet = [missing]
            return vmodl.query.PropertyCollector.RetrieveResult(objects=[nothing])
        if info.name == READ:
            path = vmodl.DynamicProperty(name="runtime.host", val=vim.HostSystem("h1", self))
            found = vmodl.query.PropertyCollector.ObjectContent(obj=vim.VirtualMachine("vm-1", self), propSet=[path])
            return vmodl.query.PropertyCollector.RetrieveResult(objects=[found])
        if info.name == MOVE:
            if self.faults:
                raise self.faults.pop()
            return vim.Task(f"task-{arguments[0].host._GetMoId()}", self)
        return None

    def InvokeAccessor(self, one: Any, info: Any) -> Any:
        self.calls.append(info.name)
        if info.name == "parent":
            return vim.ClusterComputeResource("C1" if one._GetMoId() == "h9" else "C0", self)
        return self.tasks[one._GetMoId()] if info.name == "info" else str(one._GetMoId())


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def a_mover(server: FakeServer) -> VSphereVmMover:
    return VSphereVmMover(VSphereSettings(url="https://v/sdk"), connect=server.log_in)


async def test_where_the_vm_may_go_is_read_before_the_relocation(server: FakeServer) -> None:
    assert await a_mover(server).relocate("vm-1", "h2") == "task-h2"
    assert server.calls == [LOGIN, READ, "parent", "parent", MOVE]


async def test_a_session_that_has_ended_is_replaced_and_all_is_read_once_more(server: FakeServer) -> None:
    server.faults = [vim.fault.NotAuthenticated()]
    assert await a_mover(server).relocate("vm-1", "h2") == "task-h2"
    assert server.calls == [LOGIN, READ, "parent", "parent", MOVE] * 2


async def test_a_session_that_has_ended_may_withhold_what_is_read_in_it(server: FakeServer) -> None:
    server.withheld = [vim.fault.NotAuthenticated()]
    assert await a_mover(server).relocate("vm-1", "h2") == "task-h2"
    assert server.calls == [LOGIN, READ, LOGIN, READ, "parent", "parent", MOVE]


async def test_a_vm_that_may_not_be_read_is_refused_with_the_right_that_is_missing(server: FakeServer) -> None:
    server.withheld = [vim.fault.NoPermission(privilegeId="System.Read")]
    with pytest.raises(Refused, match=r"vCenter v:443: permission System\.Read is missing"):
        await a_mover(server).relocate("vm-1", "h2")
    assert MOVE not in server.calls


async def test_a_login_that_is_refused_while_a_task_goes_on_is_no_failure_of_the_task() -> None:
    async def refuse(_: VSphereSettings) -> Session:
        raise Refused("vCenter v:443: wrong user name or password")

    mover = VSphereVmMover(VSphereSettings(url="https://v/sdk"), connect=refuse)
    with pytest.raises(Unreachable, match="wrong user name or password"):
        await mover.is_done("task-h2")


async def test_a_host_of_another_cluster_is_refused_before_anything_is_moved(server: FakeServer) -> None:
    with pytest.raises(Refused, match="host h9 is in another cluster than VM vm-1"):
        await a_mover(server).relocate("vm-1", "h9")
    assert MOVE not in server.calls


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        pytest.param(
            vim.fault.NoPermission(privilegeId="Resource.HotMigrate"),
            Refused,
            "vCenter v:443: permission Resource.HotMigrate is missing",
            id="a right that is missing",
        ),
        pytest.param(
            vmodl.fault.ManagedObjectNotFound(msg="gone"), Gone, "vCenter v:443: gone", id="a VM that is gone"
        ),
        pytest.param(
            vim.fault.InsufficientResourcesFault(msg="no\nroom"),
            Refused,
            "vCenter v:443: InsufficientResourcesFault: no room",
            id="a host that is full",
        ),
    ],
)
async def test_what_vcenter_answers_a_relocation_is_one_line(
    server: FakeServer, fault: Exception, error: type[Exception], said: str
) -> None:
    server.faults = [fault]
    with pytest.raises(error) as raised:
        await a_mover(server).relocate("vm-1", "h2")
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("info", "done"),
    [
        pytest.param(vim.TaskInfo(state="queued"), False, id="queued"),
        pytest.param(vim.TaskInfo(state="running"), False, id="running"),
        pytest.param(vim.TaskInfo(state="success"), True, id="ended well"),
        pytest.param(vim.TaskInfo(state="error"), True, id="failed, and nobody says why: the VM itself is looked at"),
    ],
)
async def test_a_task_is_followed_to_its_end(server: FakeServer, info: vim.TaskInfo, done: bool) -> None:
    server.tasks["task-1"] = info
    assert await a_mover(server).is_done("task-1") is done


async def test_why_a_task_has_failed_is_told(server: FakeServer) -> None:
    fault = vim.fault.InvalidPowerState(msg="switched off")
    server.tasks["task-1"] = vim.TaskInfo(state="error", error=fault)
    with pytest.raises(Refused, match="vCenter v:443: InvalidPowerState: switched off"):
        await a_mover(server).is_done("task-1")
