"""The map of a site as rows, and what a change of the site changes of them."""

from dataclasses import replace

from msgspec import UNSET
from support.build import a_node, a_pod, a_site, a_workload
from support.published import a_finding

from underhost.agents.http.map_rows import MapRows
from underhost.agents.site.join import located
from underhost.agents.site.snapshot import Joining, Snapshot
from underhost.schemas.documents import NotJudged
from underhost.schemas.page import MapChange, MapHost, MapNode, MapPod, MapTotals
from underhost.schemas.records import NodeHost

ZONE = "topology.kubernetes.io/zone"


def a_shop() -> Snapshot:
    return a_site(
        a_node("n1").labels({ZONE: "a", "example.com/rack": "r1", "kubernetes.io/arch": "amd64"}),
        a_node("n2").cordoned(),
        a_pod("db-0").on("n1").owned_by("StatefulSet/db"),
        a_pod("web-1").on("n2").owned_by("ReplicaSet/web-5f").ready(False),
        a_pod("logs-1").on("n1").owned_by("DaemonSet/logs").deleted(),
        a_pod("web-2").owned_by("ReplicaSet/web-5f").ready(False),
        a_pod("job-1").on("n1").finished(),
        a_workload("ReplicaSet", "web-5f").owned_by("Deployment/web"),
        on={"n1": "h1", "n2": ""},
    )


def test_hosts_nodes_and_pods_are_rows_and_finished_pods_are_none() -> None:
    rows = MapRows()
    rows.update(a_shop(), {})
    shown = rows.site_map("prod", "1")
    assert shown.hosts == [MapHost("h1", "esx-h1", "C0")]
    assert shown.nodes == [
        MapNode("n1", "h1", vm_ref="vm-n1", labels={"example.com/rack": "r1", ZONE: "a"}),
        MapNode("n2", vm_ref="vm-n2", cordoned=True),
    ]
    assert shown.pods == [
        MapPod("shop/db-0", "n1", "StatefulSet/db"),
        MapPod("shop/web-1", "n2", "Deployment/web", ready=False),
        MapPod("shop/logs-1", "n1", "DaemonSet/logs", leaving=True, pinned=True),
        MapPod("shop/web-2", "", "Deployment/web", "Pending", ready=False),
    ]


def test_a_vm_that_moves_changes_its_node_only() -> None:
    rows, before = MapRows(), a_shop()
    rows.update(before, {})
    moved = NodeHost("n1", "vm-n1", "h2", "esx-h2", "name", "2026-01-05T08:00:00.000Z")
    change = rows.update(replace(before, node_hosts={**before.node_hosts, "n1": moved}), {})
    labels = {"example.com/rack": "r1", ZONE: "a"}
    assert change == MapChange(nodes=[MapNode("n1", "h2", vm_ref="vm-n1", since=moved.since, labels=labels)])


def test_pods_that_come_go_and_finish() -> None:
    rows, before = MapRows(), a_shop()
    rows.update(before, {})
    failed = a_pod("db-0").on("n1").finished("Failed")
    pods = {**before.pods, "shop/new": a_pod("new").on("n1").build(), "shop/db-0": failed.build()}
    del pods["shop/web-1"]
    change = rows.update(replace(before, pods=pods), {})
    assert change == MapChange(
        pods=[MapPod("shop/new", "n1")], gone_pods=["shop/db-0", "shop/web-1"], counts={"n1": 2, "n2": 0}
    )


def test_the_same_picture_again_changes_nothing() -> None:
    rows, before = MapRows(), a_shop()
    rows.update(before, {})
    assert rows.update(replace(before, pods=dict(before.pods)), {}) == MapChange()


def test_a_workload_that_is_heard_of_late_is_what_its_pods_belong_to() -> None:
    rows, whole = MapRows(), a_shop()
    rows.update(replace(whole, workloads={}), {})
    shown = rows.site_map("prod", "1").pods
    assert {pod.workload for pod in shown} == {"StatefulSet/db", "ReplicaSet/web-5f", "DaemonSet/logs"}
    change = rows.update(whole, {})
    assert [(pod.name, pod.workload) for pod in change.pods] == [
        ("shop/web-1", "Deployment/web"),
        ("shop/web-2", "Deployment/web"),
    ]


def test_findings_open_change_and_end() -> None:
    rows, site = MapRows(), a_shop()
    first, second = a_finding("f1", "shop/db-0"), a_finding("f1", "shop/db-0", "shop/web-1", state="updated")
    assert rows.update(site, {"f1": first}).findings == [first]
    assert rows.update(site, {"f1": second}).findings == [second]
    assert rows.update(site, {}) == MapChange(gone_findings=["f1"])


def test_what_the_findings_leave_out_is_told_and_told_again_only_when_it_changes() -> None:
    rows, before = MapRows(), a_shop()
    waits, unknown = NotJudged("1 pod", "pending"), NotJudged("PhysicalHost on 1 node", "their hosts are not known")
    assert rows.update(before, {}).not_judged == [unknown, waits]
    assert rows.open_findings("prod", "1").not_judged == [unknown, waits]
    placed = {**before.pods, "shop/web-2": a_pod("web-2").on("n2").owned_by("ReplicaSet/web-5f").build()}
    assert rows.update(replace(before, pods=placed), {}).not_judged == [unknown]
    labelled = replace(before, pods=placed, namespaces={})
    assert rows.update(labelled, {}) == MapChange()


def test_hosts_that_a_label_names_are_rows_and_a_known_label_is_proposed() -> None:
    key = "node.cluster.x-k8s.io/esxi-host"
    site = a_site(a_node("n1").labels({key: "esx-1"}), a_pod("db-0").on("n1"))
    rows = MapRows()
    assert rows.update(site, {}).not_judged == [
        NotJudged("PhysicalHost", f"no inventory; hosts.label: {key} would say")
    ]
    rows.update(located(replace(site, joining=Joining(label=key))), {})
    shown = rows.site_map("prod", "2")
    assert (shown.vsphere, shown.hosts, shown.nodes) == (True, [MapHost("esx-1", "esx-1")], [MapNode("n1", "esx-1")])
    assert rows.open_findings("prod", "2").not_judged == []


def test_an_outline_holds_the_pods_that_wait_or_are_named_and_counts_the_others() -> None:
    rows, site = MapRows(), a_shop()
    rows.update(site, {"f1": a_finding("f1", "shop/db-0", "shop/gone")})
    whole, outline = rows.site_map("prod", "1"), rows.outline("prod", "1")
    assert outline.pods == [MapPod("shop/db-0", "n1", "StatefulSet/db"), whole.pods[3]]
    assert {row.name: row.pods for row in outline.nodes} == {"n1": 2, "n2": 1}
    assert outline.totals == MapTotals(pods=4, own=3, workloads=2)
    assert (outline.hosts, whole.totals, {row.pods for row in whole.nodes}) == (whole.hosts, UNSET, {0})


def test_a_piece_is_nodes_with_their_pods_and_nothing_else() -> None:
    rows, site = MapRows(), a_shop()
    rows.update(site, {})
    piece = rows.piece("prod", "1", ["n2", "gone"])
    assert ([row.name for row in piece.nodes], piece.hosts) == (["n2"], [])
    assert piece.pods == [MapPod("shop/web-1", "n2", "Deployment/web", ready=False)]
    moved = {**site.pods, "shop/web-2": a_pod("web-2").on("n2").owned_by("ReplicaSet/web-5f").build()}
    change = rows.update(replace(site, pods=moved), {})
    assert change.counts == {"n2": 2}
    assert [row.name for row in rows.piece("prod", "2", ["n2"]).pods] == ["shop/web-1", "shop/web-2"]
    assert rows.outline("prod", "2").pods == []


def test_a_change_holds_the_pods_that_its_findings_name() -> None:
    rows, site = MapRows(), a_shop()
    rows.update(site, {})
    change = rows.update(site, {"f1": a_finding("f1", "shop/db-0", "shop/logs-1", "shop/gone")})
    assert [row.name for row in change.pods] == ["shop/db-0", "shop/logs-1"]
    assert change.counts == {}
