"""The details of a node and a host: how large it is, and what its pods ask of it."""

import pytest
from support.build import a_node, a_pod, a_site

from underhost.agents.http.details import host_detail, node_detail
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.page import MachineVm
from underhost.schemas.vsphere import Host


@pytest.fixture
def site() -> Snapshot:
    return a_site(
        a_node("n1").has(cpu="4", memory="8Gi", pods="110").tainted("dedicated=db:NoSchedule", "old:NoExecute"),
        a_node("n2").has(cpu="2", memory="4Gi", pods="110"),
        a_pod("db-0").on("n1").needs(cpu="500m", memory="1Gi"),
        a_pod("db-1").on("n1").needs(cpu="1", memory="2Gi"),
        a_pod("web").on("n2").needs(cpu="250m"),
        a_pod("waits").needs(cpu="8"),
        on={"n1": "h1", "n2": "h1"},
        hosts=[Host(id="h1", name="esx-1", cpu_mhz=48_000, memory_mib=131_072)],
        site="prod",
    )


def test_a_node_says_what_it_has_and_what_is_asked_of_it(site: Snapshot) -> None:
    found = node_detail("prod", site, "n1")
    assert found.allocatable == {"cpu": 4000, "memory": 8 << 30, "pods": 110, "ephemeral-storage": 100 << 30}
    assert found.asked == {"cpu": 1500, "memory": 3 << 30, "pods": 2}
    assert found.taints == ["dedicated=db:NoSchedule", "old:NoExecute"]
    assert found.vm == MachineVm("n1")


def test_a_host_says_its_size_its_vms_and_what_their_pods_ask(site: Snapshot) -> None:
    found = host_detail("prod", site, "h1")
    assert (found.cpu_mhz, found.memory_mib) == (48_000, 131_072)
    assert [vm.name for vm in found.vms] == ["n1", "n2"]
    assert found.asked == {"cpu": 1750, "memory": 3 << 30, "pods": 3}


def test_a_quantity_that_is_none_leaves_the_rest_told(site: Snapshot) -> None:
    broken = a_site(a_node("n1").has(cpu="many"), a_pod("db-0").on("n1").needs(cpu="-1"), site="prod")
    found = node_detail("prod", broken, "n1")
    assert (found.allocatable, found.asked, found.vm) == ({}, {"pods": 1}, None)
