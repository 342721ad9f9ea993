"""What `underhost repair` plans, case by case: which VM moves, which pod goes, what stays and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from support.build import HOST, Built, a_budget, a_node, a_pod, a_site, a_workload, nodes, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.repair.evictions import Repair, Repairs
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import RepairPlan, to_json
from underhost.schemas.errors import InputError
from underhost.schemas.vsphere import Admission, Cluster, DrsRule
from underhost.schemas.vsphere import Host as EsxiHost

APART = term(HOST, {"app": "db"})


def two_on_one_host(*more: Built, hosts: int = 3, **cluster: Any) -> Snapshot:
    """n1 and n2 run replicas of one database on host h1; n3 is on h3, the others are empty."""
    pods = [a_pod(f"db-{at}").labels(app="db").apart(APART).on(f"n{at}") for at in (1, 2)]
    esxi = [EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0", memory_mib=16384) for at in range(1, hosts + 1)]
    on = {"n1": "h1", "n2": "h1", "n3": "h3"}
    site = a_site(*nodes(*on), *pods, *more, on=on, hosts=esxi, clusters=[Cluster("C0", **cluster)])
    return replace(site, vms={ref: structs.replace(vm, memory_mib=8192) for ref, vm in site.vms.items()})


def with_vm(site: Snapshot, vm: str, **fields: Any) -> Snapshot:
    return replace(site, vms={**site.vms, vm: structs.replace(site.vms[vm], **fields)})


def with_host(site: Snapshot, host: str, **fields: Any) -> Snapshot:
    return replace(site, hosts={**site.hosts, host: structs.replace(site.hosts[host], **fields)})


def with_rules(site: Snapshot, *rules: DrsRule) -> Snapshot:
    return replace(site, rules={(rule.cluster, rule.name): rule for rule in rules})


def moves(plan: RepairPlan) -> list[tuple[str | None, str, str]]:
    return [(step.vm or step.pod, step.from_, step.to) for step in plan.steps]


SITE = two_on_one_host()


def test_one_vm_of_a_pair_moves_to_the_emptiest_host() -> None:
    plan = repair(SITE, Options())
    assert moves(plan) == [("n1", "esx-1", "esx-2")]
    assert (plan.objective.findings_left, plan.objective.vmotions, plan.objective.memory_mib) == (0, 1, 8192)
    assert (plan.optimal, plan.unrepairable, len(plan.resolved_findings)) == (True, [], 1)
    assert plan.steps[0].because == [plan.resolved_findings[0].id]


def test_the_same_site_in_another_order_has_the_same_plan() -> None:
    turned = replace(
        SITE,
        **{
            name: dict(reversed(getattr(SITE, name).items()))
            for name in ("nodes", "pods", "vms", "hosts", "node_hosts")
        },
    )
    assert to_json(repair(turned, Options())) == to_json(repair(SITE, Options()))


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param(two_on_one_host(overrides={"vm-n1": "manual"}), ("n2", "esx-1", "esx-2"), id="an override"),
        pytest.param(
            with_vm(SITE, "vm-n1", pinned="PCI device 0"), ("n2", "esx-1", "esx-2"), id="a passthrough device"
        ),
        pytest.param(with_host(SITE, "h2", state="maintenance"), ("n1", "esx-1", "esx-3"), id="maintenance"),
        pytest.param(
            two_on_one_host(admission=Admission(failover_hosts=["h2"])), ("n1", "esx-1", "esx-3"), id="a failover host"
        ),
        pytest.param(with_host(SITE, "h2", memory_mib=4096), ("n1", "esx-1", "esx-3"), id="no room"),
        pytest.param(
            with_host(with_vm(SITE, "vm-n1", datastores=["ds-1"]), "h2", datastores=["ds-2"]),
            ("n1", "esx-1", "esx-3"),
            id="a datastore out of reach",
        ),
        pytest.param(
            with_rules(SITE, DrsRule("licence", "vm-host", ["vm-n1"], ["h1", "h3"], cluster="C0")),
            ("n1", "esx-1", "esx-3"),
            id="a VM-Host rule",
        ),
        pytest.param(
            with_rules(SITE, DrsRule("by-hand", "affinity", ["vm-n1", "vm-n3"], cluster="C0")),
            ("n2", "esx-1", "esx-2"),
            id="a rule that keeps VMs together",
        ),
    ],
)
def test_what_vsphere_forbids_is_no_way_out(site: Snapshot, expected: tuple[str, str, str]) -> None:
    assert moves(repair(site, Options())) == [expected]


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        pytest.param(["vm-n1"], [("n2", "esx-1", "esx-2")], id="of two one is off"),
        pytest.param(["vm-n1", "vm-n2"], [], id="both are off: no vMotion parts them"),
    ],
)
def test_of_vms_that_must_part_those_that_run_leave(off: list[str], expected: list[tuple[str, str, str]]) -> None:
    site = SITE
    for vm in off:
        site = with_vm(site, vm, power="off")
    plan = repair(site, Options())
    assert (moves(plan), plan.optimal) == (expected, True)
    assert len(plan.left_findings) == (not expected)


def test_a_vm_that_is_off_is_left_by_all_that_run_and_these_by_one_another() -> None:
    on = {"n1": "h1", "n2": "h1", "n3": "h1"}
    pods = [a_pod(f"db-{at}").labels(app="db").apart(APART).on(f"n{at}") for at in (1, 2, 3)]
    site = a_site(*nodes(*on), *pods, on=on, hosts=list(SITE.hosts.values()), clusters=[Cluster("C0")])
    plan = repair(with_vm(site, "vm-n3", power="off"), Options())
    assert moves(plan) == [("n1", "esx-1", "esx-2"), ("n2", "esx-1", "esx-3")]
    assert (plan.optimal, plan.left_findings) == (True, [])


def test_a_rule_that_a_person_wrote_keeps_vms_apart_all_the_same() -> None:
    site = with_host(SITE, "h2", state="maintenance")
    site = with_rules(site, DrsRule("by-hand", "anti-affinity", ["vm-n1", "vm-n3"], cluster="C0"))
    assert moves(repair(site, Options())) == [("n2", "esx-1", "esx-3")]


def test_a_host_that_does_not_say_what_it_has_takes_anything_and_the_plan_says_so() -> None:
    site = with_host(with_host(SITE, "h2", memory_mib=0), "h3", memory_mib=8192)
    plan = repair(site, Options())
    assert [(from_, to) for _, from_, to in moves(plan)] == [("esx-1", "esx-2")]
    assert [(one.what, one.why) for one in plan.not_judged] == [("the room of 1 host", "the inventory does not say it")]


def test_what_vmotions_copy_is_not_said_where_the_memory_of_one_vm_is_not_known() -> None:
    third = a_pod("db-3").labels(app="db").apart(APART).on("n4")
    site = a_site(*nodes("n4"), third, on={"n4": "h1"}, hosts=list(SITE.hosts.values()))
    parts = {name: {**getattr(SITE, name), **getattr(site, name)} for name in ("nodes", "pods", "vms", "node_hosts")}
    plan = repair(replace(SITE, **parts), Options())
    assert (plan.objective.vmotions, plan.objective.memory_mib, plan.lower_bound.memory_mib) == (2, 0, 0)
    assert [(one.what, one.why) for one in plan.not_judged] == [("the memory of 1 VM", "the inventory does not say it")]


def test_what_stays_is_told_with_its_smallest_reason() -> None:
    site = two_on_one_host(hosts=1, overrides={"vm-n1": "manual"})
    site = replace(site, hosts={**site.hosts, "h3": EsxiHost(id="h3", name="esx-3", cluster="C1")})
    plan = repair(site, Options(), RepairTerms(evictions=None))
    [left] = plan.unrepairable
    assert plan.steps == []
    assert left.conflict == ["no evictions are asked for"]  # there is no other host: nothing else contradicts
    assert left.would_help == ["one more host in vSphere cluster C0"]
    pinned = two_on_one_host(overrides={"vm-n1": "manual", "vm-n2": "disabled"})
    [left] = repair(pinned, Options(), RepairTerms(evictions=None)).unrepairable
    assert left.conflict[:2] == [
        "VM n1 stays where it is: its DRS override is manual: a person moves it",
        "VM n2 stays where it is: its DRS override is disabled: a person moves it",
    ]
    assert left.would_help == ["let VM n1 move", "let VM n2 move"]


def agents(on: Mapping[str, str], replicas: Sequence[str] = ()) -> Snapshot:
    """A DaemonSet's pods that must be apart, with hosts h1 to h3; on some nodes it is other replicas instead."""
    pods = [a_pod(f"db-{node}").labels(app="db").apart(APART).on(node) for node in on]
    owned = [pod if node in replicas else pod.owned_by("DaemonSet/db") for node, pod in zip(on, pods, strict=True)]
    esxi = [EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in (1, 2, 3)]
    return a_site(*nodes(*on), *owned, on=on, hosts=esxi, clusters=[Cluster("C0")])


OF_NODES = "its pods belong to their nodes, and no VM is moved for these"


def test_no_vm_moves_to_part_pods_that_belong_to_their_nodes() -> None:
    plan = repair(agents({"n1": "h1", "n2": "h1", "n3": "h2"}), Options(), RepairTerms(evictions=None))
    assert (plan.steps, plan.optimal) == ([], False)
    assert [one.conflict for one in plan.unrepairable] == [[OF_NODES]]


def test_other_pods_of_the_finding_are_parted_all_the_same() -> None:
    on = {"n1": "h1", "n2": "h1", "n3": "h1", "n4": "h1"}
    plan = repair(agents(on, replicas=["n1", "n2"]), Options(), RepairTerms(evictions=None))
    assert sorted(vm for vm, _, _ in moves(plan)) == ["n1", "n2"]
    assert [(one.pod, one.peers) for one in plan.left_findings] == [("shop/db-n3", ["shop/db-n4"])]
    assert [(one.conflict, one.would_help) for one in plan.unrepairable] == [([OF_NODES], [])]


def misplaced(*more: Built, would_do: Sequence[str] = ("n3",), scheduler: str = "default-scheduler") -> Snapshot:
    """A pod on a node that its selector excludes, and another replica on n2; these nodes would do."""
    pod = (
        a_pod("web-1")
        .labels(app="web")
        .owned_by("ReplicaSet/web")
        .spec(nodeSelector={"disk": "ssd"}, schedulerName=scheduler)
    )
    ssd = [a_node(name).labels(disk="ssd" if name in would_do else None) for name in ("n2", "n3")]
    owner = a_workload("ReplicaSet", "web", 2)
    other = a_pod("web-2").labels(app="web").owned_by("ReplicaSet/web").on("n2")
    return a_site(a_node("n1"), *ssd, owner, pod.on("n1"), other, *more, on={"n1": "h1", "n2": "h2", "n3": "h3"})


def test_what_no_vmotion_ends_takes_an_eviction() -> None:
    plan = repair(misplaced(), Options())
    assert [(step.kind, step.pod, step.from_) for step in plan.steps] == [("evict", "shop/web-1", "n1")]
    assert (plan.objective.evictions, plan.objective.findings_left, plan.optimal) == (1, 0, True)


@pytest.mark.parametrize(
    ("site", "asked", "why"),
    [
        pytest.param(
            misplaced(a_budget("web", {"app": "web"}, min_available=2)),
            RepairTerms(),
            "shop/web-1 cannot be evicted: budget shop/web allows no eviction",
            id="a budget",
        ),
        pytest.param(misplaced(), RepairTerms(evictions=None), "no evictions are asked for", id="no evictions"),
    ],
)
def test_a_pod_that_may_not_go_stays_with_the_reason(site: Snapshot, asked: RepairTerms, why: str) -> None:
    plan = repair(site, Options(), asked)
    assert (plan.steps, [one.conflict for one in plan.unrepairable]) == ([], [[why]])


def test_a_pod_that_may_land_where_a_host_is_shared_is_not_evicted() -> None:
    apart = term(HOST, {"app": "web"})
    lost = (
        a_pod("web-1")
        .labels(app="web")
        .owned_by("ReplicaSet/web")
        .apart(apart)
        .spec(nodeSelector={"disk": "ssd"}, schedulerName="default-scheduler")
    )
    other = a_pod("web-2").labels(app="web").owned_by("ReplicaSet/web").apart(apart).on("n2")
    ssd = [a_node(name).labels(disk="ssd") for name in ("n2", "n3", "n4")]
    on = {"n1": "h1", "n2": "h2", "n3": "h2", "n4": "h4"}  # n3 shares the host of n2
    site = a_site(a_node("n1"), *ssd, a_workload("ReplicaSet", "web", 2), lost.on("n1"), other, on=on)
    [left] = repair(site, Options()).unrepairable
    assert left.conflict == [
        "shop/web-1 cannot be evicted: its scheduler may put the next one where more is broken than now"
    ]


def evictor_would(site: Snapshot) -> list[str]:
    """The pods that the evictor would evict for what is broken."""
    evaluator, terms = Evaluator(Options()), RepairTerms().evictions
    report = evaluator.update(site)
    assert terms is not None
    found = Repairs(site, report, evaluator, terms).of(report.findings)
    return [each.candidate.pod for each in found if isinstance(each, Repair)]


@pytest.mark.parametrize("scheduler", ["underhost", "default-scheduler"])
@pytest.mark.parametrize(
    ("would_do", "goes"),
    [
        pytest.param(("n3",), True, id="to a host of its own"),
        pytest.param(("n2",), False, id="only to the host of the other replica"),
        pytest.param(("n2", "n3"), True, id="to one of both"),
    ],
)
def test_the_plan_evicts_what_the_evictor_would(would_do: Sequence[str], goes: bool, scheduler: str) -> None:
    site = misplaced(would_do=would_do, scheduler=scheduler)
    assert evictor_would(site) == (["shop/web-1"] if goes else [])
    plan = repair(site, Options())
    assert [step.pod for step in plan.steps] == evictor_would(site)


def test_a_pod_whose_next_one_could_only_join_its_other_replicas_stays() -> None:
    [left] = repair(misplaced(would_do=("n2",)), Options()).unrepairable
    assert left.conflict == [
        "shop/web-1 cannot be evicted: the next one would share its host with all its other replicas"
    ]


def test_a_quorum_on_one_host_is_parted() -> None:
    masters = [a_node(name).labels({"node-role.kubernetes.io/control-plane": ""}) for name in ("n1", "n2", "n3")]
    esxi = [EsxiHost(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in (1, 2, 3)]
    site = a_site(*masters, a_pod("web").on("n1"), on={"n1": "h1", "n2": "h1", "n3": "h3"}, hosts=esxi)
    plan = repair(site, Options())
    assert moves(plan) == [("n1", "esx-1", "esx-2")]
    assert [one.severity for one in plan.resolved_findings] == ["quorum"]


@pytest.mark.parametrize(("off", "goes"), [("vm-n1", "n2"), ("vm-n2", "n1")])
def test_a_member_whose_vm_is_off_counts_and_one_that_runs_leaves(off: str, goes: str) -> None:
    masters = [a_node(name).labels({"node-role.kubernetes.io/control-plane": ""}) for name in ("n1", "n2", "n3")]
    site = a_site(*masters, on={"n1": "h1", "n2": "h1", "n3": "h3"}, hosts=list(SITE.hosts.values()))
    plan = repair(with_vm(site, off, power="off"), Options())
    assert (moves(plan), plan.optimal) == ([(goes, "esx-1", "esx-2")], True)


def test_only_what_is_asked_for_is_repaired() -> None:
    [finding] = repair(SITE, Options()).resolved_findings
    assert moves(repair(SITE, Options(), RepairTerms(finding=finding.id))) == [("n1", "esx-1", "esx-2")]
    shared = two_on_one_host(a_pod("web", "other").on("n3"))
    assert moves(repair(shared, Options(), RepairTerms(namespaces=frozenset({"other"})))) == []
    with pytest.raises(InputError, match="namespace others is not there; did you mean other"):
        repair(shared, Options(), RepairTerms(namespaces=frozenset({"others"})))
    assert moves(repair(SITE, Options(), RepairTerms(most_vmotions=0, evictions=None))) == []
    with pytest.raises(InputError, match="finding 1234: not there, or no move ends it"):
        repair(SITE, Options(), RepairTerms(finding="1234"))


def test_room_is_counted_with_what_stays_free() -> None:
    assert moves(repair(SITE, Options(), RepairTerms(room=Room(headroom=60), evictions=None))) == []
    assert repair(SITE, Options(), RepairTerms(room=Room(headroom=60, reserved=True))).objective.vmotions == 1


@pytest.mark.parametrize(
    ("admission", "expected"),
    [
        pytest.param(Admission(memory_percent=40), [("n1", "esx-1", "esx-2")], id="40 % of the memory"),
        pytest.param(Admission(memory_percent=60), [], id="60 % of the memory"),
        pytest.param(Admission(cpu_percent=60), [("n1", "esx-1", "esx-2")], id="CPU, of which hosts say nothing"),
        pytest.param(Admission(hosts=1), [("n1", "esx-1", "esx-2")], id="one of three hosts"),
        pytest.param(Admission(hosts=2), [], id="two of three hosts"),
        pytest.param(None, [("n1", "esx-1", "esx-2")], id="off"),
    ],
)
def test_what_admission_control_keeps_free_stays_free_if_that_is_asked_for(
    admission: Admission | None, expected: list[tuple[str, str, str]]
) -> None:
    site = two_on_one_host(admission=admission)
    asked = RepairTerms(room=Room(admission=True), evictions=None)
    assert moves(repair(site, Options(), asked)) == expected
    assert moves(repair(site, Options())) == [("n1", "esx-1", "esx-2")]
