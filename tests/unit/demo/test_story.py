"""The demo's story: each step is told when, and only when, the pipeline's own records show it."""

from collections.abc import Callable, Iterator

import pytest
from support.fakes.topics import FakeTopics
from support.simulation.operated import a_site
from support.sites.simulated import turns, watched

from underhost.agents.demo.picture import DemoState
from underhost.agents.demo.story import (
    Act,
    Step,
    Story,
    Verb,
    beginning,
    host_fails,
    moved_by_hand,
    node_drained,
    quorum_at_risk,
)
from underhost.schemas.keys import finding_key
from underhost.schemas.records import Domain, FindingEvent, NodeHost, Outcome
from underhost.schemas.topics import NODE_HOSTS, OUTCOMES, VIOLATIONS
from underhost.schemas.vsphere import DrsRule
from underhost.streams.derived import node_key, outgoing, target_key
from underhost.streams.ports import Outgoing, Record

BEGIN = 1_000_000
LABEL = "node.cluster.x-k8s.io/esxi-host"
NODES = {
    "kni-control-plane": ("vm-101", "esx-4"),
    "kni-worker": ("vm-102", "esx-1"),
    "kni-worker2": ("vm-103", "esx-1"),
    "kni-worker3": ("vm-104", "esx-2"),
    "kni-worker4": ("vm-105", "esx-2"),
    "kni-worker5": ("vm-106", "esx-3"),
    "kni-worker6": ("vm-107", "esx-3"),
}
WHERE = {
    "varnish-cache-54489f9fc9-5pbr2": "kni-worker",
    "varnish-cache-54489f9fc9-9s9tm": "kni-worker3",
    "varnish-cache-54489f9fc9-dflzs": "kni-worker5",
    "virt-launcher-blackboxtk49x-nw45s": "kni-worker",
    "virt-launcher-blackboxxt829-snjth": "kni-worker3",
    "virt-launcher-blackboxzf9kt-6mh56": "kni-worker5",
    "virt-launcher-mssql2016p948r-257pn": "kni-worker2",
    "virt-launcher-mssql2016tpj6n-l2fnf": "kni-worker4",
    "virt-launcher-mssql2016z2qnw-t924b": "kni-worker6",
}
RULE = "underhost-demo-mssql2016-1a2b3c4d"
FIRST, SECOND = "customapp/virt-launcher-mssql2016p948r-257pn", "customapp/virt-launcher-mssql2016z2qnw-t924b"


def a_record(record: Outgoing, at: int = BEGIN + 1) -> Record:
    return Record(record.topic.name, 0, 0, at, record.key.encode(), record.value, ())


def mapped(node: str, host: str) -> Outgoing:
    row = NodeHost(node, NODES[node][0], f"host-1{host[-1]}", host, "providerID")
    return outgoing(NODE_HOSTS, node_key("demo", node), row)


def answered(kind: str, target: str, result: str = "applied") -> Outgoing:
    return outgoing(OUTCOMES, target_key("demo", target), Outcome("1", kind, target, result, ""))


def a_finding(state: str, **others: object) -> Outgoing:
    fields = {
        "id": "f1", "state": state, "site": "demo", "severity": "physical", "rule": "PhysicalHost", "reason": "r",
        "message": "both run on ESXi host esx-1", "first_seen": "", "updated_at": "", "snapshot": {}, "pod": FIRST,
        "peers": [SECOND], "domain": Domain("host", "esx-1"), **others,
    }  # fmt: skip
    event = FindingEvent(**fields)  # type: ignore[arg-type]
    return outgoing(VIOLATIONS, finding_key("demo", event.id), event)


async def the_records() -> Iterator[tuple[str, list[Record]]]:
    """What a pipeline publishes over the simulated site, in named chapters; its commands are given by hand."""
    site, topics, chapters = a_site(), FakeTopics(), []
    seen = 0

    def published() -> list[Record]:
        nonlocal seen
        new, seen = topics.records[seen:], len(topics.records)
        return [a_record(record) for record in new]

    async with watched(site, topics):
        chapters.append(("the site is listed", published()))
        chapters.append(("nodes are mapped", [a_record(mapped(node, host)) for node, (_, host) in NODES.items()]))
        labels = [a_record(answered("label", f"node/{node}")) for node in NODES]
        chapters.append(("all labels but one are written", labels[:-1]))
        for node, (_, host) in NODES.items():
            uid, _, _ = await site.kubernetes.node_labels(node)
            await site.kubernetes.apply_node_labels(node, uid, {LABEL: host})
        await turns()
        chapters.append(("nodes carry the label", published()))
        chapters.append(("the last label is there already", [a_record(answered("label", "node/kni-worker6", "noop"))]))
        for name, node in WHERE.items():
            await site.kubernetes.bind_pod(
                "customapp", name, (await site.kubernetes.pod_node("customapp", name))[0], node
            )
        await turns()
        binds = [a_record(answered("bind", f"pod/customapp/{name}")) for name in WHERE]
        chapters.append(("the pods are bound", [*binds, *published()]))
        rule = DrsRule(RULE, "anti-affinity", ["vm-103", "vm-105", "vm-107"])
        await site.vsphere.add_rule("iberia", rule)
        await turns()
        chapters.append(("vCenter has the rule", published()))
        chapters.append(("the sink says so", [a_record(answered("drs-rule", f"drs-rule/iberia/{RULE}"))]))
        site.move_vm("kni-worker6", "esx-1")
        site.advance(1.5)
        await turns()
        chapters.append(("the VM arrives", [*published(), a_record(mapped("kni-worker6", "esx-1"))]))
        chapters.append(("a finding opens", [a_record(a_finding("opened"))]))
        site.advance(10)
        await turns()
        chapters.append(("DRS has moved the VM", [*published(), a_record(mapped("kni-worker6", "esx-3"))]))
        chapters.append(("the finding is resolved", [a_record(a_finding("resolved"))]))
    return iter(chapters)


def a_story(act: Callable[[Act], None] = lambda act: None) -> Story:
    """The first round of the demo."""
    steps = [*beginning("kni-worker6", "esx-1", LABEL), *moved_by_hand("kni-worker6", "esx-1")]
    return Story(steps, DemoState("demo", BEGIN), act)


def fed(story: Story, record: Record) -> list[list[str]]:
    """What is told of a record; nobody wants to rest."""
    return [lines for _, lines in (*story.feed(record), *story.go_on())]


async def test_each_step_is_told_with_names_when_the_records_show_it() -> None:
    story = a_story()
    told: list[tuple[str, list[str]]] = []
    for chapter, records in await the_records():
        for record in records:
            told += [(chapter, lines) for lines in fed(story, record)]
    assert [(chapter, lines[0]) for chapter, lines in told] == [
        ("nodes are mapped", "Learned where 7 nodes run, by their providerID:"),
        (
            "the last label is there already",
            f"Wrote the ESXi host on 7 Node objects, a label that follows each vMotion: {LABEL}.",
        ),
        ("the pods are bound", "Bound 9 pods that waited for a node:"),
        ("the sink says so", "Wrote 1 DRS rule into vCenter, so that it keeps these VMs on different hosts:"),
        (
            "the sink says so",
            "An operator moves kni-worker6 to esx-1, a host chosen by hand: vCenter checks no DRS rule then.",
        ),
        (
            "a finding opens",
            "A finding opens (physical): pods that must be apart share esx-1:",
        ),
        ("DRS has moved the VM", "DRS keeps the rule: it moves kni-worker6 from esx-1 to esx-3."),
        ("the finding is resolved", "The finding is resolved: its pods do not share esx-1 any more:"),
    ]
    below = {lines[0].split()[0]: lines[1:] for _, lines in told}
    assert below["Learned"] == [
        "esx-1: kni-worker, kni-worker2",
        "esx-2: kni-worker3, kni-worker4",
        "esx-3: kni-worker5, kni-worker6",
        "esx-4: kni-control-plane",
    ]
    assert f"{SECOND} to kni-worker6 on esx-3" in below["Bound"]
    assert len(below["Bound"]) == 9
    assert below["A"] == [
        f"{FIRST} on kni-worker2 on esx-1",
        f"{SECOND} on kni-worker6 on esx-1",
        "both run on ESXi host esx-1",
    ]
    assert below["The"] == [f"{FIRST} on kni-worker2 on esx-1", f"{SECOND} on kni-worker6 on esx-3"]
    assert story.next is None


async def told_without(left_out: str) -> list[str]:
    """The headlines of the story when one chapter never comes."""
    story = a_story()
    records = [record for chapter, part in await the_records() if chapter != left_out for record in part]
    return [lines[0].split(" ", 1)[0] for record in records for lines in fed(story, record)]


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        ("nodes are mapped", []),
        ("nodes carry the label", ["Learned"]),
        ("the last label is there already", ["Learned"]),
        ("the pods are bound", ["Learned", "Wrote"]),
        ("vCenter has the rule", ["Learned", "Wrote", "Bound"]),
        ("the sink says so", ["Learned", "Wrote", "Bound"]),
        ("a finding opens", ["Learned", "Wrote", "Bound", "Wrote", "An"]),
        ("the finding is resolved", ["Learned", "Wrote", "Bound", "Wrote", "An", "A", "DRS"]),
    ],
    ids=lambda value: f"without: {value}" if isinstance(value, str) else "",
)
async def test_the_story_stops_before_what_the_records_do_not_show(left_out: str, told: list[str]) -> None:
    assert await told_without(left_out) == told


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(a_record(a_finding("opened", severity="co-located")), id="a finding of a lesser severity"),
        pytest.param(
            a_record(a_finding("opened", peers=["customapp/varnish-cache-54489f9fc9-dflzs"])), id="other pods"
        ),
        pytest.param(a_record(a_finding("opened", peers=[])), id="a finding about one pod"),
        pytest.param(a_record(a_finding("opened"), at=BEGIN - 1), id="a finding of an earlier run"),
        pytest.param(a_record(a_finding("opened"))._replace(key=b"elsewhere/f1"), id="a finding of another site"),
    ],
)
async def test_another_finding_is_not_the_storys(record: Record) -> None:
    story = a_story()
    for chapter, records in await the_records():
        if chapter == "a finding opens":
            assert list(story.feed(record)) == []
            return
        for each in records:
            list(story.feed(each))


async def test_what_is_wrong_stays_until_the_story_is_told_to_go_on() -> None:
    done: list[Act] = []
    story = a_story(done.append)
    headlines = [
        lines[0].split(" ", 2)[:2]
        for _, records in await the_records()
        for record in records
        for _, lines in story.feed(record)
    ]
    assert headlines[-1] == ["A", "finding"]  # though DRS has moved the VM since, as the records show
    assert done == [Act(Verb.HOLD_DRS), Act(Verb.MOVE, "kni-worker6", "esx-1")]
    assert [lines[0].split(" ", 1)[0] for _, lines in story.go_on()] == ["DRS", "The"]
    assert done[2:] == [Act(Verb.RELEASE_DRS)]


def test_a_round_knows_nothing_of_the_one_before() -> None:
    picture = DemoState("demo", BEGIN)
    picture.apply(a_record(a_finding("opened")))
    story = Story([], picture)
    told = [lines[0] for _, lines in story.append(moved_by_hand("kni-worker6", "esx-1"))]
    assert told == ["An operator moves kni-worker6 to esx-1, a host chosen by hand: vCenter checks no DRS rule then."]


@pytest.mark.parametrize(
    ("steps", "told", "acts"),
    [
        pytest.param(
            host_fails("esx-1", {"kni-worker": "esx-1", "kni-worker2": "esx-1", "kni-worker6": "esx-3"}),
            "esx-1 fails, and kni-worker and kni-worker2 with it. In 15 s HA restarts them where there is room: HA "
            "checks no rule.",
            [Act(Verb.HOLD_DRS), Act(Verb.FAIL, "esx-1")],
            id="a host fails",
        ),
        pytest.param(
            node_drained("kni-worker6"),
            "An operator drains kni-worker6: its pods are evicted, one at a time, as their budgets allow.",
            [Act(Verb.DRAIN, "kni-worker6")],
            id="a node is drained",
        ),
        pytest.param(
            quorum_at_risk("StatefulSet/shop/db", "kni-worker4", "esx-1"),
            "The owner of StatefulSet shop/db says, by the annotation underhost.io/quorum, that a majority of its "
            "replicas must stay. An operator moves kni-worker4 to esx-1 by hand, where another of them runs.",
            [Act(Verb.HOLD_DRS), Act(Verb.ASK_QUORUM, "StatefulSet/shop/db"), Act(Verb.MOVE, "kni-worker4", "esx-1")],
            id="a host holds a majority",
        ),
    ],
)
def test_every_round_begins_with_what_goes_wrong(steps: list[Step], told: str, acts: list[Act]) -> None:
    done: list[Act] = []
    story = Story([], DemoState("demo", BEGIN), done.append)
    assert [lines for _, lines in story.append(steps)] == [[told]]
    assert done == acts


async def test_the_round_of_a_quorum_tells_of_the_majority_and_not_of_the_rule_beside_it() -> None:
    done: list[Act] = []
    story = Story([], DemoState("demo", BEGIN), done.append)
    for chapter, records in await the_records():
        if chapter == "the VM arrives":
            break
        for each in records:
            story.picture.apply(each)
    list(story.append(quorum_at_risk("StatefulSet/shop/db", "kni-worker6", "esx-1")))
    quorum = {"id": "f2", "severity": "quorum", "rule": "Quorum", "message": "2 of the 3 members run on esx-1"}
    assert fed(story, a_record(a_finding("opened"))) == []
    assert [lines for _, lines in story.feed(a_record(a_finding("opened", **quorum)))] == [
        [
            "A finding opens (quorum): the loss of esx-1 would take the majority:",
            f"{FIRST} on kni-worker2 on esx-1",
            f"{SECOND} on kni-worker6 on esx-1",
            "2 of the 3 members run on esx-1",
        ]
    ]
    assert done[3:] == []
    assert list(story.go_on()) == []
    assert done[3:] == [Act(Verb.RELEASE_DRS)]
    for host in ("esx-1", "esx-4"):
        list(story.feed(a_record(mapped("kni-worker6", host))))
    assert list(story.feed(a_record(a_finding("resolved")))) == []
    assert [lines[0] for _, lines in story.feed(a_record(a_finding("resolved", **quorum)))] == [
        "The finding is resolved: its pods do not share esx-1 any more:"
    ]
    assert done[4:] == [Act(Verb.FORGET_QUORUM, "StatefulSet/shop/db")]
    assert story.next is None
