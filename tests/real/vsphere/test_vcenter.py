"""The vSphere side against vcsim: logins, the inventory as it changes, rules. The unit tests show what vcsim cannot.

A second login, `admin`, does to the simulator what people and DRS do to a vCenter.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from pydantic import SecretStr
from pyVim.connect import SmartConnect
from pyVmomi import SoapAdapter, vim, vmodl
from support.answers.narrow import Misfits, misfits
from support.fakes.topics import FakeTopics
from support.processes.vcsim import PASSWORD, USERNAME, Tagging, Vcsim, hang_up, start_vcsim
from support.watching import running

from underhost.agents.drs.names import rule_name
from underhost.agents.sinks.drs.sink import DrsSink
from underhost.agents.sinks.drs.writer import VSphereDrsWriter
from underhost.agents.sinks.orders import order
from underhost.schemas.errors import BackendError, Conflict, Gone, InputError, Refused, Unreachable
from underhost.schemas.kubernetes import decode
from underhost.schemas.records import Action
from underhost.schemas.topics import DRS_RULES, HOSTS, VMS
from underhost.schemas.vsphere import DrsRule, Host, Vm
from underhost.streams.before_write import WriteQuestion
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.timing import Timing
from underhost.streams.vsphere import client
from underhost.streams.vsphere.client import connect
from underhost.streams.vsphere.collector import open_collector
from underhost.streams.vsphere.watcher import VSphereSource

pytestmark = pytest.mark.real
CLUSTER = "DC0_C0"
OURS = rule_name("s", "shop.db")


@pytest.fixture
def vcsim(parts: Path) -> Iterator[Vcsim]:
    """Seven hosts with seven VMs, for one test."""
    simulator = start_vcsim(parts)
    yield simulator
    simulator.stop()


@pytest.fixture
def settings(vcsim: Vcsim, tmp_path: Path) -> VSphereSettings:
    """A login with the right password and the server's certificate as CA."""
    return trusting(vcsim, tmp_path)


@pytest.fixture
def admin(vcsim: Vcsim) -> Iterator["Admin"]:
    with administrator(vcsim.port) as one:
        yield one


def trusting(vcsim: Vcsim, folder: Path, **changes: Any) -> VSphereSettings:
    (folder / "password").write_text(PASSWORD + "\n")
    (folder / "ca.pem").write_text(vcsim.certificate)
    given = {"url": vcsim.url, "username": USERNAME, "password_file": folder / "password", "ca_file": folder / "ca.pem"}
    return VSphereSettings(**{**given, "poll_interval": 3600, **changes})


class Admin:
    """What people and DRS do, by plain pyVmomi."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def all(self, kind: Any) -> dict[str, Any]:
        view = self.content.viewManager.CreateContainerView(self.content.rootFolder, [kind], True)
        return {item._GetMoId(): item for item in view.view}

    def host_of(self, vm: Any) -> Any:
        """By its own path: pyVmomi cannot read all of vcsim's `runtime`."""
        pc = vmodl.query.PropertyCollector
        spec = pc.FilterSpec(
            objectSet=[pc.ObjectSpec(obj=vm)], propSet=[pc.PropertySpec(type=type(vm), pathSet=["runtime.host"])]
        )
        return self.content.propertyCollector.RetrieveContents([spec])[0].propSet[0].val

    @property
    def cluster(self) -> Any:
        return next(iter(self.all(vim.ClusterComputeResource).values()))

    def relocate(self, vm: Any, host: Any) -> Any:
        return vm.RelocateVM_Task(vim.vm.RelocateSpec(host=host))

    def reconfigure(self, *rules: Any) -> None:
        wait_for(self.cluster.ReconfigureComputeResource_Task(vim.cluster.ConfigSpecEx(rulesSpec=list(rules)), True))

    def add_rule(self, info: Any) -> None:
        self.reconfigure(vim.cluster.RuleSpec(operation="add", info=info))

    def rules_as_sent(self) -> dict[str, bytes]:
        """Each rule's bytes, as the server's serialiser writes them."""
        return {rule.name: SoapAdapter.Serialize(rule) for rule in self.cluster.configurationEx.rule}

    def reconfigurations(self) -> list[str]:
        """The keys of the cluster's latest tasks, whoever asked for them."""
        tasks = [task.info for task in self.content.taskManager.recentTask]
        return [info.key for info in tasks if info.descriptionId == "ClusterComputeResource.reconfigureCluster"]

    def sessions_of(self, agent: str) -> list[str]:
        return [session.key for session in self.content.sessionManager.sessionList if agent in session.userAgent]


@contextmanager
def administrator(port: int) -> Iterator[Admin]:
    si = SmartConnect(host="127.0.0.1", port=port, user=USERNAME, pwd=PASSWORD, disableSslCertValidation=True)
    try:
        yield Admin(si.RetrieveContent())
    finally:
        hang_up(si)


def wait_for(task: Any) -> None:
    """Until the task is done (pyVim's own does not know the names of vcsim's tasks)."""
    while task.info.state in ("queued", "running"):
        pass  # each look is a request
    if task.info.state != "success":
        raise task.info.error


# ---------------------------------------------------------------------------------------------------------- logging in
async def test_a_login_with_the_right_password_and_a_trusted_certificate_works(settings: VSphereSettings) -> None:
    session = await connect(settings)
    assert session.content.about.apiType == "VirtualCenter"
    await session.close()


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        pytest.param({"ca_file": None}, Refused, "certificate not trusted: self-signed certificate", id="untrusted"),
        pytest.param(
            {"password_file": None, "password": SecretStr("canary-wrong")},
            Refused,
            "wrong user name or password",
            id="wrong password",
        ),
        pytest.param({"password_file": None}, InputError, "passwordFile: not set", id="no password"),
        pytest.param({"password_file": Path("/nowhere/p")}, InputError, "No such file", id="missing password file"),
        pytest.param({"ca_file": Path("/nowhere/ca")}, InputError, "No such file", id="missing CA file"),
        pytest.param({"username": None}, InputError, "vsphere.username: not set", id="no user name"),
    ],
)
async def test_a_login_that_must_fail_says_why_in_one_line_within_15_seconds(
    settings: VSphereSettings, changes: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error) as caught:
        async with asyncio.timeout(15):
            await connect(settings.model_copy(update=changes))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "canary" not in str(chain) + repr(chain)
        chain = chain.__cause__


async def test_a_certificate_for_another_host_name_is_refused(vcsim: Vcsim, settings: VSphereSettings) -> None:
    by_name = settings.model_copy(update={"url": f"https://localhost:{vcsim.port}/sdk"})
    with pytest.raises(Refused, match="certificate not trusted: Hostname mismatch"):
        await connect(by_name)


async def test_a_ca_file_without_a_certificate_is_a_fault_of_the_configuration(
    settings: VSphereSettings, tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").write_text("not a certificate\n")
    with pytest.raises(InputError, match=r"empty\.pem: no PEM certificate in it"):
        await connect(settings.model_copy(update={"ca_file": tmp_path / "empty.pem"}))


async def test_the_check_is_skipped_only_where_a_person_says_so(settings: VSphereSettings) -> None:
    session = await connect(settings.model_copy(update={"ca_file": None, "insecure": True}))
    await session.close()


async def test_a_rotated_password_is_read_at_the_next_login(settings: VSphereSettings, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("old\n")
    with pytest.raises(Refused):
        await connect(settings)
    (tmp_path / "password").write_text(PASSWORD)
    await (await connect(settings)).close()


@contextmanager
def a_server(answer: bytes | None) -> Iterator[int]:
    """A plain HTTP server that answers everything so, or (None) a listener that never says a word; its port."""
    if answer is None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            yield listener.getsockname()[1]
        return

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("scheme", "answer", "error"),
    [
        pytest.param("https", b"hello", Refused, id="no TLS"),
        pytest.param("http", b"<html>hello</html>", Refused, id="another web server"),
        pytest.param("http", b"hello", Refused, id="no XML"),
        pytest.param("https", None, Unreachable, id="silent"),
    ],
)
async def test_something_that_is_no_vcenter_is_said_within_15_seconds(
    scheme: str, answer: bytes | None, error: type[BackendError]
) -> None:
    with a_server(answer) as port, pytest.raises(error, match=f"vCenter 127.0.0.1:{port}: "):
        url = f"{scheme}://127.0.0.1:{port}/sdk"
        async with asyncio.timeout(15):
            await connect(VSphereSettings(url=url, username="u", password=SecretStr("p"), insecure=True))


# ----------------------------------------------------------------------------------------------------------- watching
async def test_the_first_list_holds_every_host_vm_and_cluster(vcsim: Vcsim, settings: VSphereSettings) -> None:
    topics = FakeTopics()
    with structlog.testing.capture_logs() as logs:
        async with running(VSphereSource("s", settings, topics, topics)):
            log = await topics.holding(7 + 7 + 1 + 3)
    hosts = [decode(record.value or b"", Host) for record in log if record.key.startswith("s/host/")]
    vms = [decode(record.value or b"", Vm) for record in log if record.key.startswith("s/vm/")]
    assert sorted(host.name for host in hosts) == [f"{CLUSTER}_H{i}" for i in range(7)]
    assert {(host.cluster, host.state, host.memory_mib, host.labels["datacenter"]) for host in hosts} == {
        (CLUSTER, "connected", 4095, "DC0")
    }
    assert sorted(vm.name for vm in vms) == [f"{CLUSTER}_RP0_VM{i}" for i in range(7)]
    assert {vm.host for vm in vms} <= {host.id for host in hosts}
    assert all(len(vm.uuid) == 36 and vm.power == "on" for vm in vms)
    assert topics.keys(DRS_RULES) == [f"s/cluster//{CLUSTER}"]
    assert PASSWORD not in str([value for entry in logs for key, value in entry.items() if key != "event"]).split()


async def test_a_relocation_is_one_record_with_the_new_host(admin: Admin, settings: VSphereSettings) -> None:
    topics = FakeTopics()
    async with running(VSphereSource("s", settings, topics, topics)):
        first = len(await topics.holding(18))
        vm, *_ = admin.all(vim.VirtualMachine).values()
        target = next(host for host in admin.all(vim.HostSystem).values() if host != admin.host_of(vm))
        await asyncio.to_thread(wait_for, admin.relocate(vm, target))
        await topics.holding(first + 1)
        wait_for(vm.PowerOff())
        log = await topics.holding(first + 2)
    moved, powered = (decode(record.value or b"", Vm) for record in log[first:])
    assert (moved.id, moved.host, moved.power) == (vm._GetMoId(), target._GetMoId(), "on")
    assert (powered.id, powered.host, powered.power) == (vm._GetMoId(), target._GetMoId(), "off")


async def test_350_vms_relocated_at_once_are_all_seen(parts: Path, tmp_path: Path) -> None:
    vcsim, topics = start_vcsim(parts, hosts=7, vms=350), FakeTopics()
    try:
        with administrator(vcsim.port) as admin:
            async with running(VSphereSource("s", trusting(vcsim, tmp_path), topics, topics)):
                first = len(await topics.holding(7 + 350 + 1 + 3))
                target, *_ = admin.all(vim.HostSystem).values()
                vms = admin.all(vim.VirtualMachine)
                elsewhere = {ref for ref, vm in vms.items() if admin.host_of(vm) != target}

                await asyncio.to_thread(lambda: [admin.relocate(vm, target) for vm in vms.values()])
                log = await topics.holding(first + len(elsewhere))
    finally:
        vcsim.stop()
    # vcsim compares every object for every update and falls far behind; then the watcher lists anew, which ends with
    # markers. Either way each move is one record.
    assert sorted(record.key for record in log[first:] if "/vm/" in record.key) == sorted(
        f"s/vm//{ref}" for ref in elsewhere
    )
    assert [record for record in log if record.value is None] == []
    state = await topics.state(VMS, "s")
    assert {decode(value, Vm).host for key, value in state.items() if "/vm/" in key} == {target._GetMoId()}


async def test_maintenance_mode_that_is_not_announced_is_seen_by_the_poll(
    admin: Admin, settings: VSphereSettings
) -> None:
    topics = FakeTopics()
    polling = settings.model_copy(update={"poll_interval": 0.2})
    async with running(VSphereSource("s", polling, topics, topics)):
        first = len(await topics.holding(18))
        host, *_ = admin.all(vim.HostSystem).values()
        await asyncio.to_thread(wait_for, host.EnterMaintenanceMode_Task(0))
        await topics.holding(first + 1)
        await asyncio.to_thread(wait_for, host.ExitMaintenanceMode_Task(0))
        log = await topics.holding(first + 2)
    assert [(record.key, decode(record.value or b"", Host).state) for record in log[first:]] == [
        (f"s/host//{host._GetMoId()}", "maintenance"),
        (f"s/host//{host._GetMoId()}", "connected"),
    ]


async def test_custom_attributes_of_a_host_are_its_labels(admin: Admin, settings: VSphereSettings) -> None:
    host, *_ = admin.all(vim.HostSystem).values()
    field = admin.content.customFieldsManager.AddCustomFieldDef("rack", vim.HostSystem)
    admin.content.customFieldsManager.SetField(host, field.key, "r7")
    topics = FakeTopics()
    async with running(VSphereSource("s", settings, topics, topics)):
        await topics.holding(18)
    state = await topics.state(HOSTS, "s")
    labels = decode(state[f"s/host//{host._GetMoId()}"], Host).labels
    assert labels == {"datacenter": "DC0", "rack": "r7"}


async def test_tags_of_a_host_and_of_what_it_is_in_are_its_labels_and_the_nearest_counts(
    vcsim: Vcsim, admin: Admin, settings: VSphereSettings
) -> None:
    tagging = Tagging(vcsim)
    rack, zone = tagging.category("rack"), tagging.category("k8s-zone")
    r7, r8, zone_a, zone_b = (tagging.tag(c, n) for c, n in ((rack, "r7"), (rack, "r8"), (zone, "a"), (zone, "b")))
    first, second, *_ = admin.all(vim.HostSystem)
    [datacenter] = admin.all(vim.Datacenter)
    tagging.attach(zone_a, "Datacenter", datacenter)
    tagging.attach(r7, "ClusterComputeResource", admin.cluster._GetMoId())
    tagging.attach(r8, "HostSystem", first)
    tagging.attach(zone_b, "HostSystem", second)
    topics = FakeTopics()
    source = VSphereSource("s", settings.model_copy(update={"tags": True}), topics, topics)

    async def labels() -> list[dict[str, str]]:
        state = await topics.state(HOSTS, "s")
        return [decode(state[f"s/host//{ref}"], Host).labels for ref in (first, second)]

    async with running(source):
        count = len(await topics.holding(18))
        assert await labels() == [
            {"datacenter": "DC0", "tag:k8s-zone": "a", "tag:rack": "r8"},
            {"datacenter": "DC0", "tag:k8s-zone": "b", "tag:rack": "r7"},
        ]
        tagging.attach(r8, "HostSystem", second)
        source.refresh()
        await topics.holding(count + 1)
        assert (await labels())[1]["tag:rack"] == "r8"
        sessions = len(admin.content.sessionManager.sessionList)
    assert len(admin.content.sessionManager.sessionList) == sessions - 1


async def test_a_vm_that_is_destroyed_is_tombstoned_and_a_new_one_published(
    admin: Admin, settings: VSphereSettings
) -> None:
    topics = FakeTopics()
    async with running(VSphereSource("s", settings, topics, topics)):
        first = len(await topics.holding(18))
        ref, vm = next(iter(admin.all(vim.VirtualMachine).items()))
        host = admin.host_of(vm)
        spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(host=host), powerOn=True, template=False)
        await asyncio.to_thread(wait_for, vm.CloneVM_Task(vm.parent, "fresh", spec))
        async with asyncio.timeout(10):
            while not any("fresh" in str(record.value) for record in topics.records):
                await topics.holding(len(topics.records) + 1)
        wait_for(vm.PowerOff())
        await asyncio.to_thread(wait_for, vm.Destroy_Task())
        async with asyncio.timeout(10):
            while topics.records[-1].value is not None:
                await topics.holding(len(topics.records) + 1)
    assert topics.records[-1].key == f"s/vm//{ref}"
    assert [record for record in topics.records[first:] if record.value is None] == [topics.records[-1]]


async def test_an_ended_session_is_replaced_and_nothing_is_lost_or_deleted(
    admin: Admin, settings: VSphereSettings
) -> None:
    topics = FakeTopics()
    vm = next(iter(admin.all(vim.VirtualMachine).values()))
    hosts = list(admin.all(vim.HostSystem).values())
    async with running(VSphereSource("s", settings.model_copy(update={"poll_interval": 0.2}), topics, topics)):
        count = len(await topics.holding(18))
        for cycle in range(3):
            own = admin.content.sessionManager.currentSession.key
            keys = [session.key for session in admin.content.sessionManager.sessionList if session.key != own]
            admin.content.sessionManager.TerminateSession(keys)
            target = hosts[cycle % 2] if admin.host_of(vm) != hosts[cycle % 2] else hosts[2]
            await asyncio.to_thread(wait_for, admin.relocate(vm, target))
            # The VM's move, then a marker in each topic; the order depends on the moment
            await topics.holding(count + 4)
            count = len(topics.records)
            state = await topics.state(VMS, "s")
            assert decode(state[f"s/vm//{vm._GetMoId()}"], Vm).host == target._GetMoId()
    assert [record for record in topics.records if record.value is None] == []


async def test_a_session_that_idles_out_is_replaced_within_five_seconds(
    admin: Admin, settings: VSphereSettings
) -> None:
    option = vim.option.OptionValue(key="config.vmacore.soap.sessionTimeout", value="1s")
    admin.content.setting.UpdateOptions([option])
    topics = FakeTopics()
    async with running(VSphereSource("s", settings, topics, topics)):  # the poll is far away: the wait idles
        await topics.holding(18)
        await topics.holding(21)
    assert [record.key for record in topics.records[18:21]] == ["s/listed/vsphere"] * 3


async def test_a_vcenter_that_comes_back_is_listed_anew_without_help(
    parts: Path, vcsim: Vcsim, settings: VSphereSettings
) -> None:
    topics = FakeTopics()
    async with running(VSphereSource("s", settings, topics, topics)) as task:
        await topics.holding(18)
        vcsim.stop()
        again = await asyncio.to_thread(start_vcsim, parts, port=vcsim.port)
        try:
            log = await topics.holding(21)
            assert not task.done()
        finally:
            again.stop()
    assert [record.key for record in log[-3:]] == ["s/listed/vsphere"] * 3


class Paused(asyncio.Event):
    """A pause between sessions: says that one has begun, and takes no time."""

    async def __call__(self, delay: float) -> None:
        self.set()
        await asyncio.sleep(0)


async def test_a_silent_vcenter_is_given_up_and_listed_anew_when_it_speaks_again(
    vcsim: Vcsim, settings: VSphereSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CALL_TIMEOUT", client.LOGIN_STEP_TIMEOUT)  # just above the length of a wait
    topics, paused = FakeTopics(), Paused()
    async with running(VSphereSource("s", settings, topics, topics, timing=Timing(sleep=paused))) as task:
        await topics.holding(18)
        vcsim.process.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(30):
                await paused.wait()
        finally:
            vcsim.process.send_signal(signal.SIGCONT)
        log = await topics.holding(21)
        assert not task.done()
    assert [record.key for record in log[18:21]] == ["s/listed/vsphere"] * 3
    assert [record for record in log if record.value is None] == []


async def test_a_stop_ends_the_wait_and_logs_out(admin: Admin, settings: VSphereSettings) -> None:
    before = len(admin.content.sessionManager.sessionList)
    topics = FakeTopics()
    async with running(VSphereSource("s", settings, topics, topics)):
        await topics.holding(18)
        assert len(admin.content.sessionManager.sessionList) == before + 1
    assert len(admin.content.sessionManager.sessionList) == before


# -------------------------------------------------------------------------------------------------------------- rules
@pytest.fixture
async def writer(settings: VSphereSettings) -> AsyncIterator[VSphereDrsWriter]:
    one = VSphereDrsWriter(settings, "s")
    yield one
    await one.close()


def our_rule(*vms: str, **changes: Any) -> DrsRule:
    return DrsRule(name=OURS, type="anti-affinity", vms=sorted(vms), cluster=CLUSTER, **changes)


async def test_rules_are_added_edited_in_place_and_removed_and_others_stay_byte_for_byte(
    admin: Admin, writer: VSphereDrsWriter
) -> None:
    vms = admin.all(vim.VirtualMachine)
    a, b, c, *_ = vms
    admin.add_rule(vim.cluster.AntiAffinityRuleSpec(name="by-hand", enabled=True, mandatory=True, vm=[vms[a], vms[b]]))
    admin.add_rule(vim.cluster.VmHostRuleInfo(name="licence", enabled=True, vmGroupName="g", affineHostGroupName="h"))
    foreign = admin.rules_as_sent()

    await writer.add_rule(CLUSTER, our_rule(a, b))
    [added] = [rule for rule in admin.cluster.configurationEx.rule if rule.name == OURS]
    assert (added.enabled, added.mandatory, added.userCreated) == (True, False, True)
    assert sorted(vm._GetMoId() for vm in added.vm) == sorted([a, b])

    [held] = [rule for rule in await writer.rules(CLUSTER) if rule.name == OURS]
    await writer.edit_rule(CLUSTER, our_rule(a, b, c, key=held.key))
    [edited] = [rule for rule in admin.cluster.configurationEx.rule if rule.name == OURS]
    assert (edited.key, edited.ruleUuid) == (added.key, added.ruleUuid)
    assert sorted(vm._GetMoId() for vm in edited.vm) == sorted([a, b, c])

    assert [(rule.name, rule.type, rule.vms) for rule in await writer.rules(CLUSTER)] == [
        ("by-hand", "anti-affinity", sorted([a, b])),
        ("licence", "vm-host", []),
        (OURS, "anti-affinity", sorted([a, b, c])),
    ]
    assert {name: sent for name, sent in admin.rules_as_sent().items() if name != OURS} == foreign

    await writer.remove_rule(CLUSTER, our_rule(a, b, c, key=held.key))
    assert admin.rules_as_sent() == foreign


async def test_what_is_not_there_not_free_or_not_ours_is_told_apart(admin: Admin, writer: VSphereDrsWriter) -> None:
    vms = admin.all(vim.VirtualMachine)
    a, b, *_ = vms
    await writer.add_rule(CLUSTER, our_rule(a, b))
    with pytest.raises(Conflict, match="is taken"):
        await writer.add_rule(CLUSTER, our_rule(a, b))
    with pytest.raises(Gone):
        await writer.edit_rule(CLUSTER, our_rule(a, b, key=4711))
    with pytest.raises(Gone):
        await writer.remove_rule(CLUSTER, our_rule(a, b, key=4711))
    with pytest.raises(Refused, match="no cluster named C9"):
        await writer.rules("C9")
    admin.add_rule(vim.cluster.AntiAffinityRuleSpec(name="by-hand", enabled=True, vm=[vms[a], vms[b]]))
    key = next(rule.key for rule in admin.cluster.configurationEx.rule if rule.name == "by-hand")
    with pytest.raises(Refused, match="not one of site s's own"):
        await writer.remove_rule(CLUSTER, DrsRule("by-hand", "anti-affinity", [a, b], cluster=CLUSTER, key=key))
    with pytest.raises(Gone):
        await writer.remove_rule(CLUSTER, our_rule(a, b, key=key))  # our name, somebody else's key


async def test_a_worker_that_loses_its_lease_while_it_logs_in_and_reads_edits_no_rule(
    admin: Admin, settings: VSphereSettings
) -> None:
    a, b, *_ = admin.all(vim.VirtualMachine)
    lost = threading.Event()

    async def slow_login(settings: VSphereSettings) -> client.Session:
        session = await connect(settings)
        lost.set()
        return session

    def ask() -> None:
        if lost.is_set():
            raise Unreachable("the lease is lost")

    writer = VSphereDrsWriter(settings, "s", connect=slow_login)
    with WriteQuestion(ask), pytest.raises(Unreachable, match="the lease is lost"):
        await writer.add_rule(CLUSTER, our_rule(a, b))
    await writer.close()
    assert [rule.name for rule in admin.cluster.configurationEx.rule or []] == []


async def test_where_drs_is_off_nothing_is_written(admin: Admin, writer: VSphereDrsWriter) -> None:
    off = vim.cluster.ConfigSpecEx(drsConfig=vim.cluster.DrsConfigInfo(enabled=False))
    wait_for(admin.cluster.ReconfigureComputeResource_Task(off, True))
    a, b, *_ = admin.all(vim.VirtualMachine)
    with pytest.raises(Refused, match=f"cluster {CLUSTER}: DRS is off"):
        await writer.add_rule(CLUSTER, our_rule(a, b))
    assert admin.rules_as_sent() == {}


async def test_a_writer_whose_session_has_ended_logs_in_again(admin: Admin, writer: VSphereDrsWriter) -> None:
    a, b, *_ = admin.all(vim.VirtualMachine)
    await writer.rules(CLUSTER)
    own = admin.content.sessionManager.currentSession.key
    keys = [session.key for session in admin.content.sessionManager.sessionList if session.key != own]
    admin.content.sessionManager.TerminateSession(keys)
    await writer.add_rule(CLUSTER, our_rule(a, b))
    assert list(admin.rules_as_sent()) == [OURS]


async def test_a_rule_of_ours_reaches_the_topic_right_after_the_sink_wrote_it(
    admin: Admin, writer: VSphereDrsWriter, settings: VSphereSettings
) -> None:
    topics = FakeTopics()
    source = VSphereSource("s", settings, topics, topics)
    a, b, *_ = admin.all(vim.VirtualMachine)
    desired = {"cluster": CLUSTER, "type": "anti-affinity", "vms": [a, b], "mandatory": False}
    command = order("drs-rule", f"drs-rule/{CLUSTER}/{OURS}", desired, "", {})
    async with running(source):
        first = len(await topics.holding(18))
        sink = DrsSink(writer, "s", vms=lambda: admin.all(vim.VirtualMachine), enabled=True, refresh=source.refresh)
        results = [await sink.apply(command) for _ in range(5)]
        log = await topics.holding(first + 1)
    assert [result.result for result in results] == ["applied", "noop", "noop", "noop", "noop"]
    assert log[first].key == f"s/drs-rule//{CLUSTER}:{OURS}"
    rule = decode(log[first].value or b"", DrsRule)
    assert (rule.vms, rule.enabled, rule.mandatory) == (sorted([a, b]), True, False)


def drs_order(vms: list[str], **changes: object) -> Action:
    desired = {"cluster": CLUSTER, "type": "anti-affinity", "vms": vms, "mandatory": False, **changes}
    return order("drs-rule", f"drs-rule/{CLUSTER}/{OURS}", desired, "", {})


async def test_an_order_that_is_delivered_five_times_is_one_task_of_vcenter(
    admin: Admin, writer: VSphereDrsWriter
) -> None:
    a, b, c, *_ = admin.all(vim.VirtualMachine)
    removal = order("drs-rule", f"drs-rule/{CLUSTER}/{OURS}", {}, "", {})
    tasks, keys = [len(admin.reconfigurations())], []
    for command in (drs_order([a, b]), drs_order([a, b, c]), removal):
        # Delivered anew, by then to a worker that remembers nothing; and twice at once to one.
        sinks = [DrsSink(writer, "s", vms=lambda: admin.all(vim.VirtualMachine), enabled=True) for _ in range(4)]
        answers = [await sink.apply(command) for sink in sinks[:3]]
        answers += await asyncio.gather(*(sinks[3].apply(command) for _ in range(2)))
        assert [answer.result for answer in answers] == ["applied", "noop", "noop", "noop", "noop"]
        tasks.append(len(admin.reconfigurations()))
        keys += [rule.key for rule in admin.cluster.configurationEx.rule if rule.name == OURS]
    assert [after - before for before, after in pairwise(tasks)] == [1, 1, 1]
    assert len(keys) == 2
    assert keys[0] == keys[1]  # edited in place
    assert admin.rules_as_sent() == {}


async def test_an_order_that_vcenter_cannot_take_is_refused_with_a_reason_and_no_change(
    admin: Admin, writer: VSphereDrsWriter
) -> None:
    a, b, *_ = vms = admin.all(vim.VirtualMachine)
    admin.add_rule(vim.cluster.VmHostRuleInfo(name=OURS, enabled=True, vmGroupName="g", affineHostGroupName="h"))
    before, tasks = admin.rules_as_sent(), len(admin.reconfigurations())
    sink = DrsSink(writer, "s", vms=lambda: admin.all(vim.VirtualMachine), enabled=True)
    taken = await sink.apply(drs_order([a, b]))
    assert (taken.result, taken.reason) == ("refused", f"the name {OURS} is taken by a rule of type vm-host")
    assert (admin.rules_as_sent(), len(admin.reconfigurations())) == (before, tasks)

    key = admin.cluster.configurationEx.rule[0].key
    admin.reconfigure(vim.cluster.RuleSpec(operation="remove", removeKey=key))
    admin.add_rule(vim.cluster.AffinityRuleSpec(name=OURS, enabled=True, vm=[vms[a], vms[b]]))
    before = admin.rules_as_sent()
    taken = await sink.apply(drs_order([a, b]))
    assert (taken.result, taken.reason) == ("refused", f"the name {OURS} is taken by a rule of type affinity")
    assert admin.rules_as_sent() == before

    off = vim.cluster.ConfigSpecEx(drsConfig=vim.cluster.DrsConfigInfo(enabled=False))
    wait_for(admin.cluster.ReconfigureComputeResource_Task(off, True))
    tasks = len(admin.reconfigurations())
    without = await DrsSink(writer, "s", vms=lambda: admin.all(vim.VirtualMachine), enabled=True).apply(
        order("drs-rule", f"drs-rule/{CLUSTER}/{rule_name('s', 'shop.web')}", drs_order([a, b]).desired, "", {})
    )
    assert (without.result, without.reason) == ("refused", f"cluster {CLUSTER}: DRS is off")
    assert (admin.rules_as_sent(), len(admin.reconfigurations())) == (before, tasks)


async def test_the_collector_reports_a_lost_version_as_gone(settings: VSphereSettings) -> None:
    collector = await open_collector(settings)
    page = await collector.wait("")
    assert page is not None
    assert {change.kind for change in page.changes} == {"enter"}
    await collector.close()
    with pytest.raises(Unreachable):  # the session is gone, and with it collector and version
        await collector.wait(page.version)


# ---------------------------------------------------------------------------------------------------------- inventory
def underhost(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-c", "from underhost.agents.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def test_the_inventory_command_writes_the_same_bytes_each_time(settings: VSphereSettings) -> None:
    flags = ["--url", settings.url, "--username", USERNAME, "--password-file", str(settings.password_file)]
    first, second = (underhost("inventory", *flags, "--ca-file", str(settings.ca_file)) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    found = json.loads(first.stdout)
    assert [host["name"] for host in found["hosts"]] == [f"{CLUSTER}_H{i}" for i in range(7)]
    assert [vm["name"] for vm in found["vms"]] == [f"{CLUSTER}_RP0_VM{i}" for i in range(7)]
    assert {vm["host"] for vm in found["vms"]} <= {host["id"] for host in found["hosts"]}
    assert found["clusters"] == [
        {
            "name": CLUSTER,
            "drs": True,
            "automation": "fullyAutomated",
            "overrides": {},
            "ha": False,
            "admission": None,
            "rules": [],
        }
    ]


@pytest.mark.timeout(90)
def test_the_inventory_as_a_table_fits_80_columns(settings: VSphereSettings, tmp_path: Path) -> None:
    flags = ["--url", settings.url, "--username", USERNAME, "--password-file", str(settings.password_file)]
    command = ["inventory", *flags, "--ca-file", str(settings.ca_file), "-o", "table"]
    assert misfits(command, tmp_path) == Misfits()


@pytest.mark.timeout(90)
def test_the_inventory_command_shows_a_vm_that_moves(settings: VSphereSettings, admin: Admin) -> None:
    flags = ["--url", settings.url, "--username", USERNAME, "--password-file", str(settings.password_file)]
    command = [Path(sys.executable).with_name("underhost"), "inventory", *flags, "--ca-file", str(settings.ca_file)]
    with subprocess.Popen([*command, "-o", "table", "-w"], stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdout is not None
        rows = (line.split() for line in asked.stdout)
        assert next(row for row in rows if row[:1] == [f"{CLUSTER}_RP0_VM6"])[2] == "on"
        vm = next(iter(admin.all(vim.VirtualMachine).values()))
        away = next(host for host in admin.all(vim.HostSystem).values() if host != admin.host_of(vm))
        admin.relocate(vm, away)
        assert next(row for row in rows if row[:1] == ["VM"])[:2] == ["VM", "HOST"]
        assert next(rows)[0].startswith(f"{CLUSTER}_RP0_VM")
        asked.send_signal(signal.SIGINT)
        assert asked.wait(20) == 130


@pytest.mark.parametrize(
    ("flags", "environment", "code", "reason"),
    [
        pytest.param([], {"UNDERHOST_VSPHERE__PASSWORD": "x"}, 3, "certificate not trusted", id="untrusted"),
        pytest.param(
            ["--insecure"], {"UNDERHOST_VSPHERE__PASSWORD": "x"}, 3, "wrong user name or password", id="wrong password"
        ),
        pytest.param(["--insecure", "--password-file", "/nowhere/p"], {}, 2, "No such file", id="no password file"),
        pytest.param(
            ["--insecure", "--cluster", "C9"],
            {"UNDERHOST_VSPHERE__PASSWORD": PASSWORD},
            3,
            f"cluster C9 is not there, or not ours to see (we see: {CLUSTER})",
            id="unknown cluster",
        ),
    ],
)
def test_the_inventory_command_says_in_one_line_what_is_wrong(
    vcsim: Vcsim, flags: list[str], environment: dict[str, str], code: int, reason: str
) -> None:
    done = underhost("inventory", "--url", vcsim.url, "--username", USERNAME, *flags, **environment)
    assert (done.returncode, done.stdout) == (code, "")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
