"""What may be written to the clusters, judged at the moment of each write.

In: each request that has changed a cluster, by whom and for which command; the moves of VMs. Out: one line for each
write that should not have been made.
"""

from collections import defaultdict
from math import ceil
from typing import Any

from support.simulation.operated import OperatedSite
from trust.simulation.town import vm_of

from underhost.schemas.kubernetes import Budget
from underhost.streams.settings.labels import CAPV_HOST_KEY
from underhost.streams.simulated.objects import is_ready, labels_of, plain, selects
from underhost.streams.simulated.store import Change

STATES = frozenset({"apply_node_labels", "replace_taints", "edit_rule", "set_pod_condition"})
"""Requests that name a whole state: the same one has an effect again only where somebody else has changed it since."""


class Writes:
    """The writes to one site.

    Attributes:
        violations: those that should not have been made, a line each.
    """

    def __init__(self, site: OperatedSite) -> None:
        self._site = site
        self.violations: list[str] = []
        self._made: set[tuple[str, str]] = set()
        self._hosts: dict[str, list[str]] = defaultdict(list)
        self._labelled: dict[str, int] = {}
        for vm in site.vsphere.vms().values():
            self._hosts[vm.id].append(site.vsphere.host(vm.host).name)
        site.vsphere.store.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.key.kind == "vm" and change.value is not None:
            name, hosts = self._site.vsphere.host(change.value.host).name, self._hosts[change.value.id]
            if hosts[-1:] != [name]:
                hosts.append(name)

    def before(self, name: str, args: tuple[Any, ...]) -> str:
        """What is wrong with a request that is about to be made, should it take effect; "" for nothing."""
        return self._breaks_a_budget(*args) if name == "request_eviction" else ""

    def made(self, by: str, command: str, name: str, args: tuple[Any, ...], wrong: str) -> None:
        """A request has changed a cluster. `by` is why who made it may not write, "" where it may."""
        what = f"{name}{args!r}"
        if by:
            self.violations.append(f"{what} was written by {by}")
        if wrong:
            self.violations.append(f"{what}: {wrong}")
        if name not in STATES and (command, what) in self._made:
            self.violations.append(f"command {command} took effect twice: {what}")
        self._made.add((command, what))
        if name == "apply_node_labels":
            self._follows_the_vm(args[0], args[2])

    def _follows_the_vm(self, node: str, labels: dict[str, str | None]) -> None:
        """Labels may lag behind a VM, but they never go back to where it was before."""
        vm = vm_of(self._site, self._site.kubernetes.node(node)).id
        host, hosts = labels.get(CAPV_HOST_KEY), self._hosts[vm]
        if host not in hosts:
            return self.violations.append(f"node {node} is labelled {host}, where its VM never was ({hosts})")
        at = len(hosts) - 1 - hosts[::-1].index(host)
        if at < self._labelled.get(vm, 0):
            self.violations.append(f"the label of node {node} goes back to {host} ({hosts})")
        self._labelled[vm] = max(at, self._labelled.get(vm, 0))

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
