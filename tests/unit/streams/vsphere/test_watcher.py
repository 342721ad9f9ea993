"""The vSphere watcher over a fake vCenter: what is listed, what is published, what is never deleted."""

import asyncio

import pytest
from support.build import a_node
from support.fakes.topics import FakeTopics
from support.fakes.vcenter import ENTER, FakeVCenter, a_vm
from support.watching import running
from support.workers.fleet import until

from underhost.schemas.errors import Conflict, Gone, InputError, Refused, Unreachable
from underhost.schemas.kubernetes import decode
from underhost.schemas.records import Listed
from underhost.schemas.topics import DRS_RULES, HOSTS, NODES, VMS, Topic
from underhost.schemas.vsphere import Cluster, DrsRule, Host, Vm
from underhost.streams.ports import Outgoing
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.timing import Timing
from underhost.streams.vsphere.changes import CLUSTER, HOST, LEAVE, MODIFY, VM, ClusterState, ObjectChange
from underhost.streams.vsphere.client import SessionLost
from underhost.streams.vsphere.collector import cluster_of
from underhost.streams.vsphere.watcher import VSphereSource
from underhost.streams.watching.records import outgoing_of

SETTINGS = VSphereSettings(url="https://vc", username="u", poll_interval=3600)


class Slept(list[float]):
    """A sleep that takes no time and remembers what was asked."""

    async def __call__(self, delay: float) -> None:
        self.append(delay)
        await asyncio.sleep(0)


def a_source(vcenter: FakeVCenter, topics: FakeTopics, *, settings: VSphereSettings = SETTINGS) -> VSphereSource:
    return VSphereSource("s", settings, topics, topics, connect=vcenter.connect, timing=Timing(sleep=Slept()))


async def test_the_first_list_is_published_and_then_marked_in_each_of_the_three_topics() -> None:
    vcenter, topics = FakeVCenter(hosts=2, vms=2), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        log = await topics.holding(8)
    assert [record.key for record in log] == [
        "s/host//host-1",
        "s/host//host-2",
        "s/vm//vm-1",
        "s/vm//vm-2",
        "s/cluster//C0",
        "s/listed/vsphere",
        "s/listed/vsphere",
        "s/listed/vsphere",
    ]
    assert {record.topic.short for record in log[5:]} == {"hosts", "vms", "drs-rules"}
    assert [decode(record.value or b"", Listed).count for record in log[5:]] == [2, 2, 1]
    vm = decode(log[2].value or b"", Vm)
    assert vm == Vm(
        name="node-1",
        id="vm-1",
        uuid="420b5c8e-0000-0000-0000-000000000001",
        host="host-1",
        hostname="node-1",
        cpus=4,
        memory_mib=8192,
        uid="vm-1",
        resource_version=vm.resource_version,
    )
    assert log[2].event_id == f"vm-1/{vm.resource_version}"
    assert decode(log[0].value or b"", Host).cpu_mhz == 16 * 2600
    assert source.ready.is_set()


async def test_a_vmotion_is_one_record_and_values_that_vcenter_repeats_are_none() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(10))
        vcenter.tell(ObjectChange(MODIFY, VM, "vm-2", {"runtime.host": "host-2", "guest.hostName": "node-2"}))
        vcenter.move("vm-1", to="host-3")
        log = await topics.holding(first + 1)
    assert [(record.key, decode(record.value or b"", Vm).host) for record in log[first:]] == [("s/vm//vm-1", "host-3")]


async def test_an_update_of_350_moves_in_truncated_pages_of_100_is_seen_whole() -> None:
    vcenter, topics = FakeVCenter(hosts=2, vms=350, page=100), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(2 + 350 + 1 + 3))
        assert [record.key for record in topics.records[-3:]] == ["s/listed/vsphere"] * 3  # not before the last page
        vcenter.move(*vcenter.vms, to="host-2")
        log = await topics.holding(first + 175)
    assert sorted(record.key for record in log[first:]) == sorted(f"s/vm//vm-{i}" for i in range(1, 351, 2))


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(SessionLost("the session has ended"), id="session expired"),
        pytest.param(Gone("InvalidCollectorVersion"), id="collector version lost"),
        pytest.param(Unreachable("connection refused"), id="server away"),
    ],
)
async def test_after_a_fault_a_new_session_lists_again_and_only_differences_are_published(fault: Exception) -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(10))
        vcenter.vms["vm-3"]["runtime.host"] = "host-1"  # nobody is told: it happens while the session is lost
        del vcenter.vms["vm-2"]
        vcenter.tell(fault)
        log = await topics.holding(first + 5)
    changes = [(record.key, record.value is None) for record in log[first:]]
    assert changes == [("s/vm//vm-3", False), ("s/vm//vm-2", True), *[("s/listed/vsphere", False)] * 3]
    assert (vcenter.logins, vcenter.logouts) == (2, 2)


async def test_an_expired_session_whose_poll_shows_nothing_is_no_empty_inventory() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(10))
        vcenter.blank_polls = 1
        source.refresh()
        log = await topics.holding(first + 3)
    assert [record.key for record in log[first:]] == ["s/listed/vsphere"] * 3
    assert source.shrunk == []
    assert vcenter.logins == 2


async def test_twenty_expired_sessions_delete_nothing_and_leak_no_session() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        for cycle in range(20):
            await topics.holding(10 + 3 * cycle)
            vcenter.tell(SessionLost("the session has ended"))
        log = await topics.holding(10 + 3 * 20)
    assert [record for record in log if record.value is None] == []
    assert vcenter.logins == vcenter.logouts == 21


async def test_a_vm_that_we_may_not_read_is_skipped_and_the_others_flow() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    vcenter.missing["vm-2"] = dict.fromkeys(vcenter.vms["vm-2"], "NoPermission")
    async with running(a_source(vcenter, topics)):
        await topics.holding(9)
    assert topics.keys(VMS) == ["s/vm//vm-1", "s/vm//vm-3"]


@pytest.mark.parametrize(("kind", "topic"), [(VM, VMS), (HOST, HOSTS)], ids=["a VM", "a host"])
async def test_what_becomes_unreadable_keeps_its_record(kind: str, topic: Topic) -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(10))
        vcenter.tell(ObjectChange(MODIFY, kind, f"{kind}-2", {}, {"name": "NoPermission", "parent": "NoPermission"}))
        vcenter.move("vm-1", to="host-3")
        await topics.holding(first + 1)
        source.refresh()
        await vcenter.until_polled(2)
    assert [record.key for record in topics.records[first:]] == ["s/vm//vm-1"]
    assert f"s/{kind}//{kind}-2" in topics.keys(topic)


async def test_a_host_that_is_withheld_is_unknown_and_not_the_old_one() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(10))
        vcenter.tell(ObjectChange(MODIFY, VM, "vm-2", {}, {"runtime.host": "NoPermission"}))
        log = await topics.holding(first + 1)
    assert decode(log[first].value or b"", Vm).host == ""


async def held_after_a_run(vcenter: FakeVCenter) -> FakeTopics:
    topics = FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        async with asyncio.timeout(10):
            await source.ready.wait()
    return FakeTopics({topic.name: await topics.state(topic, "s") for topic in (VMS, HOSTS, DRS_RULES)})


async def test_a_restarted_watcher_tombstones_what_vanished_meanwhile() -> None:
    vcenter = FakeVCenter(vms=5)
    topics = await held_after_a_run(vcenter)
    del vcenter.vms["vm-4"]
    async with running(a_source(vcenter, topics)):
        log = await topics.holding(4)
    assert [(record.key, record.value) for record in log[:1]] == [("s/vm//vm-4", None)]
    assert log[0].event_id == "s/vm//vm-4/deleted"
    assert [record.key for record in log[1:]] == ["s/listed/vsphere"] * 3


def doubts_in(log: list[Outgoing]) -> list[tuple[str, str]]:
    """(topic, doubt) of each marker."""
    return [
        (record.topic.short, decode(record.value or b"", Listed).doubt)
        for record in log
        if record.key == "s/listed/vsphere"
    ]


LOST = "vms: 3 of 5 objects of site s are missing in the new list; not believed"
TOPICS = ("hosts", "vms", "drs-rules")


async def test_an_inventory_that_lost_over_40_percent_deletes_nothing_until_accepted() -> None:
    vcenter = FakeVCenter(vms=5)
    topics = await held_after_a_run(vcenter)
    for vm in ("vm-1", "vm-2", "vm-3"):
        del vcenter.vms[vm]
    source = a_source(vcenter, topics)
    async with running(source):
        await topics.holding(3)
        source.refresh()
        await vcenter.until_polled(3)
        # Said to whoever reads the topics, once.
        assert doubts_in(topics.records) == [(topic, LOST) for topic in TOPICS]
        assert len(topics.records) == 3
        assert source.shrunk == [LOST]
        assert source.accept() == [LOST]
        log = await topics.holding(9)
        assert source.accept() == []
    assert [record.key for record in log[3:6]] == ["s/vm//vm-1", "s/vm//vm-2", "s/vm//vm-3"]
    assert doubts_in(log[3:]) == [(topic, "") for topic in TOPICS]
    assert source.shrunk == []


async def test_a_shrunken_inventory_stays_so_over_a_restart_even_if_all_of_it_is_back() -> None:
    vcenter = FakeVCenter(vms=5)
    topics = await held_after_a_run(vcenter)
    whole = dict(vcenter.vms)
    for vm in ("vm-1", "vm-2", "vm-3"):
        del vcenter.vms[vm]
    async with running(a_source(vcenter, topics)):
        await topics.holding(3)
    vcenter.vms = {ref: vm for ref, vm in whole.items() if ref != "vm-5"}
    source = a_source(vcenter, topics)
    async with running(source):
        await topics.holding(6)
        stopped = "vms: 1 of 5 objects of site s are missing in the new list; not believed"
        assert source.shrunk == [stopped]  # one alone would be believed, were there no doubt
        vcenter.tell(ObjectChange(ENTER, VM, "vm-5", whole["vm-5"]))
        vcenter.vms = whole
        source.refresh()
        await vcenter.until_polled(4)
        assert source.shrunk == [stopped]
        source.accept()
        log = await topics.holding(9)
    assert [record.key for record in log if record.value is None] == []
    assert doubts_in(log[6:]) == [(topic, "") for topic in TOPICS]


async def test_what_vanishes_after_a_person_has_accepted_a_loss_is_a_new_loss() -> None:
    vcenter = FakeVCenter(vms=10)
    topics = await held_after_a_run(vcenter)
    for number in range(1, 6):
        del vcenter.vms[f"vm-{number}"]
    source = a_source(vcenter, topics)
    async with running(source):
        await topics.holding(3)
        for number in range(6, 10):
            del vcenter.vms[f"vm-{number}"]  # nobody is told: the person has seen five of ten
        source.accept()
        vcenter.tell(SessionLost("the session has ended"))
        log = await topics.holding(3 + 5 + 3)
        assert source.shrunk == ["vms: 4 of 5 objects of site s are missing in the new list; not believed"]
    assert [record.key for record in log if record.value is None] == [f"s/vm//vm-{number}" for number in range(1, 6)]


async def test_an_empty_inventory_deletes_nothing() -> None:
    vcenter = FakeVCenter()
    topics = await held_after_a_run(vcenter)
    vcenter.vms, vcenter.hosts, vcenter.clusters = {}, {}, {}
    source = a_source(vcenter, topics)
    async with running(source):
        await vcenter.until_polled(2)
    assert [record.key for record in topics.records] == ["s/listed/vsphere"] * 3
    assert len(source.shrunk) == 3


async def test_a_vcenter_without_hosts_from_the_start_is_doubted_until_a_person_accepts_it() -> None:
    vcenter, topics = FakeVCenter(hosts=1, vms=0), FakeTopics()
    vcenter.hosts, vcenter.clusters = {}, {}
    source = a_source(vcenter, topics)
    async with running(source):
        await topics.holding(3)
        assert source.shrunk == ["hosts: vCenter shows none to site s; a right may be missing"]
        source.accept()
        log = await topics.holding(6)
    assert [doubt for _, doubt in doubts_in(log)][3:] == ["", "", ""]
    again = a_source(vcenter, topics)
    async with running(again):
        await topics.holding(9)
        assert again.shrunk == []


async def test_vms_that_vanish_in_several_updates_between_two_polls_count_together() -> None:
    vcenter, topics = FakeVCenter(vms=10), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(17))
        vcenter.remove("vm-1", "vm-2")
        await topics.holding(first + 2)
        vcenter.remove("vm-3", "vm-4")
        await topics.holding(first + 4)
        vcenter.remove("vm-5", "vm-6")
        log = await topics.holding(first + 7)
    deleted = [record.key for record in log[first:] if record.value is None]
    assert deleted == ["s/vm//vm-1", "s/vm//vm-2", "s/vm//vm-3", "s/vm//vm-4"]
    assert source.shrunk == ["vms: 6 of 10 objects of site s vanished at once; not believed"]
    assert doubts_in(log)[3:] == [(topic, source.shrunk[0]) for topic in TOPICS]


async def test_a_vcenter_that_was_set_up_anew_is_not_mixed_with_what_it_was() -> None:
    vcenter, topics = FakeVCenter(vms=3), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(10))
        vcenter.vms = {f"vm-9{number}": a_vm(f"node-{number}", "host-1") for number in (1, 2, 3)}  # other morefs
        vcenter.tell(SessionLost("the session has ended"))
        await topics.holding(first + 3)
        vcenter.move("vm-91", to="host-2")
        vcenter.tell(ObjectChange(MODIFY, HOST, "host-1", {"runtime.inMaintenanceMode": True}))
        log = await topics.holding(first + 4)
        assert [record.key for record in log[first:]] == [*["s/listed/vsphere"] * 3, "s/host//host-1"]
        source.accept()
        log = await topics.holding(first + 4 + 6 + 3)
    assert topics.keys(VMS) == ["s/vm//vm-91", "s/vm//vm-92", "s/vm//vm-93"]
    assert decode((await topics.state(VMS, "s"))["s/vm//vm-91"], Vm).host == "host-2"


async def test_the_last_vm_that_vanishes_is_an_empty_inventory_and_not_deleted() -> None:
    vcenter, topics = FakeVCenter(vms=1), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        await topics.holding(8)
        vcenter.remove("vm-1")
        vcenter.tell(ObjectChange(MODIFY, HOST, "host-1", {"runtime.inMaintenanceMode": True}))
        await topics.holding(9)
    assert topics.keys(VMS) == ["s/vm//vm-1"]
    assert source.shrunk == ["vms: 1 of 1 objects of site s vanished at once; not believed"]


async def test_rules_and_flags_that_vcenter_does_not_announce_are_read_on_refresh() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(10))
        vcenter.set_rules(DrsRule("keep-apart", "anti-affinity", ["vm-1", "vm-2"], cluster="C0", key=7))
        vcenter.hosts["host-2"]["runtime.inMaintenanceMode"] = True
        source.refresh()
        await topics.holding(first + 2)
        vcenter.set_rules()
        source.refresh()
        log = await topics.holding(first + 3)
    assert [record.key for record in log[first:]] == [
        "s/host//host-2",
        "s/drs-rule//C0:keep-apart",
        "s/drs-rule//C0:keep-apart",
    ]
    assert decode(log[first].value or b"", Host).state == "maintenance"
    rule = decode(log[first + 1].value or b"", DrsRule)
    assert (rule.vms, rule.enabled, rule.key, rule.uid) == (["vm-1", "vm-2"], True, 7, "domain-1-rule-7")
    assert log[first + 2].value is None


async def test_rules_and_flags_that_we_may_not_read_any_more_stay_as_they_were() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    vcenter.set_rules(DrsRule("keep-apart", "anti-affinity", ["vm-1", "vm-2"], cluster="C0", key=7))
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(11))
        vcenter.clusters["domain-1"] = cluster_of("domain-1", "C0", None)  # as the collector has it then
        source.refresh()
        await vcenter.until_polled(2)
    assert topics.records[first:] == []
    assert "s/drs-rule//C0:keep-apart" in topics.keys(DRS_RULES)


async def test_a_cluster_that_may_not_be_read_after_a_restart_stays_as_the_topics_have_it() -> None:
    vcenter = FakeVCenter()
    vcenter.set_rules(DrsRule("keep-apart", "anti-affinity", ["vm-1", "vm-2"], cluster="C0", key=7))
    topics = await held_after_a_run(vcenter)
    vcenter.clusters["domain-1"] = cluster_of("domain-1", "C0", None)
    async with running(a_source(vcenter, topics)):
        log = await topics.holding(3)
    assert [record.key for record in log] == ["s/listed/vsphere"] * 3
    assert topics.keys(DRS_RULES) == ["s/cluster//C0", "s/drs-rule//C0:keep-apart"]


async def test_a_cluster_record_carries_the_flags_and_not_the_rules() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    vcenter.clusters["domain-1"] = ClusterState("domain-1", "C0", False, True, (DrsRule("r", "other", cluster="C0"),))
    async with running(a_source(vcenter, topics)):
        log = await topics.holding(11)
    cluster = decode(next(record.value for record in log if record.key == "s/cluster//C0") or b"", Cluster)
    assert (cluster.drs, cluster.ha, cluster.rules) == (False, True, [])


async def test_only_the_named_clusters_are_watched_and_a_vm_that_leaves_them_is_gone() -> None:
    vcenter, topics = a_site_over_two_clusters(), FakeTopics()
    settings = SETTINGS.model_copy(update={"clusters": ("C0",)})
    async with running(a_source(vcenter, topics, settings=settings)):
        first = len(await topics.holding(8))
        assert topics.keys(VMS) == ["s/vm//vm-1", "s/vm//vm-2"]
        vcenter.move("vm-2", to="host-3")
        log = await topics.holding(first + 1)
        assert [(record.key, record.value) for record in log[first:]] == [("s/vm//vm-2", None)]
        assert topics.keys(HOSTS) == ["s/host//host-1", "s/host//host-2"]
        vcenter.tell(ObjectChange(MODIFY, HOST, "host-3", {"parent": "domain-1"}))
        log = await topics.holding(first + 4)
    assert [record.key for record in log[first + 1 :]] == ["s/host//host-3", "s/vm//vm-2", "s/vm//vm-3"]


async def test_a_cluster_that_gets_another_name_is_known_by_it_at_once() -> None:
    vcenter, topics = FakeVCenter(hosts=1, vms=1), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(6))
        vcenter.tell(ObjectChange(MODIFY, CLUSTER, "domain-1", {"name": "C9"}))
        log = await topics.holding(first + 3)
    assert [record.key for record in log[first:]] == ["s/host//host-1", "s/cluster//C9", "s/cluster//C0"]
    assert decode(log[first].value or b"", Host).cluster == "C9"
    assert log[first + 2].value is None


async def test_a_cluster_that_goes_takes_its_record_along_and_its_hosts_have_none() -> None:
    vcenter, topics = a_site_over_two_clusters(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(11))
        vcenter.tell(ObjectChange(LEAVE, CLUSTER, "domain-2", {}))
        log = await topics.holding(first + 2)
    assert [record.key for record in log[first:]] == ["s/host//host-3", "s/cluster//C1"]
    assert (decode(log[first].value or b"", Host).cluster, log[first + 1].value) == ("", None)


def a_site_over_two_clusters() -> FakeVCenter:
    """VMs 1 and 2 in C0 and 3 in C1, each on a host of its own."""
    vcenter = FakeVCenter(hosts=3, vms=3)
    vcenter.clusters["domain-2"] = ClusterState("domain-2", "C1", True, True, ())
    vcenter.hosts["host-3"]["parent"] = "domain-2"
    return vcenter


def node_outgoing(name: str, vm: str) -> Outgoing:
    uuid = f"420b5c8e-0000-0000-0000-00000000000{vm[-1]}"
    return outgoing_of(NODES, f"s/node//{name}", a_node(name).spec(providerID=f"vsphere://{uuid}").build())


ALL_HOSTS = ["s/host//host-1", "s/host//host-2", "s/host//host-3"]


async def test_where_no_cluster_is_named_those_count_that_hold_a_nodes_vm() -> None:
    vcenter, topics = a_site_over_two_clusters(), FakeTopics()
    await topics.publish(node_outgoing("n1", "vm-1"))
    source = a_source(vcenter, topics)
    async with running(source):
        await asyncio.wait_for(source.ready.wait(), 60)
        assert topics.keys(HOSTS) == ALL_HOSTS[:2]
        assert topics.keys(VMS) == ["s/vm//vm-1", "s/vm//vm-2"]
        assert [key for key in topics.keys(DRS_RULES) if "cluster" in key] == ["s/cluster//C0"]
        before = len(topics.records)
        vcenter.move("vm-1", to="host-3")  # and its cluster counts from now on
        await topics.holding(before + 4)
        assert (topics.keys(HOSTS), source.shrunk) == (ALL_HOSTS, [])
        assert "s/vm//vm-3" in topics.keys(VMS)


async def test_before_a_node_is_known_all_clusters_count_and_to_leave_one_is_no_collapse() -> None:
    vcenter, topics = a_site_over_two_clusters(), FakeTopics()
    settings = SETTINGS.model_copy(update={"poll_interval": 0.01})
    source = a_source(vcenter, topics, settings=settings)
    async with running(source):
        await asyncio.wait_for(source.ready.wait(), 60)
        assert topics.keys(HOSTS) == ALL_HOSTS
        before = len(topics.records)
        await topics.publish(node_outgoing("n1", "vm-3"))
        await topics.holding(before + 6)  # two hosts, two VMs and a cluster go
        assert (topics.keys(HOSTS), source.shrunk) == (ALL_HOSTS[2:], [])
        assert topics.keys(VMS) == ["s/vm//vm-3"]


async def test_two_clusters_of_one_name_keep_their_hosts_flags_and_rules() -> None:
    vcenter, topics = FakeVCenter(hosts=3, vms=3), FakeTopics()
    for ref, drs in (("domain-1", True), ("domain-2", False)):
        rule = DrsRule("apart", "other", cluster="C0", key=int(drs))
        vcenter.clusters[ref] = ClusterState(ref, "C0", drs, True, (rule,))
    vcenter.hosts["host-3"]["parent"] = "domain-2"
    async with running(a_source(vcenter, topics)):
        log = await topics.holding(13)
    assert topics.keys(DRS_RULES) == [
        "s/cluster//C0 (domain-1)",
        "s/cluster//C0 (domain-2)",
        "s/drs-rule//C0 (domain-1):apart",
        "s/drs-rule//C0 (domain-2):apart",
    ]
    assert {each.key: decode(each.value or b"", Host).cluster for each in log if "/host/" in each.key} == {
        "s/host//host-1": "C0 (domain-1)",
        "s/host//host-2": "C0 (domain-1)",
        "s/host//host-3": "C0 (domain-2)",
    }


@pytest.mark.parametrize(
    ("named", "hosts"),
    [
        pytest.param("C0", ["host-1", "host-2", "host-3"], id="by the name that both have: both"),
        pytest.param("C0 (domain-2)", ["host-3"], id="by the name that one has alone"),
    ],
)
async def test_of_two_clusters_of_one_name_those_are_watched_that_are_named(named: str, hosts: list[str]) -> None:
    vcenter, topics = FakeVCenter(hosts=3, vms=3), FakeTopics()
    vcenter.clusters["domain-2"] = ClusterState("domain-2", "C0", True, True, ())
    vcenter.hosts["host-3"]["parent"] = "domain-2"
    settings = SETTINGS.model_copy(update={"clusters": (named,)})
    source = a_source(vcenter, topics, settings=settings)
    async with running(source):
        await asyncio.wait_for(source.ready.wait(), 60)
    assert topics.keys(HOSTS) == sorted(f"s/host//{host}" for host in hosts)


async def test_a_cluster_that_is_not_there_is_said_with_those_that_are() -> None:
    vcenter = FakeVCenter()
    settings = SETTINGS.model_copy(update={"clusters": ("C9",)})
    with pytest.raises(Refused, match=r"cluster C9 is not there, or not ours to see \(we see: C0\)"):
        await a_source(vcenter, FakeTopics(), settings=settings).run()
    assert vcenter.logins == vcenter.logouts == 1


async def test_templates_are_no_vms() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    vcenter.vms["vm-9"] = a_vm("golden-9", "host-1", **{"config.template": True})
    async with running(a_source(vcenter, topics)):
        await topics.holding(10)
        vcenter.tell(ObjectChange(ENTER, VM, "vm-8", a_vm("new-8", "host-1")))
        vcenter.tell(ObjectChange(LEAVE, VM, "vm-9", {}))
        await topics.holding(11)
    assert topics.keys(VMS) == [f"s/vm//vm-{i}" for i in (1, 2, 3, 8)]


async def test_a_vm_whose_files_are_out_of_reach_keeps_its_uuid() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(10))
        vcenter.tell(
            ObjectChange(MODIFY, VM, "vm-1", {"config.uuid": None, "config.template": None, "runtime.host": "host-2"})
        )
        log = await topics.holding(first + 1)
    vm = decode(log[first].value or b"", Vm)
    assert (vm.uuid, vm.host) == ("420b5c8e-0000-0000-0000-000000000001", "host-2")


async def test_hosts_carry_custom_attributes_datacenter_and_folder_as_labels() -> None:
    vcenter, topics = FakeVCenter(hosts=1, vms=0), FakeTopics()
    vcenter.hosts["host-1"]["customValue"] = {101: "r7", 102: ""}
    vcenter.attribute_names = {101: "rack", 102: "empty"}
    vcenter.placement = {"domain-1": {"datacenter": "DC0", "folder": "east"}}
    async with running(a_source(vcenter, topics)):
        log = await topics.holding(5)
    assert decode(log[0].value or b"", Host).labels == {"datacenter": "DC0", "folder": "east", "rack": "r7"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Refused("wrong user name or password"), id="wrong password"),
        pytest.param(Unreachable("connection refused"), id="unreachable"),
        pytest.param(InputError("passwordFile: missing"), id="missing password file"),
    ],
)
async def test_before_the_first_list_a_failed_login_is_raised(fault: Exception) -> None:
    vcenter = FakeVCenter()
    vcenter.refusals = [fault]
    with pytest.raises(type(fault), match=str(fault)):
        await a_source(vcenter, FakeTopics()).run()


@pytest.mark.parametrize("fault", [Gone("the view is gone"), Conflict("InvalidArgument: token")], ids=["gone", "late"])
async def test_a_list_that_vcenter_breaks_off_is_no_answer(
    fault: Exception,
) -> None:
    vcenter = FakeVCenter()
    vcenter.refusals = [fault]
    with pytest.raises(Unreachable, match=str(fault)):
        await a_source(vcenter, FakeTopics()).run()


async def test_after_the_first_list_it_retries_for_ever_and_slowly_where_it_is_refused() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    slept = Slept()
    source = VSphereSource("s", SETTINGS, topics, topics, connect=vcenter.connect, timing=Timing(sleep=slept))
    async with running(source):
        await topics.holding(10)
        vcenter.refusals = [
            Unreachable("503"),
            Unreachable("503"),
            Refused("wrong user name or password"),
            InputError("passwordFile: missing"),
        ]
        vcenter.tell(SessionLost("the session has ended"))
        await topics.holding(13)
    assert len(slept) == 5
    assert slept[0] == 0.0  # the first failure is retried at once
    assert 0.8 <= slept[1] <= 1.6 <= slept[2] <= 3.2
    assert slept[3] == 50.0  # a new password in the file is found within a minute


@pytest.mark.parametrize(
    ("lasts", "longest"), [pytest.param(1.0, 3.2, id="hardly begun"), pytest.param(5.0, 0.0, id="of some length")]
)
async def test_a_session_that_ends_at_once_each_time_is_begun_ever_more_slowly(lasts: float, longest: float) -> None:
    vcenter, topics, slept, now = FakeVCenter(), FakeTopics(), Slept(), [1000.0]
    timing = Timing(sleep=slept)
    source = VSphereSource("s", SETTINGS, topics, topics, connect=vcenter.connect, timing=timing, clock=lambda: now[0])
    async with running(source):
        records = 10
        for host in ("host-2", "host-3", "host-2"):
            await topics.holding(records)
            now[0] += lasts
            vcenter.move("vm-1", to=host)
            await topics.holding(records + 1)
            vcenter.tell(SessionLost("the session has ended"))
            records += 4
        await topics.holding(records)
    assert slept[0] == 0.0
    assert longest / 2 <= slept[2] <= longest


async def test_a_broker_that_is_away_loses_no_change() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(10))
        topics.faults = [Unreachable("no broker"), Unreachable("no broker")]
        vcenter.move("vm-1", to="host-3")
        log = await topics.holding(first + 1)
    assert [record.key for record in log[first:]] == ["s/vm//vm-1"]
    assert vcenter.logins == 1


async def test_a_vcenter_that_missed_two_polls_is_stale_until_it_answers_again() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    now = [1000.0]
    source = VSphereSource(
        "s",
        SETTINGS.model_copy(update={"poll_interval": 30.0}),
        topics,
        topics,
        connect=vcenter.connect,
        timing=Timing(sleep=Slept()),
        clock=lambda: now[0],
    )
    assert source.stale == ""  # not listed yet is another thing
    async with running(source):
        first = len(await topics.holding(10))
        now[0] = 1059.0
        assert source.stale == ""
        now[0] = 1060.0
        assert source.stale == "vCenter has not answered for over 60 s"
        vcenter.move("vm-1", to="host-3")
        await topics.holding(first + 1)
        assert source.stale == ""


async def test_a_marker_now_and_then_says_that_vcenter_is_still_heard() -> None:
    vcenter, topics = FakeVCenter(), FakeTopics()
    now = [1000.0]
    settings = SETTINGS.model_copy(update={"poll_interval": 30.0})
    source = VSphereSource("s", settings, topics, topics, connect=vcenter.connect, clock=lambda: now[0])
    async with running(source):
        await topics.holding(10)
        now[0] += 20
        source.refresh()
        await vcenter.until_polled(2)
        assert len(topics.records) == 10
        now[0] += 9.9  # a poll never comes to the second
        source.refresh()
        log = await topics.holding(13)
    assert [record.key for record in log[10:]] == ["s/listed/vsphere"] * 3
    first, second = (decode(log[place].value or b"", Listed) for place in (9, 12))
    assert (first.epoch, first.count) == (second.epoch, second.count)
    assert 0 < first.seen <= second.seen
    assert log[9].event_id != log[12].event_id or first.seen == second.seen


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        pytest.param({}, 60.0, id="two polls of thirty seconds"),
        pytest.param({"poll_interval": 5.0}, 30.0, id="thirty seconds at least"),
        pytest.param({"poll_interval": 5.0, "stale_after": 10.0}, 10.0, id="as a person sets it"),
    ],
)
def test_how_long_vcenter_may_be_silent(given: dict[str, float], bound: float) -> None:
    assert VSphereSettings(**given).stale_bound == bound


async def test_what_a_former_owner_published_late_and_what_is_lost_is_published_again() -> None:
    vcenter, topics = FakeVCenter(hosts=2, vms=3), FakeTopics()
    often = SETTINGS.model_copy(update={"poll_interval": 0.05})
    source = VSphereSource(
        "s", often, topics, topics, connect=vcenter.connect, timing=Timing(sleep=Slept(), compare=0.0)
    )
    async with running(source):
        await topics.holding(9)
        vms = topics.live[VMS.name]
        right = objects(vms)
        vms["s/vm//vm-1"] = right["s/vm//vm-1"].replace(b"host-1", b"host-2")
        del vms["s/vm//vm-2"]
        vms["s/vm//gone"] = right["s/vm//vm-3"]
        await until(lambda: objects(vms) == right)


def objects(records: dict[str, bytes]) -> dict[str, bytes]:
    """The records without the marker, which says when vCenter was last heard of."""
    return {key: value for key, value in records.items() if "/listed/" not in key}


# ---------------------------------------------------------------------------------------------------------------- tags
def labels_of(topics: FakeTopics) -> dict[str, dict[str, str]]:
    """The labels of each host as the topic holds them."""
    hosts = (decode(value, Host) for key, value in topics.live[HOSTS.name].items() if "/listed/" not in key)
    return {host.id: host.labels for host in hosts}


@pytest.mark.parametrize("again", ["session", "worker"])
async def test_until_tags_are_read_again_those_that_the_topic_holds_stand(again: str) -> None:
    """While vCenter starts, its REST API is up later than what hosts are read from: every host lost its tags."""
    vcenter, topics = FakeVCenter(hosts=2, vms=1), FakeTopics()
    vcenter.attribute_names, vcenter.hosts["host-1"]["customValue"] = {7: "owner"}, {7: "ops"}
    vcenter.tags = {"host-1": {"rack": "r7"}, "domain-1": {"zone": "a", "rack": "any"}}
    before = {
        "host-1": {"owner": "ops", "tag:rack": "r7", "tag:zone": "a"},
        "host-2": {"tag:rack": "any", "tag:zone": "a"},
    }
    async with running(a_source(vcenter, topics)):
        first = len(await topics.holding(7))
        assert labels_of(topics) == before
        vcenter.tags = None
        if again == "session":
            vcenter.tell(Unreachable("connection refused"))
            await topics.holding(first + 3)
    source = a_source(vcenter, topics)
    async with running(source):
        first = len(await topics.holding(len(topics.records) + 3))
        assert labels_of(topics) == before
        vcenter.hosts["host-2"]["name"] = "esx-two"
        vcenter.tell(ObjectChange(MODIFY, HOST, "host-2", {"name": "esx-two"}))
        await topics.holding(first + 1)
        assert labels_of(topics) == before, "a change of a host takes no tag away either"
        vcenter.tags = {"host-1": {"rack": "r8"}}
        source.refresh()
        await topics.holding(first + 3)
    assert labels_of(topics) == {"host-1": {"owner": "ops", "tag:rack": "r8"}, "host-2": {}}
    assert vcenter.logins == (3 if again == "session" else 2)


async def test_a_row_that_cannot_be_read_tells_no_tags() -> None:
    vcenter, topics = FakeVCenter(hosts=1, vms=0), FakeTopics({HOSTS.name: {"s/host//host-1": b""}})
    vcenter.tags = None
    async with running(a_source(vcenter, topics)):
        await topics.holding(5)
    assert labels_of(topics) == {"host-1": {}}
