"""The whole pipeline on the embedded log, with fakes of the clusters and of the evaluator."""

import asyncio
import json
from pathlib import Path

import pytest
from support.build import a_node, a_site
from support.fakes.pipeline import FakeCluster, FakeEvaluator, FakeSource
from support.workers.pipeline import Running, running, settings_in

from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.roles import parse_roles
from underhost.agents.pipeline.run import Pipeline
from underhost.schemas.errors import Refused
from underhost.schemas.topics import ACTIONS, DEAD_LETTERS, NODE_HOSTS, OUTCOMES, PLACEMENTS, PODS, VIOLATIONS, Topic
from underhost.streams.ports import Outgoing
from underhost.streams.settings.sinks import EvictionSettings

KEY = "node.cluster.x-k8s.io/esxi-host"
TIMES = ("since", "firstSeen", "updatedAt")


@pytest.fixture
def cluster() -> FakeCluster:
    """Three nodes on three hosts; three pods of one app that wait, and a fourth for which there is no room."""
    cluster = FakeCluster()
    for number in (1, 2, 3):
        cluster.node(f"n{number}", f"h{number}")
    for number in range(4):
        cluster.pod(f"db-{number}", app="db")
    return cluster


def results(worker: Running) -> list[tuple[str, str]]:
    """(target, result) of every outcome, sorted."""
    return sorted((value["target"], value["result"]) for _, value in worker.records(OUTCOMES))


async def test_from_the_first_list_to_bound_pods_and_labelled_nodes(cluster: FakeCluster, tmp_path: Path) -> None:
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 6)
    assert worker.states(NODE_HOSTS, "hostName") == [
        ("default/node//n1", "h1"),
        ("default/node//n2", "h2"),
        ("default/node//n3", "h3"),
    ]
    assert worker.states(PLACEMENTS, "node") == [
        ("default/pod/shop/db-0", "n1"),
        ("default/pod/shop/db-1", "n2"),
        ("default/pod/shop/db-2", "n3"),
        ("default/pod/shop/db-3", None),
    ]
    assert worker.records(PLACEMENTS)[3][1]["failed"] == {"node(s) didn't match pod anti-affinity rules": 3}
    assert sorted(cluster.bound) == [("db-0", "n1"), ("db-1", "n2"), ("db-2", "n3")]
    assert sorted(cluster.labelled) == [("n1", {KEY: "h1"}), ("n2", {KEY: "h2"}), ("n3", {KEY: "h3"})]
    assert results(worker) == [
        ("node/n1", "applied"),
        ("node/n2", "applied"),
        ("node/n3", "applied"),
        ("pod/shop/db-0", "applied"),
        ("pod/shop/db-1", "applied"),
        ("pod/shop/db-2", "applied"),
    ]


async def test_a_vm_that_moves_to_a_shared_host_opens_a_finding_and_its_return_resolves_it(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 3)
        cluster.move("n2", "h1")
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        cluster.move("n2", "h2")
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 3)
    opened, resolved, deleted = worker.records(VIOLATIONS)
    assert (opened[0], opened[1]["state"], opened[1]["pod"], opened[1]["peers"]) == (
        "default/db-h1",
        "opened",
        "shop/db-0",
        ["shop/db-1"],
    )
    assert (resolved[0], resolved[1]["state"]) == ("default/db-h1", "resolved")
    assert resolved[1]["firstSeen"] == opened[1]["firstSeen"]
    assert deleted == ("default/db-h1", None)


async def test_nothing_is_decided_before_every_source_has_listed(cluster: FakeCluster, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with running(settings_in(tmp_path), cluster.connections(gates={"vsphere": gate})) as worker:
        await cluster.listed["kubernetes"].wait()
        # A record that cannot be read comes out again: so far the pipeline has read, and decided nothing from it.
        cluster.garble(PODS, "default/pod/shop/marker", b"not json")
        await worker.until(lambda: bool(worker.published))
        assert [record.topic for record in worker.published] == [DEAD_LETTERS]
        assert worker.evaluator.calls == 0
        gate.set()
        await worker.until(lambda: len(cluster.bound) == 3)
    first = worker.evaluator.snapshots[0]
    assert sorted(first.vms) == ["vm-n1", "vm-n2", "vm-n3"]
    assert sorted(first.pods) == ["shop/db-0", "shop/db-1", "shop/db-2", "shop/db-3"]


async def test_a_record_that_cannot_be_read_lands_in_dead_letters_and_the_stream_goes_on(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    poison = {
        "default/pod/shop/text": b"not json",
        "default/pod/shop/bytes": b"\xff\xfe",
        "default/pod/shop/other": b'{"metadata": 7}',
        "default/pod/shop/deep": b"[" * 100_000,
        "default/node//n9": b'{"metadata": {"name": "n9"}}',
        "no-key-of-ours": b"{}",
    }
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 3)
        for key, data in poison.items():
            cluster.garble(PODS, key, data)
        cluster.node("n4", "h4")
        await worker.until(lambda: len(cluster.bound) == 4)
        await worker.until(lambda: len(worker.records_of(DEAD_LETTERS)) == len(poison))
    assert cluster.bound[3] == ("db-3", "n4")
    letters = worker.records_of(DEAD_LETTERS)
    assert {record.key: record.original for record in letters} == poison
    assert all((record.value or b"").startswith(b"sha256:") for record in letters)
    assert {record.headers["stage"] for record in letters} == {b"tables"}
    assert {record.headers["origin_topic"] for record in letters} == {b"underhost.pods"}
    by_key = {record.key: record.headers["error"].decode() for record in letters}
    assert by_key["default/node//n9"] == "BadEvent: kind 'node' does not belong to underhost.pods"
    assert by_key["no-key-of-ours"] == "BadEvent: bad key: not a record key: 'no-key-of-ours'"


@pytest.mark.parametrize("topic", [PLACEMENTS, ACTIONS], ids=["placements", "actions"])
async def test_an_unreadable_order_is_one_dead_letter_though_a_table_and_a_sink_read_it(
    cluster: FakeCluster, tmp_path: Path, topic: Topic
) -> None:
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 6)
        cluster.garble(topic, "default/pod/shop/db-1", b"{")
        await worker.until(lambda: len(worker.records_of(DEAD_LETTERS)) >= 1)
        # The sinks have come past it once they have carried out what was ordered after it: a label and two bindings.
        cluster.node("n4", "h4")
        cluster.pod("web-0", app="web")
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 9)
    [letter] = worker.records_of(DEAD_LETTERS)
    assert (letter.headers["origin_topic"].decode(), letter.headers["stage"]) == (topic.name, b"tables")


async def test_a_record_with_the_id_of_a_command_that_waits_and_other_content_is_refused(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 6)
        [(key, ordered), *_] = worker.records(ACTIONS)
        forged = {**ordered, "desired": {**ordered["desired"], "labels": {KEY: "another-host"}}}
        cluster.garble(ACTIONS, key, json.dumps(forged).encode())
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 7)
        cluster.node("n4", "h4")
        await worker.until(lambda: len(cluster.labelled) == 4)
    answer = next(value for _, value in worker.records(OUTCOMES) if value["result"] == "refused")
    assert answer["target"] == ordered["target"]
    assert answer["reason"] == f"its id {ordered['id']!r} is not its content's, {answer['id']}"
    assert (ordered["target"].removeprefix("node/"), {KEY: "another-host"}) not in cluster.labelled
    [letter] = worker.records_of(DEAD_LETTERS)
    assert (letter.key, letter.headers["origin_topic"].decode(), letter.headers["stage"]) == (
        key,
        ACTIONS.name,
        b"tables",
    )


def answers(worker: Running) -> list[tuple[str, str]]:
    """(result, reason) of each outcome of db-1's binding."""
    outcomes = [value for _, value in worker.records(OUTCOMES) if value["target"] == "pod/shop/db-1"]
    return [(one["result"], one["reason"]) for one in outcomes]


async def test_a_refused_binding_is_decided_again(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.refuses["db-1"] = [Refused("not allowed")]
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 3 and len(answers(worker)) == 2)  # told after it is done
    assert [result for result, _ in answers(worker)] == ["refused", "applied"]
    assert [value for key, value in worker.states(PLACEMENTS, "node") if key == "default/pod/shop/db-1"] == ["n2", "n2"]


async def test_a_sink_that_raises_is_a_failed_outcome_and_a_dead_letter_and_others_go_on(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.refuses["db-1"] = [ZeroDivisionError("a bug")]
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 3 and len(answers(worker)) == 2)  # told after it is done
    assert answers(worker) == [("failed", "ZeroDivisionError: a bug"), ("applied", "bound to n2")]
    [letter] = worker.records_of(DEAD_LETTERS)
    assert (letter.key, letter.headers["stage"]) == ("default/pod/shop/db-1", b"sinks")


async def test_labels_follow_their_hosts_even_where_the_rules_cannot_be_judged(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    def fails() -> None:
        raise ZeroDivisionError("a bug")

    async with running(settings_in(tmp_path), cluster, evaluator=FakeEvaluator(fails)) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 3)
    assert sorted(cluster.labelled) == [("n1", {KEY: "h1"}), ("n2", {KEY: "h2"}), ("n3", {KEY: "h3"})]
    assert len(worker.records(NODE_HOSTS)) == 3
    assert (worker.records(PLACEMENTS), worker.records(VIOLATIONS)) == ([], [])


async def test_while_a_source_doubts_its_inventory_nothing_is_ordered_and_findings_go_on(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.node("n4")
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 4 and len(worker.records(OUTCOMES)) == 7)
        cluster.shrunk["vsphere"].append("vms: 39 of 40 are missing")
        cluster.pod("web-0", app="web")
        cluster.move("n2", "h1")
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 2)
        found = {value["rule"]: value for _, value in worker.records(VIOLATIONS)}
        assert (len(cluster.bound), len(cluster.labelled)) == (4, 3)
        cluster.shrunk["vsphere"].clear()
        cluster.move("n2", "h2")
        await worker.until(lambda: len(cluster.bound) == 5)
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 6)
    assert cluster.bound[4][0] == "web-0"
    assert sorted(found) == ["Inventory", "PhysicalHost"]
    stopped = found["Inventory"]
    assert (stopped["state"], stopped["severity"], stopped["domain"]) == (
        "opened",
        "unknown-node",
        {"key": "source", "value": "vsphere"},
    )
    assert stopped["message"] == (
        "vms: 39 of 40 are missing. Site default gets no write at all until somebody looks and says: "
        "underhost resume default"
    )


async def test_stale_vsphere_data_stops_what_rests_on_hosts_and_recovers_unaided(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 3 and len(worker.records(OUTCOMES)) == 6)
        cluster.stale["vsphere"] = "vCenter has not answered for over 60 s"
        cluster.pod("web-0", app="web")
        cluster.move("n2", "h4")
        await worker.until(lambda: len(cluster.bound) == 4)  # a preference for other hosts is no reason to wait
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        assert len(cluster.labelled) == 3
        cluster.stale.clear()
        cluster.pod("web-1", app="web")
        await worker.until(lambda: len(cluster.labelled) == 4)
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 3)
    assert cluster.labelled[3] == ("n2", {KEY: "h4"})
    [opened, resolved, deleted] = worker.records(VIOLATIONS)
    assert (opened[1]["severity"], opened[1]["rule"]) == ("unknown-host", "Inventory")
    assert opened[1]["message"] == (
        "vCenter has not answered for over 60 s: until it is heard of again, site default gets no write that rests on "
        "where VMs run (drs-rule, evict, label, maintenance, move, pod-label)."
    )
    assert (resolved[1]["state"], deleted[1]) == ("resolved", None)


async def test_a_silent_kubernetes_api_stops_every_write_and_recovers_unaided(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 3 and len(worker.records(OUTCOMES)) == 6)
        cluster.stale["kubernetes"] = "the Kubernetes API has not answered for over 60 s"
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        cluster.pod("web-0", app="web")
        cluster.move("n2", "h4")
        await worker.until(lambda: worker.records(NODE_HOSTS)[-1][1]["hostName"] == "h4")  # and decided upon
        assert (len(cluster.bound), len(cluster.labelled)) == (3, 3)
        cluster.stale.clear()
        await worker.until(lambda: len(cluster.bound) == 4 and len(cluster.labelled) == 4)
    opened = worker.records(VIOLATIONS)[0][1]
    assert (opened["severity"], opened["rule"]) == ("unknown-node", "Inventory")
    assert opened["message"] == (
        "the Kubernetes API has not answered for over 60 s: until it is heard of again, site default gets no write."
    )


async def test_where_hosts_are_required_stale_data_stops_bindings_too(cluster: FakeCluster, tmp_path: Path) -> None:
    settings = settings_in(tmp_path).model_copy(update={"physical_host": "required"})
    cluster.stale["vsphere"] = "vCenter has not answered for over 60 s"
    async with running(settings, cluster) as worker:
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        assert worker.records(PLACEMENTS) == []
        cluster.stale.clear()
        cluster.pod("web-0", app="web")
        await worker.until(lambda: len(cluster.bound) == 4)


async def test_without_a_sink_enabled_nothing_is_written_and_nothing_is_said_twice(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    async with running(settings_in(tmp_path, sinks=False), cluster) as worker:
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 6)
        cluster.pod("web-0", app="web")
        await worker.until(lambda: len(worker.records(OUTCOMES)) == 7)
    assert (cluster.bound, cluster.labelled) == ([], [])
    assert {result for _, result in results(worker)} == {"dry-run"}
    assert len(worker.records(PLACEMENTS)) == 5
    assert len(worker.records(ACTIONS)) == 3


async def test_pods_of_other_schedulers_are_not_placed(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    cluster.pod("theirs", scheduler="default-scheduler")
    cluster.pod("ours")
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 1)
    assert worker.states(PLACEMENTS, "node") == [("default/pod/shop/ours", "n1")]


async def test_a_restart_resolves_what_ended_meanwhile_and_repeats_nothing(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.node("n4", "h2")
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.bound) == 4 and len(worker.records(OUTCOMES)) == 8)
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        cluster.move("n3", "h1")
        await worker.until(lambda: len(worker.records(VIOLATIONS)) == 2)
    assert [key for key, _ in worker.records(VIOLATIONS)] == ["default/db-h2", "default/db-h1"]
    writes = (list(cluster.bound), list(cluster.labelled))
    cluster.move("n4", "h4")
    cluster.move("n3", "h1")
    cluster.delete_pod("db-2")
    async with running(settings_in(tmp_path), cluster) as again:
        await again.until(lambda: ("n4", {KEY: "h4"}) in cluster.labelled)
    assert again.states(VIOLATIONS, "state") == [
        ("default/db-h1", "resolved"),
        ("default/db-h1", None),
        ("default/db-h2", "resolved"),
        ("default/db-h2", None),
    ]
    assert again.records(PLACEMENTS) == []
    assert again.states(NODE_HOSTS, "hostName") == [("default/node//n4", "h4")]
    assert cluster.bound == writes[0]
    new_labels = cluster.labelled[len(writes[1]) :]
    assert ("n4", {KEY: "h4"}) in new_labels
    assert {node for node, _ in new_labels} <= {"n3", "n4"}


async def test_a_source_that_is_refused_at_its_start_ends_the_worker(cluster: FakeCluster, tmp_path: Path) -> None:
    refused = Refused("vcenter refuses the password")
    connections = Connections(
        lambda site, publisher, reader: [
            FakeSource("kubernetes", cluster, publisher, reader),
            FakeSource("vsphere", cluster, publisher, reader, fails=refused),
        ]
    )
    with pytest.raises(Refused, match="vcenter refuses the password"):
        async with running(settings_in(tmp_path), connections) as worker:
            await worker.until(lambda: False)


async def test_equal_input_gives_equal_records(tmp_path: Path) -> None:
    async def story(folder: Path) -> list[tuple[str, str, bytes | None]]:
        cluster = FakeCluster()
        cluster.node("n1", "h1")
        cluster.node("n2", "h1")
        cluster.pod("db-0", "n1", app="db")
        cluster.pod("db-1", "n2", app="db")
        async with running(settings_in(folder), cluster, roles=("kubernetes", "vsphere", "evaluator")) as worker:
            await worker.until(lambda: len(worker.records(VIOLATIONS)) == 1)
        return [(each.topic.short, each.key, without_times(each)) for each in worker.published]

    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert await story(one) == await story(other)


def without_times(record: Outgoing) -> bytes | None:
    """The value without what only the clock decides: both stories are told at different moments."""
    if record.value is None:
        return None
    fields = json.loads(record.value)
    return json.dumps({name: value for name, value in fields.items() if name not in TIMES}).encode()


async def test_an_evictor_of_its_own_says_why_it_evicts_nobody(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.pod("db-0", "n1", app="db", apart=True)
    cluster.pod("db-1", "n1", app="db", apart=True)
    settings = settings_in(tmp_path)
    sinks = settings.sinks.model_copy(update={"drs_rules": False})  # with them it would wait for DRS first
    settings = settings.model_copy(update={"evictions": EvictionSettings(wait=0), "sinks": sinks})
    async with running(settings, cluster, roles=("kubernetes", "vsphere", "evictor")) as worker:
        await worker.until(lambda: bool(worker.records(OUTCOMES)))
    [(key, outcome)] = worker.records(OUTCOMES)
    assert (key, outcome["kind"], outcome["result"], outcome["reason"]) == (
        "default/pod/shop/db-0",
        "evict",
        "refused",
        "shop/db-0 and shop/db-1: it has no owner that would make another",
    )


async def test_what_a_drs_rule_may_hold_is_known_from_the_moment_that_it_is_decided(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    known: list[frozenset[str] | None] = []
    settings, made = settings_in(tmp_path), cluster.connections()
    pipeline = Pipeline(settings, parse_roles(None), made, Metrics(), evaluator=FakeEvaluator(), on_event=None)
    known.append(pipeline._state.own_vms())
    picture = a_site(a_node("n1"), on={"n1": "h1"}, site=settings.site)
    pipeline._state.decide(settings.site, Decisions(picture))
    known.append(pipeline._state.own_vms())
    pipeline._state.decide("another", Decisions(a_site(a_node("n2"), on={"n2": "h1"}, site="another")))
    known.append(pipeline._state.own_vms())
    assert known == [None, {"vm-n1"}, {"vm-n1"}]
