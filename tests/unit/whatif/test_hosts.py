"""ESXi hosts that fail or are emptied, tried: where VMs go by capacity and rules, and when a node is lost for it."""

from collections.abc import Iterable
from dataclasses import replace as with_parts
from typing import Any

import pytest
from msgspec.structs import replace
from support.answers.whatif import moves, pending, plan, tried, vm_moves
from support.build import HOST, Built, a_node, a_pod, a_site, term

from underhost.agents.site.join import located
from underhost.agents.site.snapshot import Joining, Options, Snapshot
from underhost.agents.whatif.each import each, table
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.pods import HELD
from underhost.agents.whatif.steps import Add, Fail
from underhost.schemas.errors import InputError
from underhost.schemas.vsphere import Cluster, DrsRule, Host, Vm

WEB = {"app": "web"}
GIB = 1024


def host(name: str, memory: int = 64, mhz: int = 100_000, **more: Any) -> Host:
    """A host whose id is not its name; memory in GiB."""
    return Host(name=f"esx-{name}", id=name, **{"cluster": "C0", "cpu_mhz": mhz, "memory_mib": memory * GIB, **more})


def site(
    on: dict[str, str],
    *objects: Built,
    hosts: Iterable[Host] | None = None,
    rules: Iterable[DrsRule] = (),
    cluster: Cluster | None = None,
    memory: int = 16,
    vms: Iterable[Vm] = (),
) -> Snapshot:
    """Nodes on hosts; each node's VM has 4 vCPUs and `memory` GiB."""
    made = a_site(*(a_node(name) for name in on), *objects, on=on, hosts=hosts or [host(f"h{n}") for n in (1, 2, 3)])
    sized = {ref: replace(vm, cpus=4, memory_mib=memory * GIB) for ref, vm in made.vms.items()}
    return with_parts(
        made,
        vms=sized | {vm.ref: vm for vm in vms},
        clusters={"C0": cluster or Cluster(name="C0")},
        rules={("C0", rule.name): rule for rule in rules},
    )


def rule(kind: str, *nodes: str, **more: Any) -> DrsRule:
    return DrsRule(name=f"{kind}-{'-'.join(nodes)}", type=kind, vms=[f"vm-{node}" for node in nodes], **more)


THREE = {"n1": "h1", "n2": "h2", "n3": "h3"}


def using(made: Snapshot, **fields: Any) -> Snapshot:
    """The VM of n1 with these fields."""
    return with_parts(made, vms={**made.vms, "vm-n1": replace(made.vms["vm-n1"], **fields)})


# ----------------------------------------------------------------------------------------------------- HA, where VMs go
@pytest.mark.parametrize(
    ("made", "moved"),
    [
        pytest.param(site({**THREE, "n4": "h2"}), ["1 n1 esx-h1>esx-h3"], id="to the host that is least full"),
        pytest.param(site(THREE), ["1 n1 esx-h1>esx-h2"], id="of equal hosts to the first by name"),
        pytest.param(
            site({**THREE, "n4": "h1"}),
            ["1 n1 esx-h1>esx-h2", "1 n4 esx-h1>esx-h3"],
            id="one after another, each counted",
        ),
        pytest.param(
            site(THREE, hosts=[host("h1"), host("h2", 31), host("h3", 32)]),
            ["1 n1 esx-h1>esx-h3"],
            id="not where memory is short",
        ),
        pytest.param(
            site(THREE, hosts=[host("h1"), host("h2", mhz=2_399), host("h3", mhz=2_400)]),
            ["1 n1 esx-h1>esx-h3"],
            id="not where its vCPUs would have less than 300 MHz each",
        ),
        pytest.param(
            site(THREE, hosts=[host("h1"), host("h2", 0, 0), host("h3", 17)]),
            ["1 n1 esx-h1>esx-h2"],
            id="to a host that does not say what it has",
        ),
        pytest.param(
            site(THREE, hosts=[host("h1"), host("h2", state="maintenance"), host("h3")]),
            ["1 n1 esx-h1>esx-h3"],
            id="not to a host in maintenance mode",
        ),
        pytest.param(
            site(THREE, hosts=[host("h1"), host("h2", cluster="C1"), host("h3")]),
            ["1 n1 esx-h1>esx-h3"],
            id="not to another vSphere cluster",
        ),
        pytest.param(
            site(THREE, rules=[rule("anti-affinity", "n1", "n2")]),
            ["1 n1 esx-h1>esx-h3"],
            id="not beside a VM that a rule keeps apart from it",
        ),
        pytest.param(
            site(THREE, rules=[rule("anti-affinity", "n1", "n2", enabled=False)]),
            ["1 n1 esx-h1>esx-h2"],
            id="a disabled rule keeps nothing apart",
        ),
        pytest.param(
            site(THREE, rules=[rule("anti-affinity", "n1", "n2", "n3")]),
            ["1 n1 esx-h1>esx-h2"],
            id="a rule is broken rather than a VM left down, unless it is mandatory",
        ),
        pytest.param(
            site(THREE, rules=[rule("affinity", "n1", "n3")]),
            ["1 n1 esx-h1>esx-h3"],
            id="to the VM that a rule keeps it with",
        ),
        pytest.param(
            using(site(THREE, hosts=[host("h1"), host("h2", datastores=["d2"]), host("h3")]), datastores=["d1"]),
            ["1 n1 esx-h1>esx-h3"],
            id="not to a host that does not reach its datastore",
        ),
        pytest.param(
            using(site(THREE, hosts=[host("h1"), host("h2", networks=["l2"]), host("h3")]), networks=["l1"]),
            ["1 n1 esx-h1>esx-h3"],
            id="not to a host without its network",
        ),
        pytest.param(
            site(THREE, vms=[Vm(name="dns", id="vm-9", host="esx-h1", memory_mib=GIB)]),
            ["1 dns esx-h1>esx-h3", "1 n1 esx-h1>esx-h2"],
            id="the largest first, those that are no node too, a host named by its name",
        ),
        pytest.param(
            site(THREE, vms=[Vm(name="off", id="vm-9", host="h1", power="off")]),
            ["1 n1 esx-h1>esx-h2"],
            id="a VM that is off stays off",
        ),
    ],
)
def test_ha_restarts_vms(made: Snapshot, moved: list[str]) -> None:
    document = tried(made, "fail host/esx-h1")
    assert vm_moves(document) == moved
    assert (moves(document), pending(document)) == ([], {})


def test_pods_keep_their_nodes_and_what_shares_a_host_then_is_new() -> None:
    pods = [
        a_pod(f"w{at}").on(f"n{at}").labels(WEB).owned_by("StatefulSet/w").apart(term(HOST, WEB)) for at in (1, 2, 3)
    ]
    document = tried(site(THREE, *pods), "fail host/esx-h1")
    assert (moves(document), pending(document)) == ([], {})
    found = [
        (one.severity, one.pod, one.peers, one.domain.value if one.domain else "") for one in document.new_findings
    ]
    assert found == [
        ("physical", "shop/w1", ["shop/w2"], "esx-h2"),
        ("unsatisfiable", "shop/w1", ["shop/w2", "shop/w3"], "C0"),  # three to keep apart, two hosts left
    ]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(site(THREE, hosts=[host("h1"), host("h2", 31), host("h3", 31)]), id="no host has room"),
        pytest.param(site(THREE, cluster=Cluster(name="C0", ha=False)), id="HA is off in the cluster"),
        pytest.param(
            site(THREE, rules=[rule("anti-affinity", "n1", "n2", "n3", mandatory=True)]),
            id="a mandatory rule forbids every host",
        ),
    ],
)
def test_a_node_whose_vm_nobody_restarts_is_lost(made: Snapshot) -> None:
    pods = {
        "shop/web": a_pod("web").on("n1").owned_by("ReplicaSet/web").build(),
        "shop/db-0": a_pod("db-0").on("n1").owned_by("StatefulSet/db").build(),
    }
    document = tried(with_parts(made, pods=pods), "fail host/esx-h1")
    assert vm_moves(document) == []
    assert moves(document) == ["1 web n1>n2 fail"]
    assert pending(document) == {"db-0": {HELD: 0}}


def test_without_ha_every_node_of_the_host_is_lost() -> None:
    made = site(
        {**THREE, "n4": "h1"},
        a_pod("a").on("n1").owned_by("ReplicaSet/w"),
        a_pod("b").on("n4").owned_by("ReplicaSet/w"),
    )
    document = tried(made, "fail host/h1", ha=False)
    assert vm_moves(document) == []
    assert moves(document) == ["1 a n1>n2 fail", "1 b n4>n3 fail"]


def test_hosts_that_fail_at_once_restart_nothing_on_one_another() -> None:
    document = what_if(site(THREE), Options(), [Fail(("host/esx-h1", "host/esx-h2"))]).document
    assert vm_moves(document) == ["1 n1 esx-h1>esx-h3", "1 n2 esx-h2>esx-h3"]
    after = tried(site(THREE), "fail host/h1", "fail host/h2")
    assert vm_moves(after) == ["1 n1 esx-h1>esx-h2", "2 n1 esx-h2>esx-h3", "2 n2 esx-h2>esx-h3"]


def test_vms_of_hosts_that_fail_at_once_start_together_where_a_rule_must_be_kept() -> None:
    made = site(THREE, rules=[rule("affinity", "n1", "n2", mandatory=True)])
    document = what_if(made, Options(), [Fail(("host/esx-h1", "host/esx-h2"))]).document
    assert vm_moves(document) == ["1 n1 esx-h1>esx-h3", "1 n2 esx-h2>esx-h3"]


def test_of_hosts_that_fail_at_once_the_largest_vm_starts_first() -> None:
    made = site({"n1": "h1", "n3": "h3"}, vms=[Vm(name="db", id="vm-9", host="h2", memory_mib=48 * GIB)])
    document = what_if(made, Options(), [Fail(("host/esx-h1", "host/esx-h2"))]).document
    assert vm_moves(document) == ["1 db esx-h2>esx-h3"]  # 64 GiB are full then, and n1 stays down


def test_a_host_that_is_named_twice_fails_once() -> None:
    document = what_if(site(THREE), Options(), [Fail(("host/esx-h1", "host/h1"))]).document
    assert (vm_moves(document), moves(document)) == (["1 n1 esx-h1>esx-h2"], [])


@pytest.mark.parametrize(
    ("added", "moved"),
    [
        pytest.param(host("h4"), ["3 n2 esx-h2>esx-h4"], id="a new one takes VMs"),
        pytest.param(host("h3", cluster="C1"), [], id="one that is in another cluster now takes none"),
    ],
)
def test_hosts_that_a_plan_adds_count_in_the_next_failure(added: Host, moved: list[str]) -> None:
    made = site({"n2": "h2", "n3": "h3"}, hosts=[host("h1"), host("h2"), host("h3", 16)])
    inventory = with_parts(a_site(), hosts={added.id: added}, vsphere=True)
    document = what_if(made, Options(), [Fail(("host/h1",)), Add(inventory, {}), Fail(("host/h2",))]).document
    assert vm_moves(document) == moved


def test_what_a_host_reaches_is_as_a_plan_adds_it() -> None:
    made = using(site(THREE, hosts=[host("h1"), host("h2"), host("h3", 20), host("h4", 8)]), datastores=["d1"])
    inventory = with_parts(a_site(), hosts={"h2": host("h2", datastores=["d2"])}, vsphere=True)
    steps = [*plan("maintain h4"), Add(inventory, {}), *plan("maintain h1")]
    assert vm_moves(what_if(made, Options(), steps).document) == ["3 n1 esx-h1>-"]


# ----------------------------------------------------------------------------------------------------- maintenance mode
def test_maintenance_moves_vms_and_no_pod() -> None:
    document = tried(site(THREE, a_pod("a").on("n1").owned_by("ReplicaSet/w")), "maintain host/esx-h1")
    assert vm_moves(document) == ["1 n1 esx-h1>esx-h2"]
    assert (moves(document), pending(document)) == ([], {})


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(site(THREE, rules=[rule("anti-affinity", "n1", "n2", "n3")]), id="a rule would be broken"),
        pytest.param(site(THREE, hosts=[host("h1"), host("h2", 31), host("h3", 31)]), id="no host has room"),
        pytest.param(site(THREE, cluster=Cluster(name="C0", drs=False)), id="DRS is off"),
        pytest.param(using(site(THREE), pinned="GPU"), id="it has a device of its host"),
    ],
)
def test_a_vm_that_cannot_move_keeps_its_host_waiting(made: Snapshot) -> None:
    assert vm_moves(tried(made, "maintain host/esx-h1")) == ["1 n1 esx-h1>-"]


@pytest.mark.parametrize("tries", ["maintain host/h1", "fail host/h1"])
def test_vms_that_a_rule_keeps_together_go_where_all_of_them_have_room(tries: str) -> None:
    made = site(
        {"n1": "h1", "n2": "h1", "n3": "h3", "n4": "h3"},
        hosts=[host("h1"), host("h2", 24), host("h3", 64)],
        rules=[rule("affinity", "n1", "n2", mandatory=True)],
    )
    made = with_parts(made, vms={**made.vms, "vm-n4": replace(made.vms["vm-n4"], memory_mib=15 * GIB)})
    assert vm_moves(tried(made, tries)) == ["1 n1 esx-h1>esx-h3", "1 n2 esx-h1>esx-h3"]


@pytest.mark.parametrize(
    "stuck",
    [
        pytest.param({"pinned": "GPU"}, id="pinned"),
        pytest.param({"memory_mib": 40 * GIB}, id="too large"),
        pytest.param({"memory_mib": 12 * GIB}, id="without room beside the other"),
    ],
)
def test_a_vm_stays_with_one_that_cannot_leave_its_host(stuck: dict[str, Any]) -> None:
    hosts, together = [host("h1"), host("h3", 42)], rule("affinity", "n1", "n2", mandatory=True)
    made = using(site(THREE | {"n2": "h1"}, hosts=hosts, rules=[together]), **stuck)
    assert vm_moves(tried(made, "maintain h1")) == ["1 n1 esx-h1>-", "1 n2 esx-h1>-"]


def test_room_is_not_looked_for_with_one_that_cannot_leave_its_host() -> None:
    hosts, together = [host("h1"), host("h2", 25), host("h3", 48)], rule("affinity", "n1", "n2")
    made = site({"n1": "h1", "n2": "h1", "n3": "h3"}, hosts=hosts, rules=[together], memory=20)
    made = using(made, pinned="GPU", memory_mib=6 * GIB)
    assert vm_moves(tried(made, "maintain h1")) == ["1 n1 esx-h1>-", "1 n2 esx-h1>esx-h2"]


def test_a_host_still_waiting_for_maintenance_may_take_what_another_host_loses() -> None:
    made = site(THREE, rules=[rule("anti-affinity", "n1", "n2", "n3")])
    assert vm_moves(tried(made, "maintain h1", "fail host/h2")) == ["1 n1 esx-h1>-", "2 n2 esx-h2>esx-h1"]


def test_a_host_in_maintenance_takes_nothing_of_the_next_that_fails() -> None:
    assert vm_moves(tried(site(THREE), "maintain h1", "fail host/h2")) == [
        "1 n1 esx-h1>esx-h2",
        "2 n1 esx-h2>esx-h3",
        "2 n2 esx-h2>esx-h3",
    ]


# ----------------------------------------------------------------------------------------------------------------- each
def test_each_host_fails_alone_and_the_worst_is_first() -> None:
    pods = [
        a_pod("w1").on("n1").labels(WEB).owned_by("StatefulSet/w").apart(term(HOST, WEB)),
        a_pod("w2").on("n2").labels(WEB).owned_by("StatefulSet/w").apart(term(HOST, WEB)),
        a_pod("agent").on("n3").owned_by("DaemonSet/agent"),
    ]
    roomy = [host("h1"), host("h2", 20), host("h3", 40)]
    found = each(site(THREE, *pods, hosts=roomy), Options(), "host")
    assert [(one.target, one.nodes, one.pods, vm_moves(one), list(one.pending)) for one in found] == [
        ("host/esx-h2", ["n2"], 1, ["1 n2 esx-h2>esx-h1"], []),
        ("host/esx-h1", ["n1"], 1, ["1 n1 esx-h1>esx-h3"], []),
        ("host/esx-h3", ["n3"], 0, ["1 n3 esx-h3>esx-h1"], []),
    ]
    assert [[one.severity for one in target.new_findings] for target in found] == [["physical"], [], []]
    lost = each(site(THREE, *pods, hosts=roomy), Options(), "host", ha=False)
    assert [(one.target, list(one.pending)) for one in lost] == [
        ("host/esx-h1", ["shop/w1"]),
        ("host/esx-h2", ["shop/w2"]),
        ("host/esx-h3", []),
    ]


def test_each_says_what_failing_it_alone_says() -> None:
    pods = [
        a_pod(f"w{at}").on(f"n{at % 3 + 1}").labels(WEB).owned_by("ReplicaSet/w").apart(term(HOST, WEB))
        for at in range(4)
    ]
    made = site(THREE, *pods)
    for kind, ha in (("host", True), ("host", False), ("node", True)):
        for one in each(made, Options(), kind, ha=ha):
            alone = what_if(made, Options(), [*plan(f"fail {one.target}", ha=ha)]).document
            for part in ("moves", "vm_moves", "pending", "new_findings", "resolved_findings"):
                assert getattr(one, part) == getattr(alone, part), (one.target, part)


def test_each_host_needs_hosts_and_leaves_those_without_nodes_out() -> None:
    with pytest.raises(InputError, match="no host is known"):
        each(a_site(a_node("n1")), Options(), "host")
    idle = site({"n1": "h1"}, hosts=[host("h1"), host("h2"), host("h3", state="disconnected")])
    assert [one.target for one in each(idle, Options(), "host")] == ["host/esx-h1"]


def test_two_hosts_of_one_name_are_told_apart_by_their_ids() -> None:
    twins = [replace(host("h1"), name="esx"), replace(host("h2"), name="esx"), host("h3")]
    with pytest.raises(InputError, match="give the id of one: h1, h2"):
        tried(site(THREE, hosts=twins), "fail host/esx")
    assert vm_moves(tried(site(THREE, hosts=twins), "fail host/h2"))


def test_the_n_plus_1_table_counts_what_each_failure_leaves() -> None:
    pods = [a_pod(f"w{at}").on(f"n{at}").labels(WEB).owned_by("StatefulSet/w").apart(term(HOST, WEB)) for at in (1, 2)]
    rows = table(each(site(THREE, *pods, hosts=[host("h1"), host("h2", 20), host("h3", 40)]), Options(), "host"))
    assert rows.select("target", "nodes", "pods", "vm_moves", "moves", "pending", "physical").rows() == [
        ("host/esx-h2", ["n2"], 1, 1, 0, 0, 1),
        ("host/esx-h1", ["n1"], 1, 1, 0, 0, 0),
        ("host/esx-h3", ["n3"], 0, 1, 0, 0, 0),
    ]


# ------------------------------------------------------------------------------------------ hosts that a label names
KEY = "example.com/hypervisor"


def by_label(*objects: Built) -> Snapshot:
    """Three nodes, two of them on pve-1, as their labels say."""
    nodes = (a_node(name).labels({KEY: host}) for name, host in {"n1": "pve-1", "n2": "pve-1", "n3": "pve-2"}.items())
    return located(with_parts(a_site(*nodes, *objects), joining=Joining(label=KEY)))


def test_a_host_that_a_label_names_takes_its_nodes_with_it() -> None:
    pods = [a_pod("web-1").labels(WEB).owned_by("ReplicaSet/web").on("n1")]
    failed = tried(by_label(*pods), "fail host/pve-1")
    assert (moves(failed), vm_moves(failed)) == (["1 web-1 n1>n3 fail"], [])


def test_a_label_that_a_plan_sets_moves_the_node() -> None:
    apart = [term(HOST, WEB)]
    pods = [a_pod(f"web-{n}").labels(WEB).apart(*apart).owned_by("ReplicaSet/web").on(f"n{n}") for n in (1, 3)]
    told = tried(by_label(*pods), f"label n3={KEY}=pve-1")
    assert [(one.severity, one.domain.value) for one in told.new_findings if one.domain] == [("physical", "pve-1")]


def test_no_inventory_can_be_added_to_hosts_that_a_label_names() -> None:
    added = Add(site({"n9": "h1"}), {})
    with pytest.raises(InputError, match="hosts are told by the node label"):
        what_if(by_label(), Options(), [added])
