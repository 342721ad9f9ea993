"""A small site for the evictor's decider: owners that make another pod at once, a scheduler that a test chooses."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec
from support.build import ZONE, Json, a_node, a_pod, a_workload, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.repair.evictable import EvictionTerms
from underhost.agents.sinks.evictions.decider import EvictionDecider, terms_of
from underhost.agents.sinks.evictions.moves_first import Moves
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import Action, NodeHost, Outcome
from underhost.streams.settings.sinks import EvictionSettings

NOON = 1_767_268_800.0  # seconds since 1970
Scheduler = Callable[["Town", k8s.Pod, str], str]
"""(the town, the pod that went, where its command says that the next one fits) -> the node of the next one."""


def obedient(town: "Town", pod: k8s.Pod, to: str) -> str:
    """Places the next pod where the evaluator expects it."""
    return to


def adversary(town: "Town", pod: k8s.Pod, to: str) -> str:
    """Puts the next pod back where the last one was."""
    return pod.spec.node_name


class Town:
    """Nodes n1, n2, ... in zones, with replicas that may not share one.

    Attributes:
        evicted: (seconds, pod, node) of each eviction. actions: every command. now: monotonic seconds.
        answer: what the sink says of an eviction: applied, unless a test says otherwise.
        starts: seconds from an eviction to the next pod's readiness.
    """

    def __init__(self, zones: Iterable[str], hosts: Iterable[str] = (), scheduler: Scheduler = obedient) -> None:
        nodes = [a_node(f"n{at}").zone(zone).build() for at, zone in enumerate(zones, 1)]
        names = [node.metadata.name for node in nodes]
        self.nodes = {node.metadata.name: node for node in nodes}
        self.hosts = {name: NodeHost(name, "", host, host, "name") for name, host in zip(names, hosts, strict=False)}
        self.pods: dict[str, k8s.Pod] = {}
        self.workloads: dict[str, k8s.Workload] = {}
        self.budgets: dict[str, k8s.Budget] = {}
        self.schedule = scheduler
        self.evicted: list[tuple[float, str, str]] = []
        self.actions: list[Action] = []
        self.outcomes: list[Outcome] = []
        self.now = 0.0
        self.starts = 0.0
        self.answer: Callable[[Action], tuple[str, str]] = lambda action: ("applied", "")
        self._starting: list[tuple[float, str]] = []
        self._made = 0

    # ------------------------------------------------------------------------------------------------------- the town
    def workload(self, name: str, *nodes: str, key: str = ZONE, namespace: str = "shop") -> None:
        """A ReplicaSet with a replica on each of these nodes; no two may share a domain of the key."""
        self.workloads[f"ReplicaSet/{namespace}/{name}"] = a_workload("ReplicaSet", name, len(nodes), namespace).build()
        for number, node in enumerate(nodes):
            self._put(f"{name}-{number}", node, name, [term(key, {"app": name})], namespace)

    def _put(self, name: str, node: str, owner: str, apart: list[Json], namespace: str, ready: bool = True) -> None:
        self._made += 1
        pod = a_pod(name, namespace).on(node).ready(ready).metadata(uid=f"{name}-{self._made}")
        self.pods[pod.key] = pod.labels(app=owner).owned_by(f"ReplicaSet/{owner}").apart(*apart).build()

    def room(self, node: str, pods: int) -> None:
        """The node has room for so many pods."""
        was = self.nodes[node]
        allocatable = a_node(node).has(pods=str(pods)).build().status.allocatable
        status = msgspec.structs.replace(was.status, allocatable=allocatable)
        self.nodes[node] = msgspec.structs.replace(was, status=status)

    def move_zone(self, node: str, zone: str) -> None:
        """The node is in another zone from now on."""
        self.nodes[node] = a_node(node).zone(zone).build()

    def evict(self, pod: str, to: str) -> None:
        """The pod is gone, and its owner has made another, which is ready after `starts` seconds."""
        was = self.pods.pop(pod)
        self.evicted.append((self.now, pod, was.spec.node_name))
        namespace, owner = was.metadata.namespace, (was.metadata.owner_references or [])[0].name
        name, node = f"{owner}-{self._made}", self.schedule(self, was, to)
        self._put(name, node, owner, [], namespace, ready=not self.starts)
        made = self.pods[f"{namespace}/{name}"]
        spec = msgspec.structs.replace(was.spec, node_name=node)
        self.pods[f"{namespace}/{name}"] = msgspec.structs.replace(made, spec=spec)
        if self.starts:
            self._starting.append((self.now + self.starts, f"{namespace}/{name}"))

    def snapshot(self) -> Snapshot:
        """The picture now."""
        return Snapshot(
            nodes=dict(self.nodes),
            pods=dict(self.pods),
            workloads=dict(self.workloads),
            budgets=dict(self.budgets),
            node_hosts=dict(self.hosts),
        )

    # ------------------------------------------------------------------------------------------------------ its evictor
    def decider(
        self,
        settings: EvictionSettings | None = None,
        *,
        terms: EvictionTerms | None = None,
        moves: Moves | None = None,
    ) -> EvictionDecider:
        """A decider that remembers what the table of actions holds: the newest command of each target."""
        settings = settings or EvictionSettings(wait=0)
        return EvictionDecider(
            settings,
            terms or terms_of(settings, binds=True),
            Evaluator(Options()),
            moves=moves,
            earlier=list({action.target: action for action in self.actions}.values()),
            outcomes=list({one.target: one for one in self.outcomes}.values()),
            now=self.now,
            clock=lambda: NOON + self.now,
        )

    def step(self, decider: EvictionDecider, seconds: float = 0.0) -> list[Action]:
        """Let time pass, ask the decider, and carry out what it orders, until it orders nothing more."""
        self.now += seconds
        for at, pod in [entry for entry in self._starting if entry[0] <= self.now]:
            self._starting.remove((at, pod))
            if pod in self.pods:
                status = k8s.PodStatus("Running", conditions=[k8s.Condition("Ready", "True")])
                self.pods[pod] = msgspec.structs.replace(self.pods[pod], status=status)
        every: list[Action] = []
        while actions := decider.decide(self.snapshot(), self.now):
            every += actions
            for action in actions:
                self._carry_out(decider, action)
        self.actions += every
        return every

    def _carry_out(self, decider: EvictionDecider, action: Action) -> None:
        refuse = action.desired.get("refuse")
        result, reason = ("refused", str(refuse)) if refuse else self.answer(action)
        if result == "applied":
            self.evict(action.target.removeprefix("pod/"), str(action.desired["to"]))
        outcome = Outcome(action.id, action.kind, action.target, result, reason)
        self.outcomes.append(outcome)
        decider.observe(outcome, self.now)

    def run(self, decider: EvictionDecider, seconds: float, pace: float = 60.0) -> None:
        """Ask the decider now, whenever it wants to be asked, and at least every `pace` seconds."""
        end = self.now + seconds
        self.step(decider)
        while self.now < end:
            due = decider.due if decider.due is not None else end
            assert due > self.now
            self.step(decider, min(due, self.now + pace, end) - self.now)

    def refusals(self) -> list[tuple[str, str]]:
        """(pod, reason) of each refusal."""
        return [(one.target.removeprefix("pod/"), one.reason) for one in self.outcomes if one.result == "refused"]


def without(site: Snapshot, pod: str) -> Snapshot:
    """The picture without a pod."""
    return replace(site, pods={name: one for name, one in site.pods.items() if name != pod})
