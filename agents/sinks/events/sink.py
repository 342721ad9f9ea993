"""Events: what a person reads in `kubectl describe` and `kubectl get events`, and the PodScheduled condition of a pod.

In: `event` actions, made by `event`. Out: events.k8s.io/v1 Events of the controller `underhost`, one for each (object,
reason), whose series counts on; a condition where the command has one; outcomes.

An Event is told as the series it belongs to: the name is made from the object and the reason, so that telling it again
changes the object that is there. The ids of the last commands are in an annotation: a command that is delivered again,
a restart in between or not, changes nothing. What may be written in a second is capped; no binding waits for it.

What is told of findings and outcomes is made in this worker, from their records. A command that this run has not
decided itself is believed only as far as the pod bears it out: that it is ours to place, and waits, or runs where it is
said to.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from underhost.agents.sinks.bindings import OUR_SCHEDULER
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, NOOP, REFUSED, answer, desired_of, order
from underhost.agents.sinks.ports import EventWriter, Sink
from underhost.agents.sinks.rates import MINUTE, Rate
from underhost.schemas.commands import EVENT
from underhost.schemas.errors import Conflict, Gone
from underhost.schemas.records import Action, Outcome
from underhost.schemas.shares import Capped, Shares

SOURCE = "underhost"
ANNOTATION = "underhost/commands"
RECENT = 8
"""Ids of commands that an Event remembers: several records may be told in one series, and all of them come again."""
LONGEST = 1000
"""Characters of a note: the API takes 1024 bytes in its newer form, and people read the beginning."""
LONGEST_NAME = 253
PER_SECOND, BURST = 20.0, 50
"""Commands that are carried out in a second, and at once after a quiet time."""
REMEMBERED = 5_000
TRIES = 3

WAITS, IS_PLACED = "FailedScheduling", "Scheduled"
"""The reasons that are told by command: what becomes of pods of ours."""
CONDITION = "PodScheduled"

Type = Literal["Normal", "Warning"]


class Regarding(msgspec.Struct, frozen=True, rename="camel"):
    """The object that an Event is about; without a namespace it is a cluster's."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


class PodCondition(msgspec.Struct, frozen=True):
    """A condition of the pod that the Event is about; its message is the note."""

    type: str
    status: str
    reason: str


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an `event` command says. `action` is what was done or tried, in the API's sense: `Scheduling`.

    `cause` names the record that it tells of, where that is none of a snapshot's. Without a uid the sink looks it up.
    """

    regarding: Regarding
    type: Type
    reason: str
    note: str
    action: str
    condition: PodCondition | None = None
    cause: str = ""


def event(told: Told, because: str, snapshot: Mapping[str, int]) -> Action:
    """The command to tell this. Of one object and reason the newest command counts, so they share a target."""
    about = told.regarding
    target = f"{EVENT}/{about.kind.lower()}/{about.namespace}/{about.name}/{told.reason}"
    return order(EVENT, target, msgspec.to_builtins(told), because, snapshot)


def placed_note(pod: str, node: str) -> str:
    """What is told of a pod of ours that was bound, in kube-scheduler's words."""
    return f"Successfully assigned {pod} to {node}"


class _Series(NamedTuple):
    """What is known of an Event that is there: how often it was told, and by which commands the last times."""

    times: int
    commands: tuple[str, ...]

    def then(self, command: str) -> "_Series":
        """Told once more."""
        return _Series(self.times + 1, (*self.commands, command)[-RECENT:])


class EventSink(Sink):
    """Tells, of each namespace so many a minute (`share`). `enabled` false is a dry run. `now` is seconds since 1970.

    `binds`: pods are bound here, so that their condition is ours to set; else no pod's status is touched.
    """

    kind = EVENT

    def __init__(
        self,
        writer: EventWriter,
        site: str,
        *,
        enabled: bool,
        binds: bool,
        share: int = Shares().events,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer, self._site, self._enabled, self._now = writer, site, enabled, now
        self._binds = binds
        self._pace = _Pace(sleep, monotonic)
        self._share, self._monotonic = share, monotonic
        self._told: defaultdict[str, Rate] = defaultdict(lambda: Rate(share, MINUTE))
        self._known: OrderedDict[tuple[str, str], _Series] = OrderedDict()

    async def apply(self, action: Action) -> Outcome:
        """Set the condition if it differs, tell the Event, and say what happened."""
        return await answer(action, self._carry_out(action))

    async def told(self, action: Action) -> Outcome:
        """The same for a command that came over a topic: it is told where the pod itself bears it out."""
        return await answer(action, self._carry_out_if_so(action))

    async def _carry_out_if_so(self, action: Action) -> tuple[str, str]:
        told = desired_of(action, Told, "an event command")
        if self._enabled and (why := await self._doubt(told)) is not None:
            return REFUSED, why
        return await self._carry_out(action)

    async def _doubt(self, told: Told) -> str | None:
        """What of the live pod says something else than the command; None where all agrees."""
        about, pod = told.regarding, f"{told.regarding.namespace}/{told.regarding.name}"
        if about.kind != "Pod" or told.reason not in (WAITS, IS_PLACED):
            return f"nobody is told {told.reason} of a {about.kind} by command"
        if told.condition is not None and (told.reason, told.condition.type) != (WAITS, CONDITION):
            return f"condition {told.condition.type} is not ours to set"
        live = await self._writer.pod_condition(about.namespace, about.name, CONDITION)
        if live.uid != about.uid:
            return f"pod {pod} is another one now (uid {live.uid})"
        if live.scheduler != OUR_SCHEDULER:
            return f"pod {pod} is scheduler {live.scheduler}'s to place"
        if told.reason == IS_PLACED and told.note != placed_note(pod, live.node):
            return f"pod {pod} is on {live.node or 'no node'}"
        return None

    async def _carry_out(self, action: Action) -> tuple[str, str]:
        told = desired_of(action, Told, "an event command")
        if not self._enabled:
            return DRY_RUN, f"would tell {told.reason}: {told.note[:LONGEST]}"
        if not self._has_share(told.regarding.namespace):
            said = f"no more than {self._share} Events of its objects are told in a minute"
            return REFUSED, str(Capped("events", told.regarding.namespace, "", said))
        await self._pace.wait()
        return await self._tell(await self._identified(told), action.id)

    def _has_share(self, namespace: str) -> bool:
        """Whether one more may be told of the namespace; what is of no namespace always may."""
        if not namespace:
            return True
        now, told = self._monotonic(), self._told[namespace]
        if told.room_at(now) > now:
            return False
        told.add(now)
        return True

    async def _identified(self, told: Told) -> Told:
        """With the object's uid, by which `kubectl describe` finds its Events. Raises Gone."""
        about = told.regarding
        if about.uid:
            return told
        uid = await self._writer.uid(about.kind, about.namespace, about.name)
        return msgspec.structs.replace(told, regarding=msgspec.structs.replace(about, uid=uid))

    async def _tell(self, told: Told, command: str) -> tuple[str, str]:
        if told.condition is not None and self._binds:
            obsolete = await self._condition(told, told.condition)
            if obsolete is not None:
                return obsolete
        about = told.regarding
        namespace, name = about.namespace or "default", _name(told)
        # Forgotten until the write is answered: one whose answer is lost may have taken effect, so the server is asked.
        series = self._known.pop((namespace, name), None)
        if series is None:
            try:
                await self._writer.create_event(namespace, self._event(told, namespace, name, command))
            except Conflict:  # one of an earlier run
                times, commands = await self._writer.event(namespace, name, ANNOTATION)
                series = _Series(times, tuple(commands.split()))
            else:
                self._remember(namespace, name, _Series(1, (command,)))
                return APPLIED, f"told {told.reason}"
        if command not in series.commands:
            then = series.then(command)
            try:
                await self._writer.change_event(namespace, name, self._again(told, then))
            except Gone:  # the server forgets an Event after an hour
                await self._writer.create_event(namespace, self._event(told, namespace, name, command))
                then = _Series(1, (command,))
            self._remember(namespace, name, then)
            counted = f", {then.times} times by now" if then.times > 1 else ""
            return APPLIED, f"told {told.reason}{counted}"
        self._remember(namespace, name, series)
        return NOOP, f"told {told.reason} already"

    async def _condition(self, told: Told, wanted: PodCondition) -> tuple[str, str] | None:
        """Set the condition of a pod that waits; why there is nothing to tell, if it waits no more."""
        about = told.regarding
        for attempt in range(1, TRIES + 1):
            pod = await self._writer.pod_condition(about.namespace, about.name, wanted.type)
            if pod.uid != about.uid:
                return REFUSED, f"pod {about.namespace}/{about.name} is another one now (uid {pod.uid})"
            if pod.node:
                return NOOP, f"bound to {pod.node} by now"
            now = {
                "type": wanted.type,
                "status": wanted.status,
                "reason": wanted.reason,
                "message": told.note[:LONGEST],
            }
            since = pod.condition.get("lastTransitionTime", self._stamp())
            if pod.condition.get("status") != wanted.status:
                since = self._stamp()
            now["lastTransitionTime"] = since
            if all(pod.condition.get(key) == value for key, value in now.items()):
                return None
            try:
                # Only this very state of the pod: it must never be said of one that has been bound meanwhile.
                await self._writer.set_pod_condition(about.namespace, about.name, pod, now)
            except Conflict:
                if attempt == TRIES:
                    raise
            else:
                return None
        raise AssertionError("unreachable")

    def _event(self, told: Told, namespace: str, name: str, command: str) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace, "annotations": {ANNOTATION: command}},
            "eventTime": self._micro(),
            "regarding": msgspec.to_builtins(told.regarding),
            "type": told.type,
            "reason": told.reason,
            "note": told.note[:LONGEST],
            "action": told.action,
            "reportingController": SOURCE,
            "reportingInstance": f"{SOURCE}-{self._site}",
        }

    def _again(self, told: Told, now: _Series) -> dict[str, Any]:
        """The changes, in core/v1: the newer API lets nobody change the note, and the newest words count."""
        return {
            "metadata": {"annotations": {ANNOTATION: " ".join(now.commands)}},
            "series": {"count": now.times, "lastObservedTime": self._micro()},
            "message": told.note[:LONGEST],
        }

    def _remember(self, namespace: str, name: str, series: _Series) -> None:
        self._known[namespace, name] = series
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _stamp(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now()))

    def _micro(self) -> str:
        return f"{self._stamp()[:-1]}.{int(self._now() % 1 * 1e6):06d}Z"


class _Pace:
    """A bucket of tokens, one a command."""

    def __init__(self, sleep: Callable[[float], Awaitable[object]], monotonic: Callable[[], float]) -> None:
        self._sleep, self._monotonic = sleep, monotonic
        self._next = float("-inf")

    async def wait(self) -> None:
        """Until it is this command's turn."""
        now = self._monotonic()
        turn = self._next = max(self._next + 1 / PER_SECOND, now - (BURST - 1) / PER_SECOND)
        if turn > now:
            await self._sleep(turn - now)


def _name(told: Told) -> str:
    """The Event's name, equal for all that is one series."""
    about = told.regarding
    identity = "\0".join((about.kind, about.namespace, about.name, about.uid, told.type, told.reason))
    digest = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    return f"{about.name[: LONGEST_NAME - len(digest) - 1].rstrip('.-')}.{digest}"
