"""A snapshot that is written as documents and read again is the same snapshot, and is judged alike."""

import gzip
import random
from dataclasses import replace as with_parts

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import a_budget, a_node, a_pod, a_site, a_workload
from support.sites.random_cluster import RandomCluster

from underhost.agents.evaluate.check import check
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots import dump as dumping
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.vsphere import Cluster, DrsRule, Host, Vm
from underhost.streams.files.reader import InputReader

PARTS = ("nodes", "pods", "namespaces", "services", "workloads", "budgets", "hosts", "clusters", "rules", "vsphere")


def returned(site: Snapshot, squeeze: bool = False) -> Snapshot:
    """The snapshot, written and read."""
    text = b"".join(dumping.documents(site))
    reading = InputReader()
    reading.read_text(gzip.compress(text) if squeeze else text, "here")
    snapshot, notes = snapshot_of(reading.result(), site.site, manifests=False)
    assert notes == []
    return snapshot


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_a_random_cluster_is_read_as_it_was_written(seed: int) -> None:
    made = RandomCluster(seed).snapshot()
    there = {one.host for one in made.node_hosts.values() if one.host}
    site = with_parts(
        made,
        vsphere=True,
        hosts={ref: Host(name=f"esx-{ref}", id=ref) for ref in there},
        vms={one.vm: Vm(name=one.node, id=one.vm, host=one.host) for one in made.node_hosts.values()},
    )
    found = returned(site, squeeze=random.Random(seed).random() < 0.5)
    for part in PARTS:
        assert dict(getattr(found, part)) == dict(getattr(site, part)) if part != "vsphere" else found.vsphere, part
    assert {name: one.host for name, one in found.node_hosts.items()} == {
        name: one.host for name, one in site.node_hosts.items()
    }
    assert check(found, Options()) == check(with_parts(site, node_hosts=found.node_hosts), Options())


def test_owners_budgets_of_both_versions_rules_and_an_unlisted_host_are_kept() -> None:
    site = a_site(
        a_node("n1"),
        a_pod("p").on("n1"),
        a_workload("ReplicaSet", "web"),
        a_workload("VirtualMachineInstanceReplicaSet", "vms", None),
        a_budget("old", {}, min_available=1, version="policy/v1beta1"),
        a_budget("none", None, max_unavailable="50%"),
        on={"n1": "h1"},
        clusters=[Cluster(name="C0", drs=False)],
        site="prod",
    )
    rule = DrsRule(name="apart", type="anti-affinity", vms=["vm-n1", "vm-x"], mandatory=True, cluster="C0", key=7)
    site = with_parts(
        site, rules={("C0", "apart"): rule}, vms={**site.vms, "vm-x": Vm(name="x", id="vm-x", host="host-99")}
    )
    found = returned(site)
    assert found.budgets == site.budgets
    assert {key: (one.kind, one.spec) for key, one in found.workloads.items()} == {
        key: (one.kind, one.spec) for key, one in site.workloads.items()
    }
    assert found.rules == site.rules
    assert found.clusters["C0"].drs is False
    assert found.hosts["host-99"].state == "disconnected"
    assert found.vms == site.vms


def test_a_site_without_vsphere_has_no_inventory() -> None:
    assert not returned(a_site(a_node("n1"))).vsphere


def test_large_kinds_are_cut_into_documents_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumping, "AT_ONCE", 2)
    site = a_site(a_node("n1"), *(a_pod(f"p{at}").on("n1") for at in range(5)))
    lines = list(dumping.documents(site))
    assert [line.count(b'"nodeName"') for line in lines] == [0, 2, 2, 1]
    assert returned(site).pods == site.pods
