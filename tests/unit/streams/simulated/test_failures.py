"""Hosts that die, come back, or are emptied for maintenance."""

from support.simulation.operated import OperatedSite, a_site

from underhost.schemas.kubernetes import Node
from underhost.schemas.vsphere import DrsRule
from underhost.streams.simulated.objects import is_ready, plain


def ready(node: Node) -> str:
    return next(item.status for item in node.status.conditions or [] if item.type == "Ready")


def nodes_on(site: OperatedSite, host: str) -> list[str]:
    return [vm.name for vm in site.vsphere.vms().values() if site.vsphere.host_of(vm.name) == host]


def test_ha_restarts_the_vms_of_a_dead_host_on_the_emptiest_others_and_asks_no_rule() -> None:
    site = a_site()
    site.fail_host("esx-1")
    site.advance(14)
    assert nodes_on(site, "esx-1") == ["kni-worker", "kni-worker2"]  # nobody knows yet
    site.advance(2)
    assert (nodes_on(site, "esx-1"), nodes_on(site, "esx-4")) == ([], ["kni-control-plane", "kni-worker"])
    assert nodes_on(site, "esx-2") == ["kni-worker2", "kni-worker3", "kni-worker4"]


def test_a_node_on_a_dead_host_is_lost_until_its_vm_has_booted_elsewhere() -> None:
    site = a_site()
    site.fail_host("esx-1")
    site.advance(41)
    node = site.kubernetes.nodes()["kni-worker2"]
    assert ready(node) == "Unknown"
    assert [(taint["key"], taint["effect"]) for taint in plain(node.spec.taints)] == [
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    pods = [pod for pod in site.kubernetes.pods().values() if pod.spec.node_name == "kni-worker2"]
    assert pods and not any(is_ready(pod) for pod in pods)
    site.advance(20)
    node = site.kubernetes.nodes()["kni-worker2"]
    assert (ready(node), plain(node.spec.taints)) == ("True", [])
    assert all(is_ready(pod) for pod in site.kubernetes.pods().values() if pod.spec.node_name == "kni-worker2")


def test_a_host_that_is_back_takes_vms_again() -> None:
    site = a_site()
    site.fail_host("esx-1")
    site.advance(120)
    site.restore_host("esx-1")
    site.move_vm("kni-worker", "esx-1")
    site.advance(2)
    assert nodes_on(site, "esx-1") == ["kni-worker"]


async def test_a_host_enters_maintenance_once_its_vms_are_gone_as_the_rules_allow() -> None:
    site = a_site(vmotion=1.0)
    await site.vsphere.add_rule("iberia", DrsRule("a", "anti-affinity", ["vm-103", "vm-105", "vm-107"]))
    site.enter_maintenance("esx-1")
    site.advance(0.5)
    assert site.vsphere.hosts()["host-11"].state == "connected"
    site.advance(1)
    assert site.vsphere.hosts()["host-11"].state == "maintenance"
    assert site.vsphere.host_of("kni-worker2") == "esx-4"  # the only host without another database


async def test_a_host_waits_for_a_vm_that_no_other_can_take() -> None:
    site = a_site()
    await site.vsphere.add_rule("iberia", DrsRule("a", "anti-affinity", ["vm-101", "vm-103", "vm-105", "vm-107"]))
    site.enter_maintenance("esx-1")
    site.advance(60)
    assert (site.vsphere.hosts()["host-11"].state, nodes_on(site, "esx-1")) == ("connected", ["kni-worker2"])
    (rule,) = await site.vsphere.rules("iberia")
    await site.vsphere.remove_rule("iberia", rule)
    site.advance(60)
    assert (site.vsphere.hosts()["host-11"].state, nodes_on(site, "esx-1")) == ("maintenance", [])
