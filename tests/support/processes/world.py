"""A world of real parts for one story: Kubernetes (etcd, kube-apiserver, KWOK) and vCenter (vcsim), on loopback.

Seven nodes whose providerIDs are VMs of the vCenter, one VM a host at first. Everything is asked and done through the
real APIs, not by the product's clients.
"""

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyVim.connect
import pyVim.task
from pyVmomi import vim, vmodl
from support.processes.kube import ADMIN_TOKEN, Kube, start_kube
from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod
from support.processes.underhost import config_of
from support.processes.vcsim import PASSWORD, USERNAME, Vcsim, hang_up, start_vcsim

NODES = tuple(f"node-{number}" for number in range(1, 8))
CLUSTER = "DC0_C0"
FOREIGN_RULE = "licences-keep-apart"
BEGUN = "RequestReceived"
"""The stage of a request in the audit log before it is carried out."""
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat/node-heartbeat.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
T = TypeVar("T")


def eventually(what: str, ask: Callable[[], T | None], within: float = 120.0) -> T:
    """What `ask` answers as soon as it is neither None nor False; fails with `what` when the time is over."""
    deadline = time.monotonic() + within
    while True:
        answer = ask()
        if answer is not None and answer is not False:
            return answer
        assert time.monotonic() < deadline, f"after {within:.0f} s still not: {what}"
        time.sleep(0.02)  # real parts announce nothing to a test, so it has to look again


class KubeApi:
    """The cluster as an administrator sees it, by plain HTTP."""

    def __init__(self, kube: Kube) -> None:
        self._server, self._tls = kube.server, ssl.create_default_context(cafile=str(kube.ca))

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The decoded answer; raises urllib.error.HTTPError for a refusal."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        # The API server names who writes after the program: this is a person with kubectl.
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": kind, "User-Agent": "kubectl/v1.36.3"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=20, context=self._tls) as answer:
            return json.load(answer)

    def node_labels(self) -> dict[str, str]:
        """The host label of each node that carries one."""
        nodes = self.ask("GET", "/api/v1/nodes")["items"]
        return {
            node["metadata"]["name"]: node["metadata"]["labels"][HOST_LABEL]
            for node in nodes
            if HOST_LABEL in node["metadata"].get("labels", {})
        }

    def bound(self, namespace: str = "default") -> dict[str, str]:
        """The node of each bound pod."""
        pods = self.ask("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    def dump(self) -> dict[str, Any]:
        """What `kubectl get nodes,pods,namespaces,services -A -o json` prints."""
        items = []
        for plural, kind in (("nodes", "Node"), ("pods", "Pod"), ("namespaces", "Namespace"), ("services", "Service")):
            listed = self.ask("GET", f"/api/v1/{plural}")["items"]
            items += [{"apiVersion": "v1", "kind": kind, **item} for item in listed]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def add_node(self, name: str, uuid: str) -> None:
        """A node on the VM with this uuid, kept alive by KWOK."""
        self.ask("POST", "/api/v1/nodes", kwok_node(name, uuid, cpu="8"))

    def bind(self, pod: str, node: str) -> None:
        """Bind a pod of the default namespace, as a scheduler does."""
        body = {"target": {"kind": "Node", "name": node}, "metadata": {"name": pod}}
        self.ask("POST", f"/api/v1/namespaces/default/pods/{pod}/binding", body)

    def add_replica(self, name: str) -> None:
        """A pod of `db` for our scheduler; no two of them may share a physical host."""
        self.ask("POST", "/api/v1/namespaces/default/pods", kwok_pod(name, "underhost", app="db"))


class VCenter:
    """The vCenter as an operator sees it, by pyVmomi."""

    def __init__(self, vcsim: Vcsim) -> None:
        context = ssl.create_default_context(cadata=vcsim.certificate)
        self._service = pyVim.connect.SmartConnect(
            host="127.0.0.1", port=vcsim.port, user=USERNAME, pwd=PASSWORD, sslContext=context
        )
        content = self._service.RetrieveContent()
        self._collector, self.content = content.propertyCollector, content
        self.cluster = next(iter(self._all(content, vim.ClusterComputeResource)))
        self.hosts = {host.name: host for host in self._all(content, vim.HostSystem)}
        self.vms = {vm.name: vm for vm in sorted(self._all(content, vim.VirtualMachine), key=lambda vm: vm.name)}

    @staticmethod
    def _all(content: Any, kind: type) -> list[Any]:
        view = content.viewManager.CreateContainerView(content.rootFolder, [kind], True)
        try:
            return list(view.view)
        finally:
            view.Destroy()

    def move(self, vm: str, host: str) -> None:
        """A real relocation to this very host, which asks no rule."""
        spec = vim.vm.RelocateSpec(host=self.hosts[host], pool=self.cluster.resourcePool)
        self._wait(self.vms[vm].RelocateVM_Task(spec))

    def _wait(self, task: Any) -> None:
        """Until it is done. Not for one task: pyVmomi would look at the name of a task that still runs, and fail."""
        pyVim.task.WaitForTasks([task], pc=self._collector)

    def host_refs(self) -> dict[str, str]:
        """The morefs of the hosts by name."""
        return {name: host._GetMoId() for name, host in self.hosts.items()}

    def host_of(self, vm: str) -> str:
        """The name of the host that the VM runs on."""
        return str(self._read(self.vms[vm], "runtime.host").name)

    def uuid_of(self, vm: str) -> str:
        """The BIOS uuid of the VM."""
        return str(self._read(self.vms[vm], "config.uuid"))

    def _read(self, managed: Any, path: str) -> Any:
        """One narrow property: pyVmomi cannot read a whole `runtime` of the simulator."""
        collect = vmodl.query.PropertyCollector
        wanted = collect.FilterSpec(
            objectSet=[collect.ObjectSpec(obj=managed)],
            propSet=[collect.PropertySpec(type=type(managed), pathSet=[path])],
        )
        return self._collector.RetrieveContents([wanted])[0].propSet[0].val

    def add_foreign_rule(self) -> None:
        """A rule of somebody else's, over two of our VMs."""
        rule = vim.cluster.AntiAffinityRuleSpec(
            name=FOREIGN_RULE, enabled=False, userCreated=True, vm=list(self.vms.values())[:2]
        )
        change = vim.cluster.RuleSpec(operation="add", info=rule)
        task = self.cluster.ReconfigureComputeResource_Task(vim.cluster.ConfigSpecEx(rulesSpec=[change]), True)
        self._wait(task)

    def keep_apart(self, name: str, *vms: str) -> None:
        """A rule of somebody else's, in force."""
        rule = vim.cluster.AntiAffinityRuleSpec(
            name=name, enabled=True, userCreated=True, vm=[self.vms[vm] for vm in vms]
        )
        change = vim.cluster.RuleSpec(operation="add", info=rule)
        self._wait(self.cluster.ReconfigureComputeResource_Task(vim.cluster.ConfigSpecEx(rulesSpec=[change]), True))

    def have_drs_propose(self) -> None:
        """DRS only proposes from now on, and moves no VM by itself: others need not wait for it."""
        drs = vim.cluster.DrsConfigInfo(enabled=True, defaultVmBehavior="partiallyAutomated")
        self._wait(self.cluster.ReconfigureComputeResource_Task(vim.cluster.ConfigSpecEx(drsConfig=drs), True))

    def give_memory(self, vm: str, mib: int) -> None:
        """The VM has so much memory from now on."""
        self._wait(self.vms[vm].ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=mib)))

    def remove_rule(self, name: str) -> None:
        """The rule goes."""
        [key] = [rule.key for rule in self.cluster.configurationEx.rule if rule.name == name]
        change = vim.cluster.RuleSpec(operation="remove", removeKey=key)
        task = self.cluster.ReconfigureComputeResource_Task(vim.cluster.ConfigSpecEx(rulesSpec=[change]), True)
        self._wait(task)

    def set_option(self, option: Any) -> None:
        """A setting of the vCenter."""
        self.content.setting.UpdateOptions([option])

    def tasks(self) -> list[str]:
        """What vCenter has done lately, whoever asked for it."""
        return [str(task.info.descriptionId) for task in self.content.taskManager.recentTask]

    def rules(self) -> dict[str, tuple[bool, list[str]]]:
        """(enabled, sorted names of its VMs) of each rule."""
        return {
            rule.name: (rule.enabled, sorted(vm.name for vm in rule.vm))
            for rule in self.cluster.configurationEx.rule or []
        }

    def close(self) -> None:
        hang_up(self._service)


@dataclass(frozen=True)
class Audit:
    """The API server's own log of the writes that were tried; at level `Request` with what they said."""

    log: Path
    level: str = "Metadata"

    def flags(self) -> list[str]:
        """The flags of kube-apiserver that make it write the log."""
        rules = [
            {"level": self.level, "verbs": ["create", "patch", "update", "delete"]},
            {"level": "None"},
        ]
        policy = self.log.with_name("audit-policy.json")
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.log}"]

    def product_writes(self) -> list[tuple[str, str, int]]:
        """(verb, path, answer's code) of each write by anybody but this test and Kubernetes itself, in order.

        Without leases, which only say who may write.
        """
        writes = []
        for event in self.writes():
            agent = event.get("userAgent", "")
            if not agent.startswith(("kubectl", "Python-urllib", "kwok", "kube-")):
                path = event["requestURI"].partition("?")[0]
                if not path.startswith("/apis/coordination.k8s.io/"):
                    writes.append((event["verb"], path, event["responseStatus"]["code"]))
        return writes

    def writes(self) -> list[dict[str, Any]]:
        """The log's events of the ends of writes, in order, once all that had begun have ended.

        What a write has done can be seen before the log has its end, but not before it has its beginning.
        """
        begun = {event["auditID"] for event in self._events() if event["stage"] == BEGUN}

        def ended() -> list[dict[str, Any]] | None:
            events = [event for event in self._events() if event["stage"] != BEGUN]
            return events if begun <= {event["auditID"] for event in events} else None

        return eventually("the writes in the audit log have ended", ended)

    def _events(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


@dataclass(frozen=True)
class World:
    """The parts of a story; node-1 runs on the first VM by name, and so on."""

    folder: Path
    kube: Kube
    api: KubeApi
    vcsim: Vcsim
    vcenter: VCenter
    audit: "Audit"

    @property
    def vm_of(self) -> dict[str, str]:
        """The VM of each node, by name."""
        return dict(zip(NODES, list(self.vcenter.vms)[: len(NODES)], strict=True))

    def config(self, kafka: Mapping[str, str], web: int) -> Path:
        """A configuration of every sink but evictions, over these parts; the `kafka` section is given."""
        tree = {
            "apiVersion": "underhost/v1",
            "kind": "Config",
            "site": "prod-a",
            **config_of(self.folder, self.kube, self.vcsim),
            "kafka": dict(kafka),
            "sinks": {"labels": True, "bindings": True, "drsRules": True},
            "web": {"listen": f"127.0.0.1:{web}"},
        }
        path = self.folder / "underhost.yaml"
        path.write_text(json.dumps(tree))
        return path


@contextmanager
def helpers(
    parts: Path, kube: Kube, *controllers: str, stages: Sequence[str] = STAGES, flags: Sequence[str] = ()
) -> Iterator[None]:
    """KWOK, for nodes and pods to become Ready with no kubelet, and the controller that takes their not-ready taint.

    `controllers` are further ones of kube-controller-manager; `stages` are what KWOK plays, `flags` more flags of it.
    """
    configs = [f"--config={parts / 'kwok-stages' / stage}" for stage in stages]
    key, access = kube.folder / "pki" / "sa.key", f"kubeconfig={kube.kubeconfig}"
    commands = {
        "kwok": [f"--{access}", "--manage-all-nodes=true", *flags, *configs],
        "kube-controller-manager": [
            f"--{access}",
            f"--authentication-{access}",
            f"--authorization-{access}",
            f"--service-account-private-key-file={key}",
            f"--controllers={','.join(('node-lifecycle-controller', *controllers))}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        ],
    }
    started = []
    try:
        for name, flags in commands.items():
            with (kube.folder / f"{name}.log").open("wb") as out:
                started.append(subprocess.Popen([str(parts / name), *flags], stdout=out, stderr=out, cwd=kube.folder))
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def world(folder: Path, parts: Path, more_vms: int = 0, *controllers: str) -> Iterator[World]:
    """Seven nodes on seven VMs, one VM a host, and a foreign DRS rule; `more_vms` are no node's.

    `controllers` are further ones of kube-controller-manager.
    """
    vcsim = start_vcsim(parts, 7, 7 + more_vms)
    try:
        vcenter = VCenter(vcsim)
        for number, vm in enumerate(vcenter.vms):
            vcenter.move(vm, sorted(vcenter.hosts)[number % len(vcenter.hosts)])
        vcenter.add_foreign_rule()
        audit = Audit(folder / "audit.log")
        with start_kube(folder / "kube", parts, *audit.flags()) as kube, helpers(parts, kube, *controllers):
            api = KubeApi(kube)
            for name, vm in zip(NODES, list(vcenter.vms)[: len(NODES)], strict=True):
                api.add_node(name, vcenter.uuid_of(vm))
            eventually("the default namespace is there", lambda: _there(api, "/api/v1/namespaces/default"))
            yield World(folder, kube, api, vcsim, vcenter, audit)
        vcenter.close()
    finally:
        vcsim.stop()


def _there(api: KubeApi, path: str) -> bool:
    try:
        api.ask("GET", path)
    except urllib.error.HTTPError:
        return False
    return True
