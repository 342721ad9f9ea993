"""What becomes of our pods, told where people look: why one waits, why its binding failed, where one was placed.

In: the decisions of one site's evaluations, and what became of bindings. Out: `event` actions. The words are
kube-scheduler's, but for preemption, which underhost neither does nor claims to do. A pod that is placed at once gets
no condition from us: the API server sets it with the binding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from underhost.agents.schedule.loop import NO_NODES
from underhost.agents.sinks.events import sink as events
from underhost.agents.sinks.events.sink import PodCondition, Regarding, Told
from underhost.agents.sinks.orders import FAILED, FAILURES
from underhost.agents.sinks.ports import Decider, PendingPods
from underhost.agents.sinks.turns import in_turn
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import BIND, EVENT
from underhost.schemas.records import Action, Outcome

AGAIN = 300.0
"""Seconds after which a pod that still waits is told of again: the API server forgets Events after an hour."""
OPEN = 50
"""Commands that may be unanswered: what a person reads must not fill the topic."""
LOST = 60.0
"""Seconds after which a command without an answer is not waited for any more."""
SOON = 1.0
"""Seconds after which what had to wait for its turn is ordered."""
UNSCHEDULABLE = "Unschedulable"
PREEMPTION = "preemption: underhost preempts no pods."


Obstacles = Callable[[Snapshot, Sequence[str]], Mapping[str, str]]
"""What stands in the way of these pods, as far as it can be said: a sentence by pod (`in_the_way.py`)."""


@dataclass
class _Said:
    """What was said of a pod that waits, and when it is said again."""

    uid: str
    text: str
    at: float
    again: float


class WaitingDecider(Decider):
    """`placements` are of the same site, and are asked after each evaluation; `in_the_way` says more of some pods.

    Attributes:
        due: when there is something to say though nothing has changed, monotonic seconds.
    """

    kind = EVENT
    hears = (EVENT, BIND)

    def __init__(self, placements: PendingPods, in_the_way: Obstacles) -> None:
        self._placements, self._in_the_way = placements, in_the_way
        self._said: dict[str, _Said] = {}
        self._rejected: dict[str, tuple[str, str]] = {}
        """Uid and reason of pods whose binding came to nothing, and that wait for another try."""
        self._open: dict[str, float] = {}

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """What is to be told, pods that wait first; no more than may be unanswered at once."""
        self._open = {id_: until for id_, until in self._open.items() if now < until}
        waiting = dict(self._waiting(snapshot))
        for pod in [pod for pod in self._said if pod not in waiting]:
            del self._said[pod]
        actions: list[Action] = []
        # Who was told of the longest ago comes first: reasons that change all the time starve nobody's.
        late = sorted(
            (self._at(pod), pod) for pod, (uid, _, text) in waiting.items() if self._is_news(pod, uid, text, now)
        )
        news = in_turn(late, lambda one: one[1].partition("/")[0])
        room = max(0, OPEN - len(self._open))
        chosen = [pod for _, pod in news[:room]]
        more = self._in_the_way(snapshot, [pod for pod in chosen if waiting[pod][1] == UNSCHEDULABLE]) if chosen else {}
        for pod in chosen:
            uid, reason, text = waiting[pod]
            self._said[pod] = _Said(uid, text, now, now + AGAIN)
            note = " ".join(filter(None, (text, more.get(pod))))
            actions.append(self._order(_failed(pod, uid, reason, note), f"pod {pod} waits", snapshot, now))
        seated = self._placements.seated
        while seated and len(self._open) < OPEN:
            row = seated.popleft()
            if row.pod in snapshot.pods and snapshot.pods[row.pod].metadata.uid == row.uid and row.node is not None:
                told = _scheduled(row.pod, row.uid, row.node)
                actions.append(self._order(told, f"pod {row.pod} was placed", snapshot, now))
        again = min((said.again for said in self._said.values()), default=None)
        self.due = now + SOON if len(news) > room or seated else again
        return actions

    def _at(self, pod: str) -> float:
        return self._said[pod].at if pod in self._said else float("-inf")

    def _is_news(self, pod: str, uid: str, text: str, now: float) -> bool:
        said = self._said.get(pod)
        return said is None or (said.uid, said.text) != (uid, text) or now >= said.again

    def _order(self, told: Told, because: str, snapshot: Snapshot, now: float) -> Action:
        action = events.event(told, because, snapshot.offsets)
        self._open[action.id] = now + LOST
        return action

    def _waiting(self, snapshot: Snapshot) -> Iterator[tuple[str, tuple[str, str, str]]]:
        """(uid, reason of the condition, text) of each pod of ours that waits, by pod; gated ones say so themselves."""
        for pod, row in sorted(self._placements.waiting.items()):
            error = _error(row.failed)
            if error or NO_NODES in row.failed or any(row.failed.values()):
                reason = "SchedulerError" if error else UNSCHEDULABLE
                yield pod, (row.uid, reason, message(row.failed, len(snapshot.nodes)))
        for pod, (uid, why) in sorted(self._rejected.items()):
            live = snapshot.pods.get(pod)
            pending = live is not None and not live.spec.node_name and live.metadata.uid == uid
            if pending and pod not in self._placements.waiting:
                yield pod, (uid, "SchedulerError", f"binding rejected: {why}")
            else:
                del self._rejected[pod]

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of a command to tell something, or of a binding."""
        if outcome.kind == EVENT:
            self._open.pop(outcome.id, None)
            if outcome.result == FAILED:
                pod = "/".join(outcome.target.split("/")[2:4])
                if pod in self._said:
                    self._said[pod].again = min(self._said[pod].again, now + LOST)
            return
        pod = outcome.target.removeprefix("pod/")
        if outcome.result in FAILURES:
            uid = self._placements.uid_of(pod)
            if uid is not None:
                self._rejected[pod] = uid, outcome.reason
        else:
            self._rejected.pop(pod, None)


def message(failed: Mapping[str, int], nodes: int) -> str:
    """Why a pod waits, as kube-scheduler says it: nodes by reason, sorted as text."""
    if NO_NODES in failed:
        return NO_NODES.removeprefix(_ERROR)
    error = _error(failed)
    if error:
        return error
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in failed.items()))
    return f"0/{nodes} nodes are available: {reasons}. {PREEMPTION}"


_ERROR = "error: "


def _error(failed: Mapping[str, int]) -> str:
    """What went wrong where the pod could not be judged, "" where it could."""
    found = [reason for reason in failed if reason.startswith(_ERROR) and reason != NO_NODES]
    return found[0].removeprefix(_ERROR) if found else ""


def _regarding(pod: str, uid: str) -> Regarding:
    namespace, _, name = pod.partition("/")
    return Regarding("Pod", name, namespace, uid)


def _failed(pod: str, uid: str, reason: str, text: str) -> Told:
    condition = PodCondition(events.CONDITION, "False", reason)
    return Told(_regarding(pod, uid), "Warning", events.WAITS, text, "Scheduling", condition)


def _scheduled(pod: str, uid: str, node: str) -> Told:
    return Told(_regarding(pod, uid), "Normal", events.IS_PLACED, events.placed_note(pod, node), "Binding")
