"""What may be written to the clusters, judged at the moment of each write.

In: each request, and whether it has changed a cluster, by whom and for which command; the moves of VMs, and who takes
labels. Out: one line for each write that should not have been made.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from support.simulation.operated import OperatedSite
from trust.simulation.server import Server
from trust.simulation.town import PER_CLUSTER, PER_HOST, STRANGER, vm_of

from underhost.schemas.kubernetes import Budget
from underhost.streams.settings.labels import CAPV_HOST_KEY
from underhost.streams.simulated.objects import is_ready, labels_of, plain, selects
from underhost.streams.simulated.store import Change

STATES = frozenset({"apply_node_labels", "replace_taints", "edit_rule", "set_pod_condition"})
"""Requests that name a whole state: the same one has an effect again only where somebody else has changed it since."""


ON_HOSTS = frozenset(
    {"apply_node_labels", "merge_pod_labels", "add_rule", "edit_rule", "remove_rule", "request_eviction", "relocate"}
)
"""Requests that may be wrong where nobody knows on which hosts the VMs are now."""
SILENCE = 95.0
"""Seconds of a server's silence after which no command is begun: the product's minute, the half of one that a worker
which has not listed yet goes by the markers, and a moment."""


@dataclass(frozen=True)
class Writer:
    """Who makes a request: for which command, why it may not write ("" where it may), and when its run began."""

    command: str
    fault: str
    began: float


@dataclass
class _Stay:
    """A VM on a host, until then."""

    host: str
    until: float = float("inf")


class Moves:
    """The vMotions that workers have begun, by VM: those under way, and what has brought a VM where it is.

    A vMotion that somebody has undone since may be wanted again by the same decision, after a restart.
    """

    def __init__(self) -> None:
        self._under_way: dict[str, tuple[str, str]] = {}
        self._decided: dict[str, tuple[str, str]] = {}

    def begin(self, vm: str, from_: str, to: str, decision: str) -> bool:
        """It begins; whether the same decision has brought the VM there already."""
        again = self._decided.get(vm) == (decision, to)
        self._under_way[vm], self._decided[vm] = (from_, to), (decision, to)
        return again

    def left(self, vm: str, host: str) -> None:
        """The VM is on this host now."""
        self._under_way.pop(vm, None)
        if vm in self._decided and self._decided[vm][1] != host:
            del self._decided[vm]

    def too_many(self, vm: str, way: tuple[str, str]) -> str:
        """The cap that forbids one more, from and to these hosts; "" where there is room."""
        others = [other for each, other in self._under_way.items() if each != vm]
        if len(others) >= PER_CLUSTER:
            return f"{len(others)} others are moving"
        full = [host for host in way if sum(host in other for other in others) >= PER_HOST]
        return f"host {full[0]} has a VM moving already" if full else ""


class Writes:
    """The writes to one site, by a `clock` in seconds; `api` and `vcenter` are whom the workers watch.

    Attributes:
        violations: those that should not have been made, a line each.
    """

    def __init__(self, site: OperatedSite, clock: Callable[[], float], api: Server, vcenter: Server) -> None:
        self._site, self._clock, self._api, self._vcenter = site, clock, api, vcenter
        self.violations: list[str] = []
        self._made: set[tuple[str, str]] = set()
        self._begun: dict[str, float] = {}
        self._stays: dict[str, list[_Stay]] = defaultdict(list)
        self._labelled: dict[str, int] = {}
        self._taken: dict[str, float] = {}
        self._moves = Moves()
        for vm in site.vsphere.vms().values():
            self._stays[vm.id].append(_Stay(site.vsphere.host(vm.host).name))
        site.vsphere.store.listen(self._on_vm)
        site.kubernetes.store.listen(self._on_node)

    def _on_vm(self, change: Change) -> None:
        if change.key.kind == "vm" and change.value is not None:
            name, stays = self._site.vsphere.host(change.value.host).name, self._stays[change.value.id]
            if not stays or stays[-1].host != name:
                for last in stays[-1:]:
                    last.until = self._clock()
                stays.append(_Stay(name))
                self._moves.left(change.value.id, change.value.host)

    def _on_node(self, change: Change) -> None:
        """Since when a node's host label is a stranger's."""
        if change.key.kind == "node":
            node = change.key.name
            if self._site.kubernetes.managers.get(node, {}).get(CAPV_HOST_KEY) == {STRANGER}:
                self._taken.setdefault(node, self._clock())
            else:
                self._taken.pop(node, None)

    def asked(self, command: str) -> None:
        """A request is on its way."""
        self._begun.setdefault(command, self._clock())

    def before(self, command: str, name: str, args: tuple[Any, ...]) -> str:
        """What is wrong with a request that is about to be made, should it take effect; "" for nothing."""
        for server in (self._api, *((self._vcenter,) if name in ON_HOSTS else ())):
            silence = 0.0 if server.silent_since is None else self._begun[command] - server.silent_since
            if silence > SILENCE:
                return f"{server.name} had been silent for {silence:.0f} s when this command began"
        if name == "apply_node_labels" and self._taken.get(args[0], float("inf")) < self._begun[command]:
            return "the label was another controller's before this command began"
        if name == "relocate":
            return self._moves_too_many(command, *args)
        return self._breaks_a_budget(*args) if name == "request_eviction" else ""

    def made(self, by: Writer, name: str, args: tuple[Any, ...], wrong: str) -> None:
        """A request has changed a cluster; `wrong` is what `before` has said of it."""
        what = f"{name}{args!r}"
        if by.fault:
            self.violations.append(f"{what} was written by {by.fault}")
        if wrong:
            self.violations.append(f"{what}: {wrong}")
        if name == "relocate":
            vm, host = args
            if self._moves.begin(vm, self._site.vsphere.vm(vm).host, host, by.command):
                self.violations.append(f"{by.command} took effect twice: {what}")
        elif name not in STATES and (by.command, what) in self._made:
            self.violations.append(f"command {by.command} took effect twice: {what}")
        self._made.add((by.command, what))
        if name == "apply_node_labels":
            self._follows_the_vm(args[0], args[2], by.began)

    def _follows_the_vm(self, node: str, labels: dict[str, str | None], began: float) -> None:
        """Labels may lag behind a VM, but they never go back, and never to before the run that writes them began."""
        vm = vm_of(self._site, self._site.kubernetes.node(node)).id
        host, stays, before = labels.get(CAPV_HOST_KEY), self._stays[vm], self._labelled.get(vm, 0)
        hosts, at = [stay.host for stay in stays], [number for number, stay in enumerate(stays) if stay.host == host]
        if not at:
            return self.violations.append(f"node {node} is labelled {host}, where its VM never was ({hosts})")
        if (ago := began - stays[at[-1]].until) > 0:
            self.violations.append(f"node {node} is labelled {host}, left by its VM {ago:.1f} s before the run began")
        if at[-1] < before:
            return self.violations.append(f"the label of node {node} goes back to {host} ({hosts})")
        # Of several stays the first that it may mean: it lags behind.
        self._labelled[vm] = next(number for number in at if number >= before)

    def _moves_too_many(self, command: str, vm: str, host: str) -> str:
        """The cap that forbids one more vMotion now; nothing where somebody has moved the VM meanwhile."""
        stays = self._stays[vm]
        if len(stays) > 1 and stays[-2].until > self._begun[command]:
            return ""
        return self._moves.too_many(vm, (self._site.vsphere.vm(vm).host, host))

    def _breaks_a_budget(self, namespace: str, name: str, uid: str) -> str:
        """The budget that forbids the pod's end now, counted from the pods themselves."""
        pods = self._site.kubernetes.pods()
        pod = pods.get(f"{namespace}/{name}")
        if pod is None or pod.metadata.uid != uid or not is_ready(pod):
            return ""
        for budget in self._site.kubernetes.budgets():
            selector = plain(budget.spec.selector)
            of = [each for each in pods.values() if selects(selector, labels_of(each.metadata))]
            if pod in of and sum(map(is_ready, of)) - 1 < self._desired(budget):
                return f"budget {budget.metadata.name} allows no eviction"
        return ""

    def _desired(self, budget: Budget) -> int:
        """How many pods have to be ready; a budget has the name of its application."""
        store, name = self._site.kubernetes.store, budget.metadata.name
        owner = store.get("replicaset", name, budget.metadata.namespace)
        owner = owner or store.get("statefulset", name, budget.metadata.namespace)
        replicas, least = owner.spec.replicas or 0, budget.spec.min_available
        if isinstance(least, str):
            return ceil(replicas * int(least.rstrip("%")) / 100)
        return least if least is not None else replicas - int(budget.spec.max_unavailable or 0)
