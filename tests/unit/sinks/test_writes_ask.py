"""Each request that changes a cluster asks whether this worker may still write, when nothing but sending is left."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.fakes.kube import FakeKube
from support.fakes.soap import FakeSoap
from support.processes.authority import Authority

from underhost.agents.drs.names import rule_name
from underhost.agents.sinks.drs.writer import VSphereDrsWriter
from underhost.agents.sinks.events.writer import KubernetesEvents
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.maintenance.writer import VSphereHostMaintainer
from underhost.agents.sinks.moves.writer import VSphereVmMover
from underhost.schemas.errors import Unreachable
from underhost.schemas.vsphere import DrsRule
from underhost.streams.before_write import WriteQuestion, before_write
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.ports import PodState
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere import client as vsphere
from underhost.streams.vsphere.client import in_thread

LOST = "the lease is lost"


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with FakeKube().serving() as server:
        server.seed("nodes", {"metadata": {"name": "n1"}})
        yield server


@pytest.fixture
async def client(kube: FakeKube, tmp_path: Path) -> AsyncIterator[KubernetesClient]:
    async with await connect(kube.settings(tmp_path)) as made:
        yield made


def lost() -> None:
    raise Unreachable(LOST)


WRITES: dict[str, Callable[[KubernetesApiWriter, KubernetesEvents], Awaitable[Any]]] = {
    "a label": lambda api, events: api.apply_node_labels("n1", "uid-n1", {"host": "h1"}),
    "the start-up taint": lambda api, events: api.replace_taints("n1", "uid-n1", [{"key": "t"}], []),
    "a binding": lambda api, events: api.bind_pod("shop", "db-0", "uid-db-0", "n1"),
    "a pod's label": lambda api, events: api.merge_pod_labels("shop", "db-0", "uid-db-0", "1", {"host": "h1"}),
    "an eviction": lambda api, events: api.request_eviction("shop", "db-0", "uid-db-0"),
    "an Event": lambda api, events: events.create_event("shop", {}),
    "an Event told again": lambda api, events: events.change_event("shop", "e", {}),
    "a pod's condition": lambda api, events: events.set_pod_condition("shop", "db-0", PodState("u", "1", "", {}), {}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_is_not_sent_by_a_worker_that_may_not_write_any_more(
    kube: FakeKube, client: KubernetesClient, write: Callable[..., Awaitable[Any]]
) -> None:
    with WriteQuestion(lost), pytest.raises(Unreachable, match=LOST):
        await write(KubernetesApiWriter(client), KubernetesEvents(client))
    assert [request.verb for request in kube.requests] == ["version"]


async def test_what_only_reads_asks_nothing(client: KubernetesClient) -> None:
    with WriteQuestion(lost):
        assert (await KubernetesApiWriter(client).node_labels("n1"))[0] == "uid-n1"


async def test_a_lease_that_ends_while_the_credentials_plugin_runs_is_noticed(
    kube: FakeKube, client: KubernetesClient
) -> None:
    may = True

    async def plugin(*_: object) -> None:
        nonlocal may
        may = False

    def ask() -> None:
        if not may:
            lost()

    client._api.update_params_for_auth = plugin
    with WriteQuestion(ask), pytest.raises(Unreachable, match=LOST):
        await KubernetesApiWriter(client).apply_node_labels("n1", "uid-n1", {"host": "h1"})
    assert kube.count("patch") == 0


# -------------------------------------------------------------------------------------------------------------- vSphere
READ = (
    '<returnval><objects><obj type="VirtualMachine">vm-1</obj><propSet><name>runtime.host</name>'
    '<val type="HostSystem" xsi:type="ManagedObjectReference">h1</val></propSet></objects></returnval>'
)
ANSWERS = {
    "RetrievePropertiesEx": READ,
    "parent": '<returnval type="ClusterComputeResource">C0</returnval>',
    "CreateContainerView": '<returnval type="ContainerView">view</returnval>',
    "view": '<returnval type="ClusterComputeResource">C0</returnval>',
    "name": '<returnval xsi:type="xsd:string">C0</returnval>',
    "configurationEx": (
        '<returnval xsi:type="ClusterConfigInfoEx"><drsConfig><enabled>true</enabled></drsConfig></returnval>'
    ),
}
RULE = DrsRule(rule_name("s", "shop.db"), "anti-affinity", ["vm-1", "vm-2"], cluster="C0")
TASKS: dict[str, Callable[[VSphereSettings], Awaitable[Any]]] = {
    "EnterMaintenanceMode_Task": lambda at: VSphereHostMaintainer(at, connect=idle).enter_maintenance("h1", 60),
    "ExitMaintenanceMode_Task": lambda at: VSphereHostMaintainer(at, connect=idle).exit_maintenance("h1", 60),
    "RelocateVM_Task": lambda at: VSphereVmMover(at, connect=idle).relocate("vm-1", "h2"),
    "ReconfigureComputeResource_Task": lambda at: VSphereDrsWriter(at, "s", connect=idle).add_rule("C0", RULE),
}


async def idle(settings: VSphereSettings) -> vsphere.Session:
    """A login whose connections have been idle for so long that none is left."""
    session = await vsphere.connect(settings)
    session.content.rootFolder._stub.DropConnections()
    return session


@pytest.mark.parametrize("task", TASKS)
async def test_a_task_is_not_begun_by_a_worker_that_may_not_write_any_more(task: str) -> None:
    with FakeSoap().serving() as server:
        server.answers |= {**ANSWERS, task: '<returnval type="Task">task-1</returnval>'}
        with WriteQuestion(lost), pytest.raises(Unreachable, match=LOST):
            await TASKS[task](server.settings)
    assert (task in server.calls, server.calls[-1]) == (False, "Logout")


LOGGED_IN = ["Login", "RetrieveServiceContent"]


@pytest.mark.parametrize(
    ("task", "before", "keeps"),
    [
        pytest.param("EnterMaintenanceMode_Task", LOGGED_IN, True, id="no connection is left"),
        pytest.param("EnterMaintenanceMode_Task", LOGGED_IN, False, id="entering, the last was closed"),
        pytest.param("ExitMaintenanceMode_Task", LOGGED_IN, False, id="leaving, the last was closed"),
        pytest.param("RelocateVM_Task", ["parent", "parent"], False, id="a vMotion, the last was closed"),
        pytest.param("ReconfigureComputeResource_Task", ["configurationEx"], False, id="a rule, the last was closed"),
    ],
)
async def test_a_lease_that_ends_while_vcenter_is_connected_to_is_noticed(
    task: str, before: list[str], keeps: bool, tmp_path: Path
) -> None:
    ended = threading.Event()

    def ask() -> None:
        if ended.is_set():
            lost()

    def end_before_the_task() -> None:
        if server.calls[-len(before) :] == before:
            ended.set()

    certificate = Authority(tmp_path, "authority").certificate("vcenter", "IP:127.0.0.1")
    with FakeSoap(certificate, keeps=keeps).serving() as server:
        server.answers |= {**ANSWERS, task: '<returnval type="Task">task-1</returnval>'}
        server.on_connect = end_before_the_task
        with WriteQuestion(ask), pytest.raises(Unreachable, match=LOST):
            await TASKS[task](server.settings)
    assert (task in server.calls, server.calls[-1]) == (False, "Logout")


async def test_a_thread_that_nobody_waits_for_any_more_writes_nothing() -> None:
    began, goes_on = asyncio.Event(), threading.Event()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    said: list[str] = []

    def read_then_write() -> None:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait(60)
        try:
            before_write()
        except Unreachable as error:
            said.append(str(error))
        loop.call_soon_threadsafe(ended.set)

    async def call() -> None:
        with WriteQuestion(lambda: None):
            await in_thread(read_then_write)

    calling = asyncio.create_task(call())
    await began.wait()
    calling.cancel()
    await asyncio.wait([calling])
    goes_on.set()
    await ended.wait()
    assert said == ["nothing is written by this worker: whoever asked for it has given up"]


def test_what_nobody_has_asked_about_is_written() -> None:
    before_write()
