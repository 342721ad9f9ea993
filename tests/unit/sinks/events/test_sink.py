"""Events: one for each object and reason, whose count goes up; the condition of a pod that waits; never too many."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from underhost.agents.sinks.events.sink import (
    ANNOTATION,
    BURST,
    PER_SECOND,
    EventSink,
    PodCondition,
    Regarding,
    Told,
    event,
)
from underhost.agents.sinks.orders import order
from underhost.schemas.errors import Conflict, Gone, Refused, Unreachable
from underhost.schemas.records import Action
from underhost.schemas.shares import Capped, capped_of
from underhost.streams.ports import PodState

NOON = 1_767_268_800.0
"""2026-01-01T12:00:00Z."""
FULL = "0/3 nodes are available: 3 Insufficient cpu."
WAITS = PodCondition("PodScheduled", "False", "Unschedulable")


@dataclass
class FakeEvents:
    """Implements `ports.EventWriter`: Events by (namespace, name), one pod, and every write that was made.

    `races` are done to the pod, one by one, before its condition is set; `raises` is what every write raises;
    `loses_answer`: the next change of an Event takes effect, and its answer is lost.
    """

    events: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    pod: PodState = field(default_factory=lambda: PodState("u1", "7", "", {}))
    writes: list[str] = field(default_factory=list)
    races: list[PodState] = field(default_factory=list)
    raises: Exception | None = None
    loses_answer: bool = False

    def _write(self, what: str) -> None:
        self.writes.append(what)
        if self.raises is not None:
            raise self.raises

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        """See `ports.EventWriter`."""
        name = event["metadata"]["name"]
        self._write("create event")
        if (namespace, name) in self.events:
            raise Conflict("already exists")
        self.events[namespace, name] = dict(event)

    async def event(self, namespace: str, name: str, annotation: str) -> tuple[int, str]:
        """See `ports.EventWriter`."""
        held = self.events[namespace, name]
        count = held["series"]["count"] if "series" in held else 1
        return count, held["metadata"]["annotations"].get(annotation, "")

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, Any]) -> None:
        """See `ports.EventWriter`."""
        self._write("change event")
        if (namespace, name) not in self.events:
            raise Gone("no such event")
        held = self.events[namespace, name]
        told = {"series": changes["series"], "note": changes["message"]}
        self.events[namespace, name] = {**held, **told, "metadata": {**held["metadata"], **changes["metadata"]}}
        if self.loses_answer:
            self.loses_answer = False
            raise Unreachable("timeout")

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """See `ports.EventWriter`."""
        if name == "gone":
            raise Gone(f"no {kind} {name}")
        return f"{kind}-{name}"

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """See `ports.EventWriter`."""
        return self.pod

    async def set_pod_condition(self, namespace: str, name: str, pod: PodState, condition: Mapping[str, str]) -> None:
        """See `ports.EventWriter`."""
        if self.races:
            self.pod = self.races.pop(0)
        self._write("set condition")
        if self.pod.version != pod.version:
            raise Conflict("the object has been modified")
        self.pod = self.pod._replace(version=f"{self.pod.version}+", condition=dict(condition))

    def only(self) -> dict[str, Any]:
        """The one Event that there is."""
        [(_, found)] = self.events.items()
        return found


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    at: float = 0.0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.at += seconds


@pytest.fixture
def writer() -> FakeEvents:
    return FakeEvents()


def sink_of(
    writer: FakeEvents,
    *,
    enabled: bool = True,
    binds: bool = True,
    clock: Clock | None = None,
    at: float = NOON,
    share: int = 300,
) -> EventSink:
    clock = clock or Clock()
    return EventSink(
        writer,
        "prod",
        enabled=enabled,
        binds=binds,
        share=share,
        now=lambda: at,
        sleep=clock.sleep,
        monotonic=lambda: clock.at,
    )


def tell(
    note: str = FULL, *, reason: str = "FailedScheduling", name: str = "db-0", waits: bool = True, at: int = 1
) -> Action:
    about = Regarding("Pod", name, "shop", "u1")
    told = Told(about, "Warning", reason, note, "Scheduling", WAITS if waits else None)
    return event(told, "", {"pods": at})


async def test_an_event_says_who_says_what_of_which_object(writer: FakeEvents) -> None:
    outcome = await sink_of(writer).apply(tell())
    assert (outcome.kind, outcome.target) == ("event", "event/pod/shop/db-0/FailedScheduling")
    assert (outcome.result, outcome.reason) == ("applied", "told FailedScheduling")
    [((namespace, name), found)] = writer.events.items()
    assert (namespace, name.startswith("db-0.")) == ("shop", True)
    assert found["metadata"].pop("annotations") == {ANNOTATION: outcome.id}
    assert found == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "shop"},
        "eventTime": "2026-01-01T12:00:00.000000Z",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "db-0", "uid": "u1"},
        "type": "Warning",
        "reason": "FailedScheduling",
        "note": FULL,
        "action": "Scheduling",
        "reportingController": "underhost",
        "reportingInstance": "underhost-prod",
    }


async def test_told_again_the_count_goes_up_and_no_other_object_is_made(writer: FakeEvents) -> None:
    sink = sink_of(writer)
    for number, note in enumerate(("2 Insufficient cpu", "1 Insufficient cpu", "1 Insufficient memory")):
        await sink.apply(tell(note, waits=False, at=number))
    found = writer.only()
    assert (found["series"]["count"], found["note"]) == (3, "1 Insufficient memory")
    assert writer.writes == ["create event", "change event", "change event"]


async def test_after_a_restart_the_count_goes_on(writer: FakeEvents) -> None:
    await sink_of(writer).apply(tell(waits=False, at=1))
    outcome = await sink_of(writer, at=NOON + 60).apply(tell(waits=False, at=2))
    assert (outcome.result, outcome.reason) == ("applied", "told FailedScheduling, 2 times by now")
    found = writer.only()
    assert found["eventTime"] == "2026-01-01T12:00:00.000000Z"
    assert found["series"] == {"count": 2, "lastObservedTime": "2026-01-01T12:01:00.000000Z"}


@pytest.mark.parametrize("restarts", [pytest.param(False, id="at once"), pytest.param(True, id="after restarts")])
async def test_a_command_delivered_five_times_writes_once(writer: FakeEvents, restarts: bool) -> None:
    sink, results = sink_of(writer), []
    for _ in range(5):
        results.append((await sink.apply(tell())).result)
        sink = sink_of(writer) if restarts else sink
    assert results == ["applied", "noop", "noop", "noop", "noop"]
    assert ("series" in writer.only(), writer.pod.version) == (False, "7+")
    # A refused create is how a restarted sink learns that the Event is there.
    assert [write for write in writer.writes if write != "create event"] == ["set condition"]


async def test_an_event_that_the_server_has_forgotten_is_made_anew(writer: FakeEvents) -> None:
    sink = sink_of(writer)
    await sink.apply(tell(waits=False, at=1))
    writer.events.clear()
    await sink.apply(tell(waits=False, at=2))
    await sink.apply(tell(waits=False, at=3))
    assert writer.only()["series"]["count"] == 2


async def test_a_command_whose_answer_was_lost_is_not_told_again(writer: FakeEvents) -> None:
    sink = sink_of(writer)
    await sink.apply(tell(waits=False, at=1))
    writer.loses_answer = True
    assert (await sink.apply(tell(waits=False, at=2))).result == "failed"
    assert (await sink.apply(tell(waits=False, at=2))).result == "noop"
    assert writer.only()["series"]["count"] == 2


async def test_what_was_told_after_a_lost_answer_is_counted_with_it(writer: FakeEvents) -> None:
    sink, first, second = sink_of(writer), tell(waits=False, at=2), tell(waits=False, at=3)
    await sink.apply(tell(waits=False, at=1))
    writer.loses_answer = True
    await sink.apply(first)
    await sink.apply(second)
    assert writer.only()["series"]["count"] == 3
    assert (await sink.apply(first)).result == "noop"


@pytest.mark.parametrize("restarts", [pytest.param(False, id="at once"), pytest.param(True, id="after restarts")])
async def test_several_commands_of_one_series_that_come_again_in_turn_are_told_once_each(
    writer: FakeEvents, restarts: bool
) -> None:
    sink, results = sink_of(writer), []
    for _ in range(5):
        for at in (1, 2, 3):
            results.append((await sink.apply(tell(f"finding {at}", waits=False, at=at))).result)
            sink = sink_of(writer) if restarts else sink
    assert results == ["applied"] * 3 + ["noop"] * 12
    assert writer.only()["series"]["count"] == 3


async def test_where_bindings_are_a_dry_run_no_pods_status_is_touched(writer: FakeEvents) -> None:
    outcome = await sink_of(writer, binds=False).apply(tell())
    assert (outcome.result, writer.writes) == ("applied", ["create event"])
    assert (writer.only()["reason"], writer.pod.version) == ("FailedScheduling", "7")


async def test_an_object_whose_uid_the_command_does_not_know_is_looked_up(writer: FakeEvents) -> None:
    told = Told(Regarding("Node", "n1"), "Warning", "HostShared", "two replicas on esx-1", "Checking")
    await sink_of(writer).apply(event(told, "", {}))
    assert writer.only()["regarding"] == {
        "apiVersion": "v1",
        "kind": "Node",
        "name": "n1",
        "namespace": "",
        "uid": "Node-n1",
    }


async def test_of_an_object_that_is_gone_nothing_is_told(writer: FakeEvents) -> None:
    told = Told(Regarding("Pod", "gone", "shop"), "Warning", "HostShared", "two replicas on esx-1", "Checking")
    outcome = await sink_of(writer).apply(event(told, "", {}))
    assert (outcome.result, outcome.reason, writer.writes) == ("refused", "no Pod gone", [])


async def test_reasons_and_objects_have_events_of_their_own(writer: FakeEvents) -> None:
    sink = sink_of(writer)
    for action in (tell(waits=False), tell(waits=False, reason="Scheduled"), tell(waits=False, name="db-1")):
        await sink.apply(action)
    assert sorted((found["regarding"]["name"], found["reason"]) for found in writer.events.values()) == [
        ("db-0", "FailedScheduling"),
        ("db-0", "Scheduled"),
        ("db-1", "FailedScheduling"),
    ]


async def test_an_event_of_a_node_is_in_the_default_namespace(writer: FakeEvents) -> None:
    told = Told(Regarding("Node", "n1", uid="n"), "Warning", "StaleLabel", "names esx-9", "Checking")
    action = event(told, "", {})
    assert (action.target, (await sink_of(writer).apply(action)).result) == ("event/node//n1/StaleLabel", "applied")
    [(namespace, name)] = writer.events
    assert (namespace, name.startswith("n1.")) == ("default", True)


async def test_a_long_note_and_a_long_name_are_cut(writer: FakeEvents) -> None:
    name = "a" * 253
    await sink_of(writer).apply(tell("x" * 5000, name=name, waits=False))
    [(_, made)] = writer.events
    assert (len(made), made.startswith("a" * 200)) == (253, True)
    assert len(writer.only()["note"]) == 1000


# -------------------------------------------------------------------------------------------------- the condition
async def test_a_pod_that_waits_says_so_in_its_condition(writer: FakeEvents) -> None:
    await sink_of(writer).apply(tell())
    assert writer.pod.condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": FULL,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    assert writer.writes == ["set condition", "create event"]


async def test_a_condition_that_is_so_already_is_not_written(writer: FakeEvents) -> None:
    sink = sink_of(writer)
    await sink.apply(tell(at=1))
    await sink.apply(tell(at=2))
    assert writer.writes == ["set condition", "create event", "change event"]


async def test_the_time_of_the_transition_stays_while_the_pod_waits(writer: FakeEvents) -> None:
    await sink_of(writer).apply(tell("first", at=1))
    await sink_of(writer, at=NOON + 60).apply(tell("second", at=2))
    assert (writer.pod.condition["message"], writer.pod.condition["lastTransitionTime"]) == (
        "second",
        "2026-01-01T12:00:00Z",
    )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(PodState("u1", "8", "n1", {}), ("noop", "bound to n1 by now"), id="it is bound"),
        pytest.param(
            PodState("u2", "8", "", {}), ("refused", "pod shop/db-0 is another one now (uid u2)"), id="it is another"
        ),
    ],
)
@pytest.mark.parametrize("when", ["before it is read", "before it is written"])
async def test_a_pod_that_waits_no_more_is_left_alone(
    writer: FakeEvents, pod: PodState, expected: tuple[str, str], when: str
) -> None:
    if when == "before it is read":
        writer.pod = pod
    else:
        writer.races = [pod]
    outcome = await sink_of(writer).apply(tell())
    assert (outcome.result, outcome.reason) == expected
    assert (writer.pod, writer.events) == (pod, {})


async def test_a_pod_that_changes_all_the_time_is_given_up(writer: FakeEvents) -> None:
    writer.races = [PodState("u1", f"r{number}", "", {}) for number in range(9)]
    outcome = await sink_of(writer).apply(tell())
    assert (outcome.result, outcome.reason) == ("refused", "the object has been modified")
    assert writer.writes == ["set condition"] * 3


# ------------------------------------------------------------------------------------------------------- its limits
async def test_a_dry_run_asks_and_writes_nothing(writer: FakeEvents) -> None:
    outcome = await sink_of(writer, enabled=False).apply(tell())
    assert (outcome.result, outcome.reason) == ("dry-run", f"would tell FailedScheduling: {FULL}")
    assert writer.writes == []


async def test_a_burst_is_told_at_once_and_the_rest_at_its_pace(writer: FakeEvents) -> None:
    clock = Clock()
    sink = sink_of(writer, clock=clock)
    for number in range(BURST + 20):
        await sink.apply(tell(name=f"db-{number}", waits=False))
    assert len(clock.slept) == 20
    assert clock.at == pytest.approx(20 / PER_SECOND)


async def test_a_namespace_has_its_share_of_a_minute_and_the_others_theirs(writer: FakeEvents) -> None:
    clock = Clock()
    sink = sink_of(writer, clock=clock, share=2)
    said = [(await sink.apply(tell(name=f"db-{number}", waits=False))) for number in range(3)]
    assert [one.result for one in said] == ["applied", "applied", "refused"]
    assert capped_of(said[2].reason) == Capped(
        "events", "shop", "", "no more than 2 Events of its objects are told in a minute"
    )
    node = event(Told(Regarding("Node", "n1", "", "u"), "Normal", "HostLabel", "said", "Labeling"), "", {})
    assert (await sink.apply(node)).result == "applied"
    clock.at = 60.0
    assert (await sink.apply(tell(name="db-2", waits=False))).result == "applied"


@pytest.mark.parametrize(
    ("error", "result"),
    [
        pytest.param(Refused("no right to create events"), "refused", id="forbidden"),
        pytest.param(Unreachable("no answer"), "failed", id="away"),
    ],
)
async def test_what_the_server_answers_is_an_outcome(writer: FakeEvents, error: Exception, result: str) -> None:
    writer.raises = error
    outcome = await sink_of(writer).apply(tell(waits=False))
    assert (outcome.result, outcome.reason) == (result, str(error))


async def test_a_command_of_the_wrong_shape_is_refused(writer: FakeEvents) -> None:
    outcome = await sink_of(writer).apply(order("event", "event/pod/shop/db-0/X", {"type": "Loud"}, "", {}))
    assert outcome.result == "refused"
    assert outcome.reason.startswith("not an event command: ")


# ----------------------------------------------------------------------------------------- what came over a topic
WAITING, BOUND = PodState("u1", "7", "", {}, "underhost"), PodState("u1", "7", "n1", {}, "underhost")


def said(reason: str, note: str = FULL, *, kind: str = "Pod", condition: PodCondition | None = None) -> Action:
    """A command to tell this of a pod or node."""
    return event(Told(Regarding(kind, "db-0", "shop", "u1"), "Warning", reason, note, "x", condition), "", {})


@pytest.mark.parametrize(
    ("pod", "command", "expected"),
    [
        pytest.param(
            WAITING, said("FailedScheduling", condition=WAITS), ("applied", "told FailedScheduling"), id="waits"
        ),
        pytest.param(
            BOUND,
            said("Scheduled", "Successfully assigned shop/db-0 to n1"),
            ("applied", "told Scheduled"),
            id="it was placed",
        ),
        pytest.param(
            BOUND,
            said("Scheduled", "Successfully assigned shop/db-0 to n2"),
            ("refused", "pod shop/db-0 is on n1"),
            id="it is elsewhere",
        ),
        pytest.param(
            WAITING,
            said("Scheduled", "Successfully assigned shop/db-0 to n1"),
            ("refused", "pod shop/db-0 is on no node"),
            id="it is nowhere",
        ),
        pytest.param(
            PodState("u1", "7", "", {}, "default-scheduler"),
            said("FailedScheduling", condition=WAITS),
            ("refused", "pod shop/db-0 is scheduler default-scheduler's to place"),
            id="a pod of another scheduler",
        ),
        pytest.param(
            PodState("u2", "7", "", {}, "underhost"),
            said("FailedScheduling", condition=WAITS),
            ("refused", "pod shop/db-0 is another one now (uid u2)"),
            id="another pod",
        ),
        pytest.param(
            WAITING,
            said("FindingOpened"),
            ("refused", "nobody is told FindingOpened of a Pod by command"),
            id="a finding",
        ),
        pytest.param(
            WAITING,
            said("Scheduled", kind="Node"),
            ("refused", "nobody is told Scheduled of a Node by command"),
            id="a node",
        ),
        pytest.param(
            WAITING,
            said("FailedScheduling", condition=PodCondition("Ready", "False", "x")),
            ("refused", "condition Ready is not ours to set"),
            id="another condition",
        ),
    ],
)
async def test_a_command_from_a_topic_is_told_only_where_the_pod_bears_it_out(
    writer: FakeEvents, pod: PodState, command: Action, expected: tuple[str, str]
) -> None:
    writer.pod = pod
    outcome = await sink_of(writer).told(command)
    assert (outcome.result, outcome.reason) == expected
    assert bool(writer.writes) == (expected[0] == "applied")
