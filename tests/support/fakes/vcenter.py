"""A vCenter for unit tests: an inventory that one changes, collectors that report it, topics that remember.

Faults are items of `faults`: the next wait raises them. Nothing sleeps; `FakeTopics.seen` wakes when records arrive.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from underhost.schemas.errors import Gone, Refused
from underhost.schemas.vsphere import DrsRule
from underhost.streams.ports import LiveHost, LiveVm
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.changes import CLUSTER, HOST, LEAVE, MODIFY, VM, ClusterState, ObjectChange, Page, Poll

ENTER = "enter"


class FakeVCenter:
    """Hosts `host-1..n` in cluster C0 (`domain-1`), VMs `vm-1..m` on them in turn."""

    def __init__(self, hosts: int = 3, vms: int = 3, page: int = 100) -> None:
        self.page = page
        self.logins = 0
        self.logouts = 0
        self.polls = 0
        self.refusals: list[Exception] = []
        """Raised by the next logins, one each."""
        self.clusters = {"domain-1": ClusterState("domain-1", "C0", drs=True, ha=True, rules=())}
        self.hosts = {f"host-{i}": a_host(f"esx-{i}") for i in range(1, hosts + 1)}
        self.vms = {f"vm-{i}": a_vm(f"node-{i}", f"host-{(i - 1) % hosts + 1}") for i in range(1, vms + 1)}
        self.missing: dict[str, dict[str, str]] = {}
        self.attribute_names: dict[int, str] = {}
        self.placement: dict[str, dict[str, str]] = {}
        self.tags: dict[str, dict[str, str]] | None = {}
        """None where the session could not read them yet."""
        self.blank_polls = 0
        """So many polls show no host at all, as an expired session may do."""
        self._polled = asyncio.Event()
        self._news: list[ObjectChange | Exception] = []
        self._changed = asyncio.Event()

    def tell(self, *items: ObjectChange | Exception) -> None:
        """The collector's next answers: changes (all of one update), or faults."""
        self._news.extend(items)
        self._changed.set()

    def move(self, *vms: str, to: str) -> None:
        """Relocate VMs, in one update."""
        for vm in vms:
            self.vms[vm]["runtime.host"] = to
        self.tell(*(ObjectChange(MODIFY, VM, vm, {"runtime.host": to}) for vm in vms))

    def remove(self, *vms: str) -> None:
        """Delete VMs, in one update."""
        for vm in vms:
            del self.vms[vm]
        self.tell(*(ObjectChange(LEAVE, VM, vm, {}) for vm in vms))

    def set_rules(self, *rules: DrsRule) -> None:
        """What vCenter holds; it does not announce it."""
        self.clusters["domain-1"] = self.clusters["domain-1"]._replace(rules=rules)

    async def until_polled(self, count: int) -> None:
        """Until so many polls were made, and what follows from the last one has been done."""
        async with asyncio.timeout(10):
            while self.polls < count:
                self._polled.clear()
                await self._polled.wait()
        for _ in range(50):  # lets every task that can run do so: the fakes never wait for anything outside
            await asyncio.sleep(0)

    async def connect(self, settings: VSphereSettings) -> "FakeCollector":
        """The `connect` of VSphereSource."""
        if self.refusals:
            raise self.refusals.pop(0)
        self.logins += 1
        return FakeCollector(self)

    def snapshot(self) -> list[ObjectChange]:
        """Everything, as entering objects."""
        found = [(CLUSTER, ref, {"name": state.name}) for ref, state in self.clusters.items()]
        found += [(HOST, ref, properties) for ref, properties in self.hosts.items()]
        found += [(VM, ref, properties) for ref, properties in self.vms.items()]
        return [
            ObjectChange(
                ENTER,
                kind,
                ref,
                {path: value for path, value in properties.items() if path not in self.missing.get(ref, {})},
                self.missing.get(ref, {}),
            )
            for kind, ref, properties in found
        ]


class FakeCollector:
    """A `Collector` over a FakeVCenter: pages of `vcenter.page` objects, faults where the test put them."""

    def __init__(self, vcenter: FakeVCenter) -> None:
        self._vcenter = vcenter
        self._pending: list[ObjectChange] = []
        self._version = 0

    async def wait(self, version: str) -> Page | None:
        vcenter = self._vcenter
        if not self._pending:
            if version == "":
                self._pending = vcenter.snapshot()
                vcenter._news = [item for item in vcenter._news if isinstance(item, Exception)]
                if not self._pending:
                    return None
            else:
                while not vcenter._news:
                    vcenter._changed.clear()
                    await vcenter._changed.wait()
                if isinstance(vcenter._news[0], Exception):
                    raise vcenter._news.pop(0)  # type: ignore[misc]
                while vcenter._news and isinstance(vcenter._news[0], ObjectChange):
                    self._pending.append(vcenter._news.pop(0))  # type: ignore[arg-type]
        page, self._pending = self._pending[: vcenter.page], self._pending[vcenter.page :]
        self._version += 1
        return Page(str(self._version), bool(self._pending), tuple(page))

    async def poll(self) -> Poll:
        vcenter = self._vcenter
        vcenter.polls += 1
        vcenter._polled.set()
        if vcenter.blank_polls:
            vcenter.blank_polls -= 1
            return Poll((), (), {}, {})
        paths = ("runtime.connectionState", "runtime.inMaintenanceMode")
        hosts = tuple(
            ObjectChange(MODIFY, HOST, ref, {path: properties[path] for path in paths})
            for ref, properties in vcenter.hosts.items()
        )
        return Poll(tuple(vcenter.clusters.values()), hosts, vcenter.attribute_names, vcenter.placement, vcenter.tags)

    async def close(self) -> None:
        self._vcenter.logouts += 1


def a_host(name: str, **properties: Any) -> dict[str, Any]:
    """Properties of a connected host in C0 with 16 × 2,600 MHz and 64 GiB."""
    return {
        "name": name,
        "parent": "domain-1",
        "runtime.connectionState": "connected",
        "runtime.inMaintenanceMode": False,
        "summary.hardware.numCpuCores": 16,
        "summary.hardware.cpuMhz": 2600,
        "summary.hardware.memorySize": 64 * 2**30,
        "customValue": {},
        **properties,
    }


def a_vm(name: str, host: str, **properties: Any) -> dict[str, Any]:
    """Properties of a running VM with 4 CPUs and 8 GiB."""
    return {
        "name": name,
        "config.template": False,
        "config.uuid": f"420B5C8E-0000-0000-0000-{name[-1]:0>12}",
        "config.hardware.numCPU": 4,
        "config.hardware.memoryMB": 8192,
        "runtime.host": host,
        "runtime.powerState": "poweredOn",
        "guest.hostName": name,
        **properties,
    }


class FakeDrsWriter:
    """A `DrsWriter` over one cluster C0 that numbers its rules and logs every write.

    `faults` are raised by the next writes, one each. `conflicting`: rules that are written stay disabled.
    """

    def __init__(self, *rules: DrsRule, conflicting: bool = False) -> None:
        self.held = {rule.name: rule for rule in rules}
        self.writes: list[tuple[str, str]] = []
        self.faults: list[Exception] = []
        self.conflicting = conflicting
        self._next_key = 100

    async def rules(self, cluster: str) -> list[DrsRule]:
        if cluster != "C0":
            raise Refused(f"no cluster named {cluster}")
        found = list(self.held.values())
        await asyncio.sleep(0)  # others may run between a look and a write, as with a real server
        return found

    async def add_rule(self, cluster: str, rule: DrsRule) -> None:
        self._write("add", rule)
        self._next_key += 1
        enabled = rule.enabled and not self.conflicting
        self.held[rule.name] = replace(rule, key=self._next_key, enabled=enabled)

    async def edit_rule(self, cluster: str, rule: DrsRule) -> None:
        self._write("edit", rule)
        if self.held[rule.name].key != rule.key:
            raise Gone(f"no rule with key {rule.key}")
        self.held[rule.name] = rule

    async def remove_rule(self, cluster: str, rule: DrsRule) -> None:
        self._write("remove", rule)
        if rule.name not in self.held:
            raise Gone(f"no rule {rule.name}")
        del self.held[rule.name]

    def _write(self, verb: str, rule: DrsRule) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.writes.append((verb, rule.name))


class FakeMover:
    """A `VmMover` over VMs that are on hosts, all by reference; a VM is called as its reference without `vm-`.

    A move ends after `looks` looks at its task. Faults are items: `refusals` are raised by the next moves, one each,
    None for one that goes well; `failures` by the ends of the next tasks.
    """

    def __init__(self, at: Mapping[str, str], looks: int = 1) -> None:
        self.at, self.looks = dict(at), looks
        self.moves: list[tuple[str, str]] = []
        self.refusals: list[Exception | None] = []
        self.failures: list[Exception | None] = []
        self.off: set[str] = set()
        self.under_way: dict[str, tuple[str, str, int]] = {}
        """By task, the VM, where it goes, and the looks until it is there."""

    async def live_vm(self, vm: str) -> LiveVm:
        if vm not in self.at:
            raise Gone(f"no VM {vm}")
        task = next((task for task, (moving, _, _) in self.under_way.items() if moving == vm), "")
        return LiveVm(vm.removeprefix("vm-"), self.at[vm], vm not in self.off, task)

    async def relocate(self, vm: str, host: str) -> str:
        if error := self.refusals.pop(0) if self.refusals else None:
            raise error
        self.moves.append((vm, host))
        task = f"task-{len(self.moves)}"
        self.under_way[task] = (vm, host, self.looks)
        return task

    async def is_done(self, task: str) -> bool:
        vm, host, looks = self.under_way[task]
        if looks:
            self.under_way[task] = (vm, host, looks - 1)
            return False
        del self.under_way[task]
        if error := self.failures.pop(0) if self.failures else None:
            raise error
        self.at[vm] = host
        return True


class FakeMaintainer(FakeMover):
    """A `HostMaintainer`, too: a host is called as its reference with `esx-` in the place of `h`.

    `modes` are the changes that were begun. Faults as of moves: `mode_refusals`, `mode_failures`.
    """

    def __init__(self, at: Mapping[str, str], looks: int = 1) -> None:
        super().__init__(at, looks)
        self.modes: list[tuple[str, str]] = []
        self.in_maintenance: set[str] = set()
        self.away: set[str] = set()
        self.mode_refusals: list[Exception | None] = []
        self.mode_failures: list[Exception | None] = []
        self.changing: dict[str, tuple[str, str, int]] = {}
        """By task, the host, its new mode, and the looks until it has it."""

    async def live_host(self, host: str) -> LiveHost:
        task = next((task for task, (changing, _, _) in self.changing.items() if changing == host), "")
        vms = {vm: vm.removeprefix("vm-") for vm, there in self.at.items() if there == host and vm not in self.off}
        name = f"esx-{host.removeprefix('h')}"
        return LiveHost(name, host not in self.away, host in self.in_maintenance, vms, task)

    async def enter_maintenance(self, host: str, within: int) -> str:
        return self._change(host, "enter")

    async def exit_maintenance(self, host: str, within: int) -> str:
        return self._change(host, "exit")

    def _change(self, host: str, mode: str) -> str:
        if error := self.mode_refusals.pop(0) if self.mode_refusals else None:
            raise error
        self.modes.append((host, mode))
        task = f"mode-{len(self.modes)}"
        self.changing[task] = (host, mode, self.looks)
        return task

    async def is_done(self, task: str) -> bool:
        if task not in self.changing:
            return await super().is_done(task)
        host, mode, looks = self.changing[task]
        if looks:
            self.changing[task] = (host, mode, looks - 1)
            return False
        del self.changing[task]
        if error := self.mode_failures.pop(0) if self.mode_failures else None:
            raise error
        (self.in_maintenance.add if mode == "enter" else self.in_maintenance.discard)(host)
        return True
