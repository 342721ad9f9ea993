"""What people are told of findings and of what was done: records of the topics as `event` commands.

In: records of `violations` and `outcomes`, and what pods, nodes and commands they are about. Out: commands for the sink
in `sink.py`. Pure but for the members of open findings, which it remembers. A command is the same whenever its record
comes again: its id is made of what it says and of the record that it says it of. What may be said to whom: `words.py`.

One reason for each severity: an object with several findings of one severity has one Event that counts them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from underhost.agents.sinks.events.sink import Regarding, Told, Type, event
from underhost.agents.sinks.events.words import FindingWords, of_evicted, of_eviction
from underhost.agents.sinks.orders import APPLIED, FAILED, REFUSED
from underhost.agents.sinks.readers import namespace_of, told_pods
from underhost.schemas import commands
from underhost.schemas.records import OPENED, RESOLVED, Action, FindingEvent, Outcome
from underhost.schemas.severities import BY_NAME

MOST = 100
"""Objects that are told of one finding; what is wrong with hundreds is read on one of them. So many that have left an
open finding are remembered as well: they are told of its end."""
ENDED = "FindingResolved"
_RESULTS = {APPLIED: "", REFUSED: "Refused", FAILED: "Failed"}
"""What is told of at all; a dry run and what was so already change nothing."""
TAINT = "removed taint "

_NORMAL: Type = "Normal"
_WARNING: Type = "Warning"

Object = tuple[str, str]
"""Kind, and `namespace/name` or name."""

NodesOf = Callable[[Collection[str]], list[str]]
"""The nodes that these VMs are."""


class EventMessages:
    """What to tell of one site. `node_of` gives the node of a pod, "" where it has none or is gone."""

    def __init__(self, node_of: Callable[[str], str], open_: Iterable[FindingEvent] = ()) -> None:
        self._node_of = node_of
        self._members: dict[str, tuple[str, dict[Object, None]]] = {}
        self._vms: dict[str, list[str]] = {}
        for row in open_:
            if row.state != RESOLVED:
                self._members[row.id] = row.severity, dict.fromkeys(self._objects(row))

    def _objects(self, row: FindingEvent) -> list[Object]:
        pods = told_pods(row)
        if namespace_of(row):  # a node is no namespace's
            return [("Pod", pod) for pod in pods]
        nodes = dict.fromkeys(filter(None, [row.node, *map(self._node_of, pods)]))
        return [*(("Pod", pod) for pod in pods), *(("Node", node) for node in nodes)]

    def of_finding(self, row: FindingEvent) -> list[Action]:
        """Each pod and node of a finding that has opened is told of it, whoever joins it later, and all of its end."""
        severity, before = self._members.pop(row.id, ("", {}))
        objects = self._objects(row)
        if row.state == RESOLVED:
            wanted = list(dict.fromkeys([*before, *objects]))
            type_, reason = _NORMAL, ENDED
        else:
            again = row.state == OPENED or severity != row.severity
            wanted = objects if again else [one for one in objects if one not in before]
            known = BY_NAME.get(row.severity)
            type_, reason = (known.event, known.reason) if known is not None else (_WARNING, "Finding")
            self._members[row.id] = row.severity, _with(before, objects)
        words = FindingWords(row, self._node_of)
        cause, because = f"{row.id} {row.state} {row.updated_at}", f"finding {row.id} is {row.state}"
        return [_tell(one, type_, reason, words.to(_pod(one)), "Checking", cause, because) for one in wanted[:MOST]]

    def of_outcome(self, row: Outcome, action: Action | None, nodes_of: NodesOf) -> list[Action]:
        """What became of a command is told to the pods and nodes that it touches.

        `action` is the command, where it is known; `nodes_of` names the nodes that VMs are.
        """
        if row.result not in _RESULTS or row.kind not in TOLD:
            return []
        told = TOLD[row.kind]
        type_ = _NORMAL if row.result == APPLIED else _WARNING
        cause, because = f"{row.id} {row.result}", f"{row.kind} {row.target} is {row.result}"
        touched = told.touched(self, row, action, nodes_of)
        return [
            _tell(one, type_, (what or told.reason) + _RESULTS[row.result], note, told.doing, cause, because)
            for one, what, note in islice(touched, MOST)
        ]

    # ------------------------------------------------------------- (object, its own reason or "", note) of one outcome
    def _label(self, row: Outcome, action: Action | None, nodes_of: NodesOf) -> Iterator[tuple[Object, str, str]]:
        node = ("Node", row.target.partition("/")[2])
        parts = row.reason.split("; ")
        taint = [part for part in parts if part.startswith(TAINT)]
        rest = [part for part in parts if part not in taint]
        yield from ((node, "", "; ".join(rest)) for _ in rest[:1])
        yield from ((node, "StartupTaintRemoved", part) for part in taint)

    def _pod_label(self, row: Outcome, action: Action | None, nodes_of: NodesOf) -> Iterator[tuple[Object, str, str]]:
        if row.result != APPLIED:  # what follows its node by the hundred is no news
            yield ("Pod", row.target.partition("/")[2]), "", row.reason

    def _eviction(self, row: Outcome, action: Action | None, nodes_of: NodesOf) -> Iterator[tuple[Object, str, str]]:
        pod = row.target.partition("/")[2]
        yield ("Pod", pod), "", of_eviction(row, action)
        node = action.desired.get("node") if action is not None else None
        if isinstance(node, str) and row.result == APPLIED:
            yield ("Node", node), "", of_evicted(pod, row)

    def _drs_rule(self, row: Outcome, action: Action | None, nodes_of: NodesOf) -> Iterator[tuple[Object, str, str]]:
        listed = action.desired.get("vms") if action is not None else None
        vms = [vm for vm in listed if isinstance(vm, str)] if isinstance(listed, list) else []
        # A rule that is removed is told to those that it held, where it is known whom it held.
        held = vms or self._vms.pop(row.target, [])
        if vms and row.result == APPLIED:
            self._vms[row.target] = vms
        for node in nodes_of(held):
            yield ("Node", node), "", f"{row.target.partition('/')[2]}: {row.reason}"

    def _move(self, row: Outcome, action: Action | None, nodes_of: NodesOf) -> Iterator[tuple[Object, str, str]]:
        for node in nodes_of([row.target.partition("/")[2]]):
            yield ("Node", node), "", row.reason


@dataclass(frozen=True)
class ToldOutcome:
    """How people are told of one kind of commands.

    Attributes:
        reason: of the Event. doing: what was done, in the API's sense.
        touched: the objects that are told of it, each with its own reason ("": `reason`) and note.
        needs_command: the outcome alone does not say whom to tell.
    """

    reason: str
    doing: str
    touched: Callable[[EventMessages, Outcome, Action | None, NodesOf], Iterator[tuple[Object, str, str]]]
    needs_command: bool = False


TOLD: Mapping[str, ToldOutcome] = {
    commands.LABEL: ToldOutcome("HostLabel", "Labeling", EventMessages._label),
    commands.POD_LABEL: ToldOutcome("HostLabel", "Labeling", EventMessages._pod_label),
    commands.EVICT: ToldOutcome("RepairEviction", "Evicting", EventMessages._eviction, needs_command=True),
    commands.DRS_RULE: ToldOutcome("DrsRule", "KeepingApart", EventMessages._drs_rule, needs_command=True),
    commands.MOVE: ToldOutcome("RepairMove", "Moving", EventMessages._move),
}
"""By kind of command. Of bindings and pods that wait `waiting.py` tells."""


def _with(before: dict[Object, None], objects: Iterable[Object]) -> dict[Object, None]:
    """Those of before and these, in that order: of those that have left the first ones."""
    now = dict.fromkeys(objects)
    left = list(islice((one for one in before if one not in now), MOST))
    if len(left) == len(before):
        return {**before, **now}
    gone = set(left)
    return {**{one: None for one in before if one in now or one in gone}, **now}


def _pod(one: Object) -> str:
    """Its `namespace/name`, "" where it is a node."""
    return one[1] if one[0] == "Pod" else ""


def _tell(one: Object, type_: Type, reason: str, note: str, doing: str, cause: str, because: str) -> Action:
    kind, name = one
    namespace, _, name = name.rpartition("/")
    told = Told(Regarding(kind, name, namespace), type_, reason, note, doing, cause=cause)
    return event(told, because, {})
