"""Nothing further is done about an object until the picture shows our own write; a person is told where none does."""

import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest
from support.build import a_node, a_pod, a_site

from underhost.agents.pipeline.decide.own_writes import BOUND, OwnWrites
from underhost.agents.pipeline.decide.restored import Evaluations
from underhost.agents.pipeline.gates.guards import Standstill
from underhost.agents.pipeline.tables.agents import Tables
from underhost.agents.pipeline.tables.held_findings import HeldFindings
from underhost.agents.sinks.moves.campaign import Campaigns
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, order, outcome
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import Topic
from underhost.schemas.vsphere import DrsRule, Host, Vm
from underhost.streams.settings.labels import HostLabelSettings
from underhost.streams.settings.model import Settings

KEY = "example.com/host"
RULE = "underhost-s-db-1"
EMPTY = Snapshot()


def node(label: str = "", uid: str = "u1", taint: str = "") -> Snapshot:
    made = a_node("n1").labels({KEY: label or None, "zone": "a"}).metadata(uid=uid)
    return a_site(made.spec(taints=[{"key": taint, "effect": "NoSchedule"}]) if taint else made)


def pod(on: str = "", uid: str = "u1", ending: bool = False) -> Snapshot:
    made = a_pod("db-0", "shop").metadata(uid=uid)
    made = made.on(on) if on else made
    return a_site(made.metadata(deletionTimestamp="2026-01-01T01:00:00Z") if ending else made)


def rule(*vms: str) -> Snapshot:
    return Snapshot(rules={("C0", RULE): DrsRule(RULE, "anti-affinity", list(vms), cluster="C0")} if vms else {})


def host(state: str) -> Snapshot:
    return Snapshot(hosts={"h1": Host("esx-1", id="h1", state=state)})


def label(value: str | None, taint: Mapping[str, object] | None = None) -> Action:
    desired = {"uid": "u1", "labels": {KEY: value, "zone": "a"}}
    return order("label", "node/n1", desired if taint is None else {**desired, "taint": taint}, "", {})


def labelled(value: str, uid: str = "u1") -> Snapshot:
    return a_site(a_pod("db-0", "shop").metadata(uid=uid).labels({KEY: value}))


POD_LABEL = order("pod-label", "pod/shop/db-0", {"uid": "u1", "labels": {KEY: "h1", "zone": None}}, "", {})
BIND = order("bind", "pod/shop/db-0", {"uid": "u1", "node": "n1"}, "", {})
EVICT = order("evict", "pod/shop/db-0", {"uid": "u1", "at": "2026-01-01T00:00:00Z"}, "", {})
VM = {"uid": "u1", "owner": "VirtualMachineInstanceReplicaSet/shop/db"}
MIGRATE = order("evict", "pod/shop/db-0", VM, "", {})
RULE_SET = {"cluster": "C0", "type": "anti-affinity", "vms": ["b", "a"]}
SET = order("drs-rule", f"drs-rule/C0/{RULE}", RULE_SET, "", {})
REMOVE = order("drs-rule", f"drs-rule/C0/{RULE}", {}, "", {})
ENTER = order("maintenance", "host/h1", {"mode": "enter"}, "", {})
EXIT = order("maintenance", "host/h1", {"mode": "exit"}, "", {})
LIFT = {"key": "starting", "needs": [KEY]}


@pytest.mark.parametrize(
    ("action", "before", "unseen", "seen"),
    [
        (label("h1"), node(), node("h0"), node("h1")),
        (label(None), node("h0"), node("h0"), node()),
        (label("h1", LIFT), node("h1", taint="starting"), node("h1", taint="starting"), node("h1")),
        (label("h1"), node(), node(), node(uid="u2")),
        (label("h1"), node(), node(), EMPTY),
        (POD_LABEL, labelled("h0"), labelled("h0"), labelled("h1")),
        (POD_LABEL, labelled("h0"), labelled("h0"), labelled("h0", "u2")),
        (POD_LABEL, labelled("h0"), labelled("h0"), EMPTY),
        (BIND, pod(), pod(), pod("n1")),
        (BIND, pod(), pod(), pod("n2")),
        (BIND, pod(), pod(), pod(uid="u2")),
        (BIND, pod(), pod(), EMPTY),
        (EVICT, pod("n1"), pod("n1"), pod("n1", ending=True)),
        (EVICT, pod("n1"), pod("n1"), pod("n1", uid="u2")),
        (SET, rule(), rule("a", "c"), rule("a", "b")),
        (REMOVE, rule("a", "b"), rule("a", "b"), rule()),
        (ENTER, host("connected"), host("connected"), host("maintenance")),
        (EXIT, host("maintenance"), host("maintenance"), host("connected")),
        (ENTER, host("connected"), host("connected"), EMPTY),
    ],
    ids=[
        "the label is there",
        "the label is gone",
        "the taint is gone",
        "another node has the name",
        "the node is gone",
        "the pod has the label",
        "another pod has the label's",
        "the labelled pod is gone",
        "the pod is bound",
        "the pod is bound by somebody else",
        "another pod has the name",
        "the pod is gone",
        "the pod is being deleted",
        "the next pod is there",
        "the rule has the members",
        "the rule is gone",
        "the host is in maintenance mode",
        "the host is out of it",
        "the host is gone",
    ],
)
def test_an_object_is_left_alone_until_the_picture_shows_the_write(
    action: Action, before: Snapshot, unseen: Snapshot, seen: Snapshot
) -> None:
    writes = OwnWrites("s")
    writes.order([action], before, now=0.0)
    assert writes.held_until(action.kind, action.target) == 0.0, "it is not written yet"
    writes.observe(outcome(action, APPLIED, ""), now=1.0)
    for picture in (before, unseen):
        writes.look(picture, now=2.0)
        assert writes.held_until(action.kind, action.target) == 1.0 + BOUND
    writes.look(seen, now=3.0)
    assert writes.held_until(action.kind, action.target) == 0.0


@pytest.mark.parametrize("result", [NOOP, DRY_RUN, REFUSED, FAILED])
def test_what_wrote_nothing_is_not_waited_for(result: str) -> None:
    writes = OwnWrites("s")
    writes.order([BIND], pod(), now=0.0)
    writes.observe(outcome(BIND, result, ""), now=1.0)
    assert writes.held_until(BIND.kind, BIND.target) == 0.0


def test_the_pod_of_a_virtual_machine_migrates_for_minutes_and_nobody_is_told() -> None:
    writes = OwnWrites("s")
    writes.order([MIGRATE], pod("n1"), now=0.0)
    writes.observe(outcome(MIGRATE, APPLIED, "it migrates"), now=1.0)
    writes.look(pod("n1"), now=2.0)
    assert writes.held_until(MIGRATE.kind, MIGRATE.target) == 0.0


def test_the_outcome_of_an_older_command_says_nothing_of_the_newer_one() -> None:
    writes = OwnWrites("s")
    writes.order([label("h1")], node(), now=0.0)
    writes.order([label("h2")], node(), now=1.0)
    writes.observe(outcome(label("h1"), APPLIED, ""), now=2.0)
    assert writes.held_until("label", "node/n1") == 0.0


def test_a_person_is_told_once_of_a_write_that_no_source_shows(caplog: pytest.LogCaptureFixture) -> None:
    writes = OwnWrites("s")
    writes.order([BIND], pod(), now=0.0)
    writes.observe(outcome(BIND, APPLIED, ""), now=1.0)
    with caplog.at_level(logging.ERROR):
        for now in (BOUND, 1.0 + BOUND, 2.0 + BOUND):
            writes.look(pod(), now=now)
    assert caplog.messages == ["site s: what was written is not seen after 60 s: bind pod/shop/db-0"]
    assert writes.unseen == 1
    writes.look(pod("n1"), now=3.0 + BOUND)
    assert writes.unseen == 0


def test_a_command_that_nobody_answers_is_forgotten() -> None:
    writes = OwnWrites("s")
    writes.order([BIND], pod(), now=0.0)
    writes.look(pod(), now=BOUND)
    writes.observe(outcome(BIND, APPLIED, ""), now=BOUND)
    assert writes.held_until(BIND.kind, BIND.target) == 0.0


class NoTables:
    """Tables that hold nothing: a site that has just begun."""

    def records(self, topic: Topic, record: type[Any], site: str | None = None) -> list[Any]:
        """See `Tables.records`."""
        return []


def test_a_label_that_no_watch_has_shown_yet_is_not_written_over_when_the_vm_moves() -> None:
    """The whole evaluation of a labeller, as a worker begins it."""
    settings = Settings(site="s", host_label=HostLabelSettings(key=KEY))
    tables = cast(Tables, NoTables())
    begun = Evaluations(settings, tables, None, {"labeller"}, ["label"], HeldFindings(tables), Campaigns())
    evaluation, clock = begun.begin("s"), [0.0]
    evaluation._monotonic = lambda: clock[0]

    def ordered(now: float, host: str, label: str, *outcomes: Outcome) -> list[Action]:
        clock[0] = now
        vm = Vm(name="n1", id="vm-1", uuid="4200", host=host)
        nodes = {"n1": a_node("n1").labels({KEY: label or None}).spec(providerID="vsphere://4200").build()}
        hosts = {name: Host(name=name, id=name) for name in ("h1", "h2")}
        picture = Snapshot(site="s", nodes=nodes, vms={"vm-1": vm}, hosts=hosts, vsphere=True)
        decided = evaluation.evaluate(picture, "2026-01-01T00:00:00Z", outcomes, Standstill(), changed=True)
        evaluation.commit(decided)
        return decided.actions

    [first] = ordered(0.0, "h1", "")
    assert ordered(20.0, "h2", "", outcome(first, APPLIED, "")) == [], "our label h1 is not in the picture"
    [second] = ordered(21.0, "h2", "h1")
    assert second.desired["labels"] == {KEY: "h2"}
