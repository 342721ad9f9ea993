"""The demo's story as data: steps, each a question to the pipeline's own records and the sentence that answers it.

In: records of the topics, as any consumer reads them. Out: the steps that they show, in order, as sentences. Pure: it
reads no clock, knows no broker and touches no cluster; the command `demo` follows the topics, prints what is told and
does what a step asks of the simulated operator.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from underhost.agents.demo.picture import DemoState
from underhost.schemas.commands import BIND, DRS_RULE, LABEL
from underhost.schemas.kubernetes import QUORUM_ANNOTATION
from underhost.schemas.records import FindingEvent, pods_named
from underhost.schemas.severities import GRAVE, QUORUM
from underhost.schemas.topics import HOSTS, NODES, VMS
from underhost.schemas.vsphere import Vm
from underhost.streams.ports import Record

OWN_RULES = "underhost"
"""How the names of the DRS rules that the pipeline owns begin."""
Told = list[str]
"""A headline and the lines below it."""


class Verb(Enum):
    """What the operator, or fate, can do to the site."""

    HOLD_DRS = auto()
    RELEASE_DRS = auto()
    MOVE = auto()
    FAIL = auto()
    RESTORE = auto()
    DRAIN = auto()
    UNCORDON = auto()
    ASK_QUORUM = auto()
    FORGET_QUORUM = auto()
    RETURN = auto()


class Act(NamedTuple):
    """Something that is done to a VM, host, node or workload (`KIND/NAMESPACE/NAME`), by its name.

    `host` is where a VM is moved to.
    """

    verb: Verb
    target: str = ""
    host: str = ""


@dataclass(frozen=True)
class Step:
    """One step of the story.

    Attributes:
        waits_for: what has not happened if the step never comes, for the error message.
        told: what the records show, or None while they do not.
        acts: what is done to the site once the step is told.
        tone: good, bad or neither: how it may be shown.
        rests: what is wrong is to be seen: the story goes on, and `acts` are done, only when it is told to.
    """

    waits_for: str
    told: Callable[[DemoState], Told | None]
    acts: tuple[Act, ...] = ()
    tone: str = ""
    rests: bool = False


class Story:
    """Follows the records and tells the steps as they come.

    Attributes:
        picture: what has been shown so far. resting: the step after which the story rests; None while it goes on.
    """

    def __init__(self, steps: list[Step], picture: DemoState, act: Callable[[Act], None] = lambda act: None) -> None:
        self.picture, self._act = picture, act
        self.resting: Step | None = None
        self._steps = list(steps)

    @property
    def next(self) -> Step | None:
        """The step that is waited for; None at the end."""
        return self._steps[0] if self._steps else None

    def feed(self, record: Record) -> Iterator[tuple[Step, Told]]:
        """Take in a record; the steps that are shown by now. What a step asks for is done before the next is asked."""
        self.picture.apply(record)
        yield from self._tell()

    def go_on(self) -> Iterator[tuple[Step, Told]]:
        """End the rest; the steps that are shown already."""
        if self.resting is not None:
            rested, self.resting = self.resting, None
            self._do(rested)
            yield from self._tell()

    def append(self, steps: list[Step]) -> Iterator[tuple[Step, Told]]:
        """Another round begins; the steps that are shown already."""
        self.picture.begin_round()
        self._steps += steps
        yield from self._tell()

    def _tell(self) -> Iterator[tuple[Step, Told]]:
        while self.resting is None and self._steps and (told := self._steps[0].told(self.picture)) is not None:
            step = self._steps.pop(0)
            self.resting = step if step.rests else None
            yield step, told
            if not step.rests:
                self._do(step)

    def _do(self, step: Step) -> None:
        for act in step.acts:
            self._act(act)


# ----------------------------------------------------------------------------------------------------------- the steps
def beginning(vm: str, host: str, label: str) -> list[Step]:
    """What the pipeline does with a site that it sees for the first time.

    `label` is the key of the label by which nodes name their host; `vm` and `host` are those of the first round.
    """
    return [
        Step("the mapping of nodes to ESXi hosts", mapping_learned),
        Step("the host label on every node", lambda picture: labels_written(picture, label)),
        Step("a node for every pod that waits for one", pods_bound),
        Step(
            f"a DRS rule that keeps {vm} away from the VMs on {host}", lambda picture: rules_written(picture, vm, host)
        ),
    ]


def moved_by_hand(vm: str, host: str) -> list[Step]:
    """The round of one VM that an operator moves onto a host where a replica of its pods runs, and DRS moves away."""
    return [
        Step("the operator", lambda picture: _operator_moves(vm, host), (Act(Verb.HOLD_DRS), Act(Verb.MOVE, vm, host))),
        _opens(lambda picture: finding_opened(picture, vm)),
        Step(f"DRS's move of {vm} away from {host}", lambda picture: drs_moved(picture, vm)),
        Step("the end of the finding", lambda picture: finding_resolved(picture, vm), tone="good"),
    ]


def host_fails(host: str, home: Mapping[str, str]) -> list[Step]:
    """The round of a host that dies: HA checks no rule, and starts a VM beside a replica of what is on it.

    `home` is the host of every VM at the beginning, by names.
    """
    vms = sorted(vm for vm, at in home.items() if at == host)
    return [
        Step("fate", lambda picture: _host_dies(host, vms), (Act(Verb.HOLD_DRS), Act(Verb.FAIL, host)), tone="bad"),
        _opens(lambda picture: finding_opened(picture, *vms)),
        Step("DRS's move of one of them away", lambda picture: drs_moved(picture, *vms)),
        Step(
            "the end of the finding",
            lambda picture: finding_resolved(picture, *vms),
            (Act(Verb.HOLD_DRS), Act(Verb.RESTORE, host)),
            tone="good",
        ),
    ]


def node_drained(node: str) -> list[Step]:
    """The round of a drain after which a pod finds no node, until the node is opened again."""
    return [
        Step("the operator", lambda picture: _operator_drains(node), (Act(Verb.DRAIN, node),)),
        Step(
            f"a pod that finds no node while {node} is drained",
            pod_waits,
            (Act(Verb.UNCORDON, node),),
            tone="bad",
            rests=True,
        ),
        Step("a node for the pod that waits", lambda picture: nothing_waits(picture, node), tone="good"),
    ]


def quorum_at_risk(workload: str, vm: str, host: str) -> list[Step]:
    """The round of a workload (`KIND/NAMESPACE/NAME`) that needs a majority: an operator moves a VM with one of its
    members onto a host where another runs, and DRS moves it away.
    """
    moves = (Act(Verb.HOLD_DRS), Act(Verb.ASK_QUORUM, workload), Act(Verb.MOVE, vm, host))
    return [
        Step("the operator", lambda picture: _quorum_shares(workload, vm, host), moves),
        _opens(lambda picture: quorum_found(picture, vm)),
        Step(f"DRS's move of {vm} away from {host}", lambda picture: drs_moved(picture, vm, severities=(QUORUM,))),
        Step(
            "the end of the finding",
            lambda picture: finding_resolved(picture, vm, severities=(QUORUM,)),
            (Act(Verb.FORGET_QUORUM, workload),),
            tone="good",
        ),
    ]


def back_home(home: Mapping[str, str]) -> list[Step]:
    """Between two rounds: everything is where it was at the beginning. `home` is the host of every VM, by names."""
    return [
        Step(
            "the operator",
            lambda picture: ["The operator puts everything back as it was."],
            (
                Act(Verb.HOLD_DRS),
                Act(Verb.RETURN),
            ),
        ),
        Step(
            "every VM on the host where it was at the beginning",
            lambda picture: all_home(picture, home),
            (Act(Verb.RELEASE_DRS),),
        ),
    ]


def _opens(told: Callable[[DemoState], Told | None]) -> Step:
    return Step("a finding", told, (Act(Verb.RELEASE_DRS),), tone="bad", rests=True)


def mapping_learned(picture: DemoState) -> Told | None:
    """Every node is joined to a VM whose host is known."""
    rows = picture.node_hosts
    if not picture.is_whole(NODES, VMS, HOSTS) or any(
        node not in rows or not rows[node].host for node in picture.nodes
    ):
        return None
    by = sorted({rows[node].joined_by for node in picture.nodes})
    hosts = sorted({host.name for host in picture.hosts.values()} | {row.host_name for row in rows.values()})
    below = {host: sorted(node for node in picture.nodes if rows[node].host_name == host) for host in hosts}
    return [
        f"Learned where {len(picture.nodes)} nodes run, by their {' and '.join(by)}:",
        *(f"{host}: {', '.join(nodes) or 'no node'}" for host, nodes in below.items()),
    ]


def labels_written(picture: DemoState, label: str) -> Told | None:
    """The labeller's sink has answered for every node, and the nodes carry the label."""
    if not picture.labelled(label) or not all(picture.done(LABEL, f"node/{node}") for node in picture.nodes):
        return None
    return [f"Wrote the ESXi host on {len(picture.nodes)} Node objects, a label that follows each vMotion: {label}."]


def pods_bound(picture: DemoState) -> Told | None:
    """The binder's sink has answered for every pod of ours, and the pods show it."""
    pods = picture.ours()
    if not pods or not all(picture.done(BIND, f"pod/{pod}") and picture.host_of(pod) for pod in pods):
        return None
    return [
        f"Bound {len(pods)} pods that waited for a node:",
        *(f"{pod} to {picture.pods[pod].spec.node_name} on {picture.host_of(pod)}" for pod in pods),
    ]


def rules_written(picture: DemoState, vm: str, host: str) -> Told | None:
    """The DRS sink has written rules of ours, and vCenter has one that keeps the VM away from those on the host."""
    rules = [rule for rule in picture.rules.values() if rule.name.startswith(f"{OWN_RULES}-{picture.site}-")]
    names = {ref: each.name for ref, each in picture.vms.items()}
    on_host = {ref for ref, each in picture.vms.items() if _host_name(picture, each) == host}
    needed = any(
        rule.enabled and on_host & set(rule.vms) and vm in {names.get(ref) for ref in rule.vms} for rule in rules
    )
    if not needed or not all(picture.done(DRS_RULE, f"{DRS_RULE}/{rule.cluster}/{rule.name}") for rule in rules):
        return None
    return [
        f"Wrote {_count(len(rules), 'DRS rule')} into vCenter, so that it keeps these VMs on different hosts:",
        *(
            f"{', '.join(names.get(ref, ref) for ref in rule.vms)} ({rule.name})"
            for rule in sorted(rules, key=lambda rule: rule.name)
        ),
    ]


def _operator_moves(vm: str, host: str) -> Told:
    return [f"An operator moves {vm} to {host}, a host chosen by hand: vCenter checks no DRS rule then."]


def _operator_drains(node: str) -> Told:
    return [f"An operator drains {node}: its pods are evicted, one at a time, as their budgets allow."]


def _quorum_shares(workload: str, vm: str, host: str) -> Told:
    kind, _, name = workload.partition("/")
    return [
        f"The owner of {kind} {name} says, by the annotation {QUORUM_ANNOTATION}, that a majority of its replicas must "
        f"stay. An operator moves {vm} to {host} by hand, where another of them runs."
    ]


def _host_dies(host: str, vms: list[str]) -> Told:
    return [
        f"{host} fails, and {' and '.join(vms)} with it. In 15 s HA restarts them where there is room: HA checks no "
        "rule."
    ]


def finding_opened(picture: DemoState, *vms: str) -> Told | None:
    """A grave finding about a pod on one of these nodes and one elsewhere that share a host."""
    event = _finding(picture, *vms)
    if event is None or event.domain is None:
        return None
    host = event.domain.value
    where = (f"{pod} on {_node(picture, pod)} on {host}" for pod in pods_named(event))
    return [f"A finding opens ({event.severity}): pods that must be apart share {host}:", *where, event.message]


def quorum_found(picture: DemoState, *vms: str) -> Told | None:
    """A finding that one host holds the majority of a quorum, one member of it on one of these nodes."""
    event = _finding(picture, *vms, severities=(QUORUM,))
    if event is None or event.domain is None:
        return None
    host = event.domain.value
    where = (f"{pod} on {_node(picture, pod)} on {host}" for pod in pods_named(event))
    return [f"A finding opens ({event.severity}): the loss of {host} would take the majority:", *where, event.message]


def drs_moved(picture: DemoState, *vms: str, severities: Collection[str] = GRAVE) -> Told | None:
    """One of the nodes of the finding has left its host again: which one, DRS chooses."""
    event = _finding(picture, *vms, severities=severities)
    if event is None or event.domain is None:
        return None
    nodes = {_node(picture, pod) for pod in pods_named(event)}
    for journey in picture.recent_journeys():
        if journey.node in nodes and journey.origin == event.domain.value:
            return [f"DRS keeps the rule: it moves {journey.node} from {journey.origin} to {journey.destination}."]
    return None


def finding_resolved(picture: DemoState, *vms: str, severities: Collection[str] = GRAVE) -> Told | None:
    """The finding of before is resolved."""
    opened = _finding(picture, *vms, severities=severities)
    if opened is None or opened.domain is None:
        return None
    for event in picture.recent():
        if event.id == opened.id and event.state == "resolved":
            where = (f"{pod} on {_node(picture, pod)} on {picture.host_of(pod)}" for pod in pods_named(event))
            return [f"The finding is resolved: its pods do not share {opened.domain.value} any more:", *where]
    return None


def pod_waits(picture: DemoState) -> Told | None:
    """A pod of ours was tried, and no node takes it."""
    waiting = [pod for pod in picture.ours() if not picture.pods[pod].spec.node_name and picture.refused.get(pod)]
    if not waiting:
        return None
    why = (f"{count} × {reason}" for pod in waiting for reason, count in sorted(picture.refused[pod].items()))
    return [f"No node takes what was evicted: {', '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'}:", *why]


def nothing_waits(picture: DemoState, node: str) -> Told | None:
    """Every pod of ours has a node again."""
    ours = picture.ours()
    if not ours or not all(picture.host_of(pod) for pod in ours):
        return None
    here = [pod for pod in ours if picture.pods[pod].spec.node_name == node]
    return [f"{node} takes pods again: nothing waits any more.", *(f"{pod} to {node}" for pod in here)]


def all_home(picture: DemoState, home: Mapping[str, str]) -> Told | None:
    """Every VM is where it was, every node ready, and no grave finding open."""
    names = {each.name: _host_name(picture, each) for each in picture.vms.values()}
    if any(names.get(vm) != host for vm, host in home.items()):
        return None
    if any(event.severity in GRAVE for event in picture.open()):
        return None
    return ["Every VM is where it was. The next failure comes in a moment."]


def _finding(picture: DemoState, *nodes: str, severities: Collection[str] = GRAVE) -> FindingEvent | None:
    """The first finding of this round that opened about a pod on one of these nodes and one elsewhere."""
    for event in picture.recent():
        places = {_node(picture, pod) for pod in pods_named(event)}
        if event.state == "opened" and event.severity in severities and places & set(nodes) and len(places) > 1:
            return event
    return None


def _node(picture: DemoState, pod: str) -> str:
    placed = picture.pods.get(pod)
    return placed.spec.node_name if placed is not None else "no node"


def _host_name(picture: DemoState, vm: Vm) -> str:
    host = picture.hosts.get(vm.host)
    return host.name if host is not None else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
