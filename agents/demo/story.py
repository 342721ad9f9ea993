"""The demo's story as data: steps, each a question to the pipeline's own records and the sentence that answers it.

In: records of the topics, as any consumer reads them. Out: the steps that they show, in order, as sentences. Pure: it
reads no clock, knows no broker and touches no cluster; the command `demo` follows the topics, prints what is told and
does what a step asks of the simulated operator.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from underhost.agents.demo.picture import DemoState
from underhost.schemas.commands import BIND, DRS_RULE, LABEL
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import GRAVE
from underhost.schemas.topics import HOSTS, NODES, VMS
from underhost.schemas.vsphere import Vm
from underhost.streams.ports import Record

OWN_RULES = "underhost"
"""How the names of the DRS rules that the pipeline owns begin."""

Told = list[str]
"""A headline and the lines below it."""


@dataclass(frozen=True)
class Step:
    """One step of the story.

    Attributes:
        waits_for: what has not happened if the step never comes, for the error message.
        told: what the records show, or None while they do not.
        move: the VM and the host that the operator moves it to once the step is told.
        tone: good, bad or neither: how it may be shown.
    """

    waits_for: str
    told: Callable[[DemoState], Told | None]
    move: tuple[str, str] | None = None
    tone: str = ""


class Story:
    """Follows the records and tells the steps as they come.

    Attributes:
        picture: what has been shown so far.
    """

    def __init__(self, steps: list[Step], picture: DemoState) -> None:
        self.picture = picture
        self._steps = list(steps)

    @property
    def next(self) -> Step | None:
        """The step that is waited for; None at the end."""
        return self._steps[0] if self._steps else None

    def feed(self, record: Record) -> Iterator[tuple[Step, Told]]:
        """Take in a record; the steps that are shown by now. What a step asks for is done before the next is asked."""
        self.picture.apply(record)
        while self._steps and (told := self._steps[0].told(self.picture)) is not None:
            yield self._steps.pop(0), told


# ----------------------------------------------------------------------------------------------------------- the steps
def move_and_mend(vm: str, host: str, label: str) -> list[Step]:
    """The story of one VM that an operator moves onto a host where a replica of its pods runs, and DRS moves away.

    `label` is the key of the label by which nodes name their host.
    """
    return [
        Step("the mapping of nodes to ESXi hosts", mapping_learned),
        Step("the host label on every node", lambda picture: labels_written(picture, label)),
        Step("a node for every pod that waits for one", pods_bound),
        Step(
            f"a DRS rule that keeps {vm} away from the VMs on {host}", lambda picture: rules_written(picture, vm, host)
        ),
        Step("the operator", lambda picture: _operator_moves(vm, host), (vm, host)),
        Step("a finding", lambda picture: finding_opened(picture, vm, host), tone="bad"),
        Step(f"DRS's move of {vm} away from {host}", lambda picture: drs_moved(picture, vm, host)),
        Step("the end of the finding", lambda picture: finding_resolved(picture, vm, host), tone="good"),
    ]


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


def finding_opened(picture: DemoState, vm: str, host: str) -> Told | None:
    """A grave finding about a pod on the moved node and another one on its new host."""
    event = _finding(picture, vm)
    if event is None:
        return None
    where = (f"{pod} on {_node(picture, pod)} on {host}" for pod in _pods(event))
    return [f"A finding opens ({event.severity}): pods that must be apart share {host}:", *where, event.message]


def drs_moved(picture: DemoState, vm: str, host: str) -> Told | None:
    """One of the nodes of the finding has left the host again: which one, DRS chooses."""
    event = _finding(picture, vm)
    nodes = {_node(picture, pod) for pod in _pods(event)} if event is not None else set()
    for journey in picture.journeys:
        if journey.node in nodes and journey.origin == host:
            return [f"DRS keeps the rule: it moves {journey.node} from {host} to {journey.destination}."]
    return None


def finding_resolved(picture: DemoState, vm: str, host: str) -> Told | None:
    """The finding of before is resolved."""
    opened = _finding(picture, vm)
    for event in picture.events if opened is not None else ():
        if opened is not None and event.id == opened.id and event.state == "resolved":
            where = (f"{pod} on {_node(picture, pod)} on {picture.host_of(pod)}" for pod in _pods(event))
            return [f"The finding is resolved: its pods do not share {host} any more:", *where]
    return None


def _finding(picture: DemoState, node: str) -> FindingEvent | None:
    """The first grave finding that opened about a pod on this node and one elsewhere."""
    for event in picture.events:
        nodes = {_node(picture, pod) for pod in _pods(event)}
        if event.state == "opened" and event.severity in GRAVE and node in nodes and len(nodes) > 1:
            return event
    return None


def _pods(event: FindingEvent) -> list[str]:
    return [pod for pod in (event.pod, *event.peers) if pod]


def _node(picture: DemoState, pod: str) -> str:
    placed = picture.pods.get(pod)
    return placed.spec.node_name if placed is not None else "no node"


def _host_name(picture: DemoState, vm: Vm) -> str:
    host = picture.hosts.get(vm.host)
    return host.name if host is not None else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def happened(picture: DemoState, events: int) -> Iterator[str]:
    """What happened to findings since that many events were told: for the time after the story."""
    for event in picture.events[events:]:
        yield f"A finding is {event.state} ({event.severity}): {event.message}"


def status(picture: DemoState) -> str:
    """The site in one line."""
    open_ = len(picture.open())
    return (
        f"{_count(len(picture.pods), 'pod')} on {_count(len(picture.nodes), 'node')} on "
        f"{_count(len(picture.hosts), 'host')}; {_count(open_, 'finding') if open_ else 'no finding'} open."
    )
