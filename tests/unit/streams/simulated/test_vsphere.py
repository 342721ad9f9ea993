"""The simulated vCenter: vMotion, the rules and the DRS that keeps them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.simulation.operated import OperatedSite, a_site

from underhost.agents.compiled.model import compile
from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.site.join import join
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import Conflict, Gone, Refused
from underhost.schemas.vsphere import DrsRule

DATABASE_NODES = ["vm-103", "vm-105", "vm-107"]  # kni-worker2, kni-worker4, kni-worker6


def apart(name: str, *vms: str, **flags: object) -> DrsRule:
    return DrsRule(name, "anti-affinity", list(vms), **flags)  # type: ignore[arg-type]


async def test_a_vmotion_ends_after_its_time_and_not_before() -> None:
    site = a_site(vmotion=2.0)
    site.move_vm("kni-worker6", "esx-1")
    site.advance(1.9)
    assert site.vsphere.host_of("kni-worker6") == "esx-3"
    site.advance(0.1)
    assert site.vsphere.host_of("kni-worker6") == "esx-1"


async def test_an_explicit_move_ignores_the_rules_and_drs_mends_it_at_its_next_run() -> None:
    site = a_site(vmotion=1.0, drs_interval=5.0)
    await site.vsphere.add_rule("iberia", apart("underhost-a", *DATABASE_NODES))
    site.move_vm("kni-worker6", "esx-1")
    site.advance(4.9)
    assert site.vsphere.host_of("kni-worker6") == site.vsphere.host_of("kni-worker2") == "esx-1"
    site.advance(1.1)
    assert site.vsphere.moves == [
        ("kni-worker6", "esx-3", "esx-1", "operator"),
        ("kni-worker6", "esx-1", "esx-3", "DRS"),
    ]


async def test_drs_waits_for_a_migration_that_is_under_way() -> None:
    site = a_site(vmotion=3.0, drs_interval=5.0)
    await site.vsphere.add_rule("iberia", apart("underhost-a", *DATABASE_NODES))
    site.advance(4)
    site.move_vm("kni-worker6", "esx-1")  # arrives at 7 s, after the first run of DRS
    site.advance(20)
    assert site.vsphere.moves == [
        ("kni-worker6", "esx-3", "esx-1", "operator"),
        ("kni-worker6", "esx-1", "esx-3", "DRS"),
    ]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(None, id="no rule forbids it"),
        pytest.param(apart("off", *DATABASE_NODES, enabled=False), id="the rule is disabled"),
        pytest.param(apart("others", "vm-102", "vm-104"), id="the rule is about other VMs"),
    ],
)
async def test_drs_leaves_a_moved_vm_where_it_is_when(rule: DrsRule | None) -> None:
    site = a_site()
    if rule is not None:
        await site.vsphere.add_rule("iberia", rule)
    site.move_vm("kni-worker6", "esx-1")
    site.advance(60)
    assert site.vsphere.host_of("kni-worker6") == "esx-1"


async def test_drs_moves_nothing_when_no_host_is_free_of_conflicts() -> None:
    site = a_site()
    everywhere = ("vm-101", "vm-102", "vm-104", "vm-106")  # one VM on each of the four hosts
    await site.vsphere.add_rule("iberia", apart("four", *everywhere, "vm-103"))
    site.advance(60)
    assert site.vsphere.moves == []


async def test_drs_looks_at_all_rules_before_it_chooses_a_host() -> None:
    site = a_site()
    await site.vsphere.add_rule("iberia", apart("a", "vm-103", "vm-107"))  # worker2 and worker6
    await site.vsphere.add_rule("iberia", apart("b", "vm-107", "vm-106"))  # worker6 and worker5, on esx-3
    await site.vsphere.add_rule("iberia", apart("c", "vm-107", "vm-101"))  # worker6 and the control plane, on esx-4
    site.move_vm("kni-worker6", "esx-1")
    site.advance(60)
    assert site.vsphere.host_of("kni-worker6") == "esx-2"


async def test_an_affinity_rule_gathers_its_vms() -> None:
    site = a_site()
    await site.vsphere.add_rule("iberia", DrsRule("together", "affinity", ["vm-101", "vm-102"]))
    site.advance(60)
    assert site.vsphere.host_of("kni-control-plane") == site.vsphere.host_of("kni-worker") == "esx-4"


async def test_of_two_contradicting_rules_the_newer_is_disabled_in_silence() -> None:
    site = a_site()
    await site.vsphere.add_rule("iberia", DrsRule("together", "affinity", ["vm-102", "vm-103"]))
    await site.vsphere.add_rule("iberia", apart("apart", "vm-102", "vm-103"))
    rules = await site.vsphere.rules("iberia")
    assert [(rule.name, rule.key, rule.enabled) for rule in rules] == [("together", 1, True), ("apart", 2, False)]


async def test_a_rule_is_edited_in_place_and_removed_by_its_key() -> None:
    site = a_site()
    await site.vsphere.add_rule("iberia", apart("a", "vm-102", "vm-103"))
    (rule,) = await site.vsphere.rules("iberia")
    await site.vsphere.edit_rule("iberia", apart("a", "vm-107", "vm-104", key=rule.key))
    (edited,) = await site.vsphere.rules("iberia")
    assert (edited.key, edited.uid, edited.vms) == (1, rule.uid, ["vm-104", "vm-107"])
    await site.vsphere.remove_rule("iberia", edited)
    assert await site.vsphere.rules("iberia") == []


async def test_refusals_of_the_rule_api() -> None:
    vsphere = a_site().vsphere
    await vsphere.add_rule("iberia", apart("a", "vm-102", "vm-103"))
    with pytest.raises(Conflict, match="a rule named a exists"):
        await vsphere.add_rule("iberia", apart("a", "vm-104", "vm-105"))
    with pytest.raises(Refused, match="unknown VMs: vm-999"):
        await vsphere.add_rule("iberia", apart("b", "vm-104", "vm-999"))
    with pytest.raises(Refused, match="needs two VMs"):
        await vsphere.add_rule("iberia", apart("b", "vm-104", "vm-104"))
    with pytest.raises(Gone, match="no rule with key 7"):
        await vsphere.edit_rule("iberia", apart("a", "vm-104", "vm-105", key=7))
    with pytest.raises(Refused, match="no vSphere cluster elsewhere"):
        await vsphere.rules("elsewhere")


async def test_refusals_of_a_move() -> None:
    site = a_site()
    with pytest.raises(Gone, match="no VM kni-worker9"):
        site.move_vm("kni-worker9", "esx-1")
    with pytest.raises(Gone, match="no host esx-9"):
        site.move_vm("kni-worker6", "esx-9")
    site.move_vm("kni-worker6", "esx-1")
    with pytest.raises(Refused, match="already in progress"):
        site.move_vm("kni-worker6", "esx-2")


async def test_only_an_empty_host_enters_maintenance_mode() -> None:
    vsphere = a_site(vmotion=1.0).vsphere
    with pytest.raises(Refused, match="kni-worker5, kni-worker6 did not leave within 60 s"):
        await vsphere.enter_maintenance("esx-3", 60)
    live = await vsphere.live_host("esx-3")
    assert (live.is_connected, live.in_maintenance) == (True, False)
    assert sorted(live.vms.values()) == ["kni-worker5", "kni-worker6"]


async def test_an_empty_host_is_put_into_maintenance_mode_and_taken_out() -> None:
    site = a_site(vmotion=1.0)
    for vm in ("kni-worker5", "kni-worker6"):
        site.move_vm(vm, "esx-1")
    site.advance(2)
    assert await site.vsphere.is_done(await site.vsphere.enter_maintenance("esx-3", 60))
    assert (await site.vsphere.live_host("esx-3")).in_maintenance
    assert await site.vsphere.is_done(await site.vsphere.exit_maintenance("esx-3", 60))
    assert not (await site.vsphere.live_host("esx-3")).in_maintenance


async def test_drs_balances_what_differs_by_more_than_two_machines() -> None:
    site = a_site(vmotion=1.0)
    site.enter_maintenance("esx-1")
    site.advance(10)
    assert sorted(site.vsphere.load().values()) == [0, 2, 2, 3]
    site.exit_maintenance("esx-1")
    site.advance(60)
    assert sorted(site.vsphere.load().values()) == [1, 2, 2, 2]
    assert [who for _, _, _, who in site.vsphere.moves[-1:]] == ["DRS"]


async def test_drs_keeps_what_a_rule_gathers_when_it_balances() -> None:
    site = a_site(vmotion=1.0)
    site.enter_maintenance("esx-2")
    site.advance(10)
    everyone = sorted(site.vsphere.vms())
    await site.vsphere.add_rule("iberia", DrsRule("together", "affinity", everyone))
    site.exit_maintenance("esx-2")
    site.advance(200)
    assert {held.host for held in site.vsphere.vms().values()} == {site.vsphere.vms()[everyone[0]].host}


@given(st.integers(0, 2**32))
@settings(max_examples=15)
async def test_drs_never_brings_databases_together_once_it_has_the_rules_that_we_make(seed: int) -> None:
    site = await with_databases(seed)
    snapshot = snapshot_of(site)
    rules = RulesByCluster(Options()).of(snapshot, compile(snapshot, Options()))
    assert [rule.vms for rule in rules] == [DATABASE_NODES]
    for rule in rules:
        await site.vsphere.add_rule("iberia", rule)
    assert not met(site, random.Random(seed))


async def test_without_the_rules_drs_brings_databases_together() -> None:
    for seed in range(10):
        assert met(await with_databases(seed), random.Random(seed))


async def with_databases(seed: int) -> OperatedSite:
    """The site with its three databases bound, which keep apart by host name."""
    site = a_site(seed=seed, vmotion=1.0)
    databases = [pod for name, pod in sorted(site.kubernetes.pods().items()) if "mssql" in name]
    for pod, node in zip(databases, ("kni-worker2", "kni-worker4", "kni-worker6"), strict=True):
        await site.kubernetes.bind_pod("customapp", pod.metadata.name, pod.metadata.uid, node)
    return site


def snapshot_of(site: OperatedSite) -> Snapshot:
    """What the topics would hold of it."""
    nodes, vms, hosts = site.kubernetes.nodes(), site.vsphere.vms(), site.vsphere.hosts()
    return Snapshot(
        site="demo",
        nodes=nodes,
        pods=site.kubernetes.pods(),
        vms=vms,
        hosts=hosts,
        clusters={site.vsphere.cluster.name: site.vsphere.cluster},
        node_hosts=join(nodes.values(), vms.values(), hosts.values()),
        vsphere=True,
    )


def met(site: OperatedSite, dice: random.Random) -> bool:
    """Whether DRS alone, as hosts go into maintenance and come back, ever brought two databases to one host."""
    together = False
    for _ in range(12):
        host = dice.choice(("esx-1", "esx-2", "esx-3", "esx-4"))
        site.enter_maintenance(host)
        for _ in range(30):
            site.advance(1)
            hosts = [site.vsphere.vms()[vm].host for vm in DATABASE_NODES]
            together = together or len(set(hosts)) < len(hosts)
        site.exit_maintenance(host)
        site.advance(30)
    return together
