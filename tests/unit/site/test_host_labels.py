"""The host that a node label names, since when it does, and which label is worth proposing."""

from dataclasses import replace
from typing import Any

import pytest
from support.build import Built, a_node, a_pod, a_site

from underhost.agents.site.host_labels import proposed, read
from underhost.agents.site.join import located
from underhost.agents.site.not_judged import hosts_not_judged
from underhost.agents.site.snapshot import Joining, Snapshot
from underhost.schemas.documents import NotJudged
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Host

KEY = "example.com/hypervisor"
CAPV, PROXMOX = "node.cluster.x-k8s.io/esxi-host", "topology.proxmox.sinextra.dev/zone"


def manages(time: str, *keys: str) -> dict[str, Any]:
    """An entry of managedFields: a manager that owns these labels."""
    return {"manager": "ccm", "time": time, "fieldsV1": {"f:metadata": {"f:labels": {f"f:{key}": {} for key in keys}}}}


def labelled(*nodes: Built, key: str = KEY) -> Snapshot:
    return located(replace(a_site(*nodes), joining=Joining(label=key)))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(a_node("n").labels({KEY: "pve-1"}), ("pve-1", ""), id="nobody is on record"),
        pytest.param(a_node("n"), ("", ""), id="no label"),
        pytest.param(a_node("n").labels({KEY: ""}), ("", ""), id="an empty one"),
        pytest.param(
            a_node("n").labels({KEY: "pve-1"}).metadata(managedFields=[manages("2026-01-05T08:00:00Z", KEY, "other")]),
            ("pve-1", "2026-01-05T08:00:00Z"),
            id="its manager",
        ),
        pytest.param(
            a_node("n")
            .labels({KEY: "pve-1"})
            .metadata(
                managedFields=[
                    manages("2026-01-05T08:00:00Z", KEY),
                    manages("2026-01-09T08:00:00Z", "other"),
                    manages("2026-01-07T08:00:00Z", KEY),
                ]
            ),
            ("pve-1", "2026-01-07T08:00:00Z"),
            id="the later of two managers, and not that of another label",
        ),
        pytest.param(
            a_node("n").metadata(managedFields=[manages("2026-01-05T08:00:00Z", KEY)]),
            ("", ""),
            id="a label that is gone",
        ),
    ],
)
def test_a_label_names_the_host_and_its_manager_since_when(node: Built, expected: tuple[str, str]) -> None:
    assert read(node.build(), KEY) == expected


def test_a_site_whose_label_names_hosts_has_these_hosts() -> None:
    site = labelled(a_node("n2").labels({KEY: "pve-1"}), a_node("n1").labels({KEY: "pve-1"}), a_node("n3"))
    assert site.node_hosts == {
        name: NodeHost(node=name, vm="", host="pve-1", host_name="pve-1", joined_by="label") for name in ("n1", "n2")
    }
    assert site.hosts == {"pve-1": Host(name="pve-1")}
    assert hosts_not_judged(site) == [NotJudged("PhysicalHost on 1 node", f"without the label {KEY}")]


def test_a_label_that_no_node_has_judges_nothing() -> None:
    assert hosts_not_judged(labelled(a_node("n1"))) == [NotJudged("PhysicalHost", f"no node has the label {KEY}")]


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param(a_site(a_node("n").labels({CAPV: "esx-1"})), CAPV, id="a known label"),
        pytest.param(
            a_site(*(a_node(name).labels({PROXMOX: "pve"}) for name in "ab"), a_node("c").labels({CAPV: "esx-1"})),
            PROXMOX,
            id="the one of most nodes",
        ),
        pytest.param(a_site(a_node("n").labels({KEY: "pve-1"}), a_pod("p")), "", id="a label that nobody knows"),
        pytest.param(a_site(a_node("n").labels({CAPV: "esx-1"}), on={"n": "esx-1"}), "", id="vSphere says it"),
        pytest.param(labelled(a_node("n").labels({CAPV: "esx-1"}), key=PROXMOX), "", id="another label was asked for"),
    ],
)
def test_a_known_label_is_proposed_where_nothing_else_names_hosts(site: Snapshot, expected: str) -> None:
    assert proposed(site) == expected
