"""The site while a plan is tried: the snapshot as it becomes step by step, and the record of what became of each pod.

In: a snapshot and an evaluator. Out: moves, pods that wait or are lost, and the last snapshot. Changed only by
the steps (`acts.py`). Pods are placed by the same loop as everywhere else, the waiting ones again after every
step; pods that waited before the plan, and still do, are no consequence of it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec

from msgspec import structs

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.pending import place_all
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.whatif.budgets import FollowedCoverage
from underhost.agents.whatif.hosts import Fleet
from underhost.agents.whatif.pods import GONE, is_replaced_already, owner_kind, started, successor
from underhost.agents.whatif.steps import HOST, KINDS_OF_TARGETS, NODE
from underhost.schemas.documents import Move, VmMove
from underhost.schemas.errors import InputError
from underhost.schemas.kubernetes import DEFAULT_SCHEDULER, Node, Pod
from underhost.schemas.manifests import Manifest
from underhost.schemas.near import did_you_mean

P = ParamSpec("P")
NO_HOST = "no host is known; name the vSphere side with --inventory, or a label of the nodes with --host-label"


@dataclass
class Stuck:
    """A pod that nobody re-creates (`held` is None) or that waits for its node, as it was; and why."""

    reason: str
    held: Pod | None = None


@dataclass
class World:
    """The state of one plan.

    Attributes:
        snapshot: as it is now. others: the manifests of the input.
        now: when pods are made, which are younger than all that are there.
        step: the number of the step that is being taken.
        moves, vm_moves, used: for the document; `used` holds every budget that was asked.
        waiting: pods without a node. placed_first: pods that waited, and found a node before the plan began.
        origin: of the pods that a step made wait, the node they come from (None: none).
        failed: why a pod waits. stuck: pods that are not to be placed. lost: nodes that have failed.
        draining: nodes that are being drained, with the budgets in the way of each pod that is still there; they are
            tried again after every step.
        fleet: what runs on the hosts, shared by all plans from one start.
        coverage: which budgets cover which pods, followed from one eviction to the next.
    """

    snapshot: Snapshot
    evaluator: Evaluator
    others: Mapping[str, Manifest] = field(default_factory=dict)
    now: str = ""
    step: int = 0
    moves: list[Move] = field(default_factory=list)
    vm_moves: list[VmMove] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)
    placed_first: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    origin: dict[str, str | None] = field(default_factory=dict)
    failed: dict[str, dict[str, int]] = field(default_factory=dict)
    stuck: dict[str, Stuck] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    draining: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    fleet: Fleet = field(default_factory=Fleet)
    coverage: FollowedCoverage = field(default_factory=FollowedCoverage)

    @classmethod
    def at_rest(cls, snapshot: Snapshot, evaluator: Evaluator, others: Mapping[str, Manifest]) -> "World":
        """The site before the plan: what could be placed now, is. Raises BadObjectError."""
        times = (pod.metadata.creation_timestamp or "" for pod in snapshot.pods.values())
        pods = snapshot.pods.items()
        waiting = {key for key, pod in pods if not pod.spec.node_name and pod.status.phase not in FINISHED}
        world = cls(snapshot, evaluator, others, max(times, default=""), waiting=waiting)
        world.placed_first = sorted(world.settle(""))
        return world

    def fork(self) -> "World":
        """Another plan from the same start."""
        start = (self.snapshot, self.evaluator, self.others, self.now)
        return World(*start, waiting=set(self.waiting), failed=dict(self.failed), fleet=self.fleet)

    # ------------------------------------------------------------------------------------------------- the snapshot
    def change(self, **mappings: Any) -> None:
        """The snapshot with other mappings."""
        self.snapshot = replace(self.snapshot, **mappings)

    def mark(self, node: str, change: Callable[Concatenate[Node, P], Node], *args: P.args, **kwargs: P.kwargs) -> None:
        """A node is another from now on."""
        nodes = self.snapshot.nodes
        self.change(nodes={**nodes, node: change(nodes[node], *args, **kwargs)})

    def set_hosts(self, refs: Iterable[str], state: str) -> None:
        """Hosts are in this state from now on."""
        hosts = self.snapshot.hosts
        self.change(hosts={**hosts, **{ref: structs.replace(hosts[ref], state=state) for ref in refs}})

    def move_vms(self, hosts: Mapping[str, str]) -> None:
        """VMs are on these hosts from now on, and their nodes with them."""
        snapshot, nodes = self.snapshot, self.fleet.nodes_of(self.snapshot)
        joined = dict(snapshot.node_hosts)
        for vm, ref in hosts.items():
            for name in nodes.get(vm, ()):
                joined[name] = structs.replace(joined[name], host=ref, host_name=snapshot.hosts[ref].name)
        moved = {vm: structs.replace(snapshot.vms[vm], host=ref) for vm, ref in hosts.items()}
        self.change(vms={**snapshot.vms, **moved}, node_hosts=joined)

    def pods_on(self, nodes: Collection[str]) -> list[str]:
        """The pods on some nodes that have not finished, by name."""
        pods = self.snapshot.pods.items() if nodes else ()
        there = [(key, pod) for key, pod in pods if pod.spec.node_name in nodes]
        return sorted(key for key, pod in there if pod.status.phase not in FINISHED)

    # ---------------------------------------------------------------------------------------------------- pods
    def displace(self, keys: Iterable[str]) -> None:
        """Pods leave: their owners make others, which wait. Raises BadObjectError."""
        going = list(keys)
        pods = dict(self.snapshot.pods) if going else {}
        for key in going:
            pod = pods.pop(key)
            if pod.status.phase in FINISHED or is_replaced_already(pod):
                continue
            if not owner_kind(pod):
                self.lose(key, GONE)
                continue
            pods[key] = successor(pod, self.now, self.others)  # at the end: the scheduler takes the oldest first
            self.waiting.add(key)
            self.origin.setdefault(key, pod.spec.node_name or None)
        if going:
            self.change(pods=pods)

    def lose(self, key: str, reason: str, held: Pod | None = None) -> None:
        """A pod goes that is not to be placed again; `held` is the pod, where it waits for its node."""
        self.stuck[key] = Stuck(reason, held)
        self.waiting.discard(key)
        self.origin.pop(key, None)
        self.failed.pop(key, None)

    def release(self, keys: Iterable[str]) -> None:
        """Pods that wait for a lost node wait no more: their owners may make others."""
        freed = {key: held for key in list(keys) if (held := self.stuck.pop(key).held) is not None}
        for key, held in freed.items():
            self.waiting.add(key)
            self.origin[key] = held.spec.node_name
        if freed:
            made = {key: successor(held, self.now, self.others) for key, held in freed.items()}
            self.change(pods={**self.snapshot.pods, **made})

    def drop(self, keys: Iterable[str]) -> None:
        """Pods leave the picture."""
        gone = list(keys)
        if gone:
            pods = dict(self.snapshot.pods)
            for key in gone:
                del pods[key]
            self.change(pods=pods)

    def settle(self, reason: str) -> list[str]:
        """Place what waits, in the scheduler's order; the pods that found a node. Raises BadObjectError."""
        if not self.waiting:
            return []
        state = self.evaluator.state(self.snapshot)
        with state.trial():
            decided = place_all(state)
        pods, placed = dict(self.snapshot.pods), []
        for pending, decision in decided:
            key = pending.key
            if decision.node is None:
                self.failed[key] = decision.failed
                continue
            node = state.model.nodes.names[decision.node]
            pods[key] = started(pods[key], node)
            placed.append(key)
            if self.step:
                self.moves.append(Move(self.step, key, self.origin.get(key), node, reason))
            self.waiting.discard(key)
            self.failed.pop(key, None)
            self.origin.pop(key, None)
        if placed:
            self.change(pods=pods)
        return placed

    def pending(self) -> dict[str, dict[str, int]]:
        """What waits or is lost because of the plan, by name, with the reasons."""
        found = {key: self.failed.get(key) or self._undecided(key) for key in self.origin}
        found |= {key: {stuck.reason: 0} for key, stuck in self.stuck.items()}
        return dict(sorted(found.items()))

    def _undecided(self, key: str) -> dict[str, int]:
        name = self.snapshot.pods[key].spec.scheduler_name or DEFAULT_SCHEDULER
        return {f"scheduler {name} is not asked": 0}

    # --------------------------------------------------------------------------------------------------- looking up
    def node(self, name: str) -> str:
        """The name, if there is such a node. Raises InputError."""
        if name not in self.snapshot.nodes:
            raise _unknown("node", name, self.snapshot.nodes)
        return name

    def host(self, name: str) -> str:
        """The id of the host of this id or name. Raises InputError."""
        hosts = self.snapshot.hosts
        if name in hosts:
            return name
        refs = sorted(ref for ref, host in hosts.items() if host.name == name)
        if len(refs) > 1:
            raise InputError(f"host {name}: several hosts have that name; give the id of one: {', '.join(refs)}")
        if refs:
            return refs[0]
        if not hosts:
            raise InputError(f"host {name}: {NO_HOST}")
        raise _unknown("host", name, [host.name for host in hosts.values()])

    def require_vms(self, what: str) -> None:
        """Raises InputError where a node label names the hosts: nothing says which VMs there are, or where they fit."""
        if label := self.snapshot.joining.label:
            why = f"no VM is known, only the node label {label}, so that none can move away"
            raise InputError(f"{what}: {why}; try fail, or drain its nodes")

    def target(self, name: str) -> str:
        """The name of what fails, with its kind. Raises InputError for a bare one, with what was probably meant."""
        if "/" in name:
            return name
        there = {f"{NODE}/{node}": node for node in self.snapshot.nodes}
        there |= {f"{HOST}/{host.name}": host.name for host in self.snapshot.hosts.values()}
        meant = " or ".join(sorted(kind for kind, one in there.items() if one == name))
        raise InputError(f"{name}: {KINDS_OF_TARGETS}{f'; did you mean {meant}?' if meant else ''}")

    def pod(self, name: str) -> str:
        """The name, if there is such a pod, be it one that waits for its lost node. Raises InputError."""
        stuck = self.stuck.get(name)
        if name in self.snapshot.pods or (stuck is not None and stuck.held is not None):
            return name
        namespace, _, base = name.partition("/")
        elsewhere = sorted(key for key in self.snapshot.pods if key.endswith(f"/{base}"))
        if elsewhere:
            raise InputError(f"pod {name}: not there; did you mean {elsewhere[0]}?")
        raise _unknown("pod", name, [key for key in self.snapshot.pods if key.startswith(f"{namespace}/")])


def _unknown(kind: str, name: str, names: Collection[str]) -> InputError:
    """There is no such thing; perhaps another was meant."""
    return InputError(f"{kind} {name}: not there{did_you_mean(name, names)}")
