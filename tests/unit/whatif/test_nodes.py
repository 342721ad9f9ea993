"""Nodes that fail, are tainted, labelled or added, tried: which pods leave, when, and where they are made again."""

from dataclasses import replace
from typing import Any

import pytest
from support.answers.whatif import answer, moves, pending, plan, tried, used
from support.build import HOST, PodBuilder, a_budget, a_namespace, a_node, a_pod, a_site, a_workload, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Joining, Options, Snapshot
from underhost.agents.snapshots.load import added_of
from underhost.agents.whatif.additions import add
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.pods import BOUND, GONE, HELD, NO_DAEMON
from underhost.agents.whatif.steps import Add, Fail
from underhost.agents.whatif.world import NO_HOST, World
from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import InputError
from underhost.schemas.vsphere import Vm
from underhost.streams.files.reader import load_files

N1, N2, N3 = (a_node(f"n{number}") for number in (1, 2, 3))
TAINTED = "node(s) had untolerated taint(s)"
DEDICATED = "taint n1=dedicated=db:NoExecute"
WEB = {"app": "web"}


def tolerates(key: str, seconds: int | None = None, **more: str) -> dict[str, Any]:
    """A spec with one NoExecute toleration."""
    one: dict[str, Any] = {"key": key, "operator": "Exists", "effect": "NoExecute", **more}
    return {"tolerations": [one | ({} if seconds is None else {"tolerationSeconds": seconds})]}


def web(name: str, node: str) -> PodBuilder:
    return a_pod(name).on(node).labels(WEB).owned_by("ReplicaSet/web")


# ----------------------------------------------------------------------------------------------------- NoExecute taints
@pytest.mark.parametrize(
    ("spec", "leaves"),
    [
        pytest.param({}, True, id="without a toleration"),
        pytest.param(tolerates("other"), True, id="that tolerates another taint"),
        pytest.param(tolerates("dedicated"), False, id="that tolerates it for ever"),
        pytest.param(tolerates("dedicated", 60), True, id="that tolerates it for a time"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, False, id="that tolerates everything"),
        pytest.param(
            {"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
            True,
            id="that tolerates the other effect only",
        ),
    ],
)
def test_a_no_execute_taint_evicts_a_pod(spec: dict[str, Any], leaves: bool) -> None:
    document = tried(a_site(N1, N2, web("p", "n1").spec(**spec)), DEDICATED)
    assert [one.from_ for one in document.moves] == (["n1"] if leaves else [])


def test_who_tolerates_it_for_a_shorter_time_leaves_first() -> None:
    pods = [web("a", "n1").spec(**tolerates("dedicated", 60)), web("b", "n1").spec(**tolerates("dedicated", 5))]
    one_place = N2.has(pods="1")
    document = tried(a_site(N1, one_place, *pods), DEDICATED)
    # the taint's toleration holds for its placement, too: who finds no other place comes back
    assert moves(document) == ["1 b n1>n2 taint", "1 a n1>n1 taint"]


def test_a_no_schedule_taint_moves_nothing_and_is_drift() -> None:
    document = tried(a_site(N1, N2, web("p", "n1")), "taint n1=dedicated=db:NoSchedule")
    assert moves(document) == []
    assert [(one.severity, one.node) for one in document.new_findings] == [("drift", "n1")]


def test_no_budget_is_asked_for_an_eviction_by_taint() -> None:
    budget = a_budget("web", {"matchLabels": WEB}, min_available=1)
    document = tried(a_site(N1, N2, web("p", "n1"), budget), DEDICATED)
    assert moves(document) == ["1 p n1>n2 taint"]
    assert used(document) == {}


def test_a_daemon_that_does_not_tolerate_the_taint_is_lost_and_a_static_pod_is_not() -> None:
    mirror = a_pod("etcd-n1").on("n1").metadata(annotations={"kubernetes.io/config.mirror": "x"})
    document = tried(a_site(N1, N2, a_pod("agent").on("n1").owned_by("DaemonSet/agent"), mirror), DEDICATED)
    assert (moves(document), pending(document)) == ([], {"agent": {NO_DAEMON: 0}})


def test_a_taint_that_is_removed_lets_pods_in() -> None:
    tainted = a_node("n1").spec(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    site = a_site(tainted, web("p", ""))
    assert moves(tried(site, "taint n1=k:NoSchedule-")) == ["1 p ->n1 taint"]
    assert moves(tried(site, "taint n1=k-")) == ["1 p ->n1 taint"]
    assert moves(tried(site, "taint n1=k:NoExecute-")) == []


# ----------------------------------------------------------------------------------------------------------- lost nodes
@pytest.mark.parametrize(
    ("pod", "moved", "waits"),
    [
        pytest.param(web("p", "n1"), ["1 p n1>n2 fail"], {}, id="of a ReplicaSet is made again"),
        pytest.param(
            a_pod("p").on("n1").owned_by("VirtualMachineInstance/vm"),
            ["1 p n1>n2 fail"],
            {},
            id="of a VM is made again",
        ),
        pytest.param(
            a_pod("p").on("n1").owned_by("StatefulSet/db"),
            [],
            {"p": {HELD: 0}},
            id="of a StatefulSet waits for the node",
        ),
        pytest.param(a_pod("p").on("n1"), [], {"p": {GONE: 0}}, id="of nobody is gone"),
        pytest.param(
            web("p", "n1").spec(**tolerates("node.kubernetes.io/unreachable")),
            [],
            {"p": {BOUND: 0}},
            id="that tolerates the loss for ever waits for the node",
        ),
        pytest.param(a_pod("p").on("n1").owned_by("DaemonSet/agent"), [], {}, id="of a DaemonSet goes with its node"),
        pytest.param(web("p", "n1").deleted(), [], {}, id="that terminates is replaced already"),
    ],
)
def test_a_pod_on_a_lost_node(pod: k8s.Pod, moved: list[str], waits: dict[str, dict[str, int]]) -> None:
    document = tried(a_site(N1, N2, pod), "fail node/n1")
    assert (moves(document), pending(document)) == (moved, waits)


def test_the_lost_node_is_still_there_and_takes_nobody() -> None:
    document = tried(a_site(N1, N2, web("p", "n1"), web("q", "n2").apart(term(HOST, WEB))), "fail node/n1")
    assert pending(document) == {"p": {TAINTED: 1, "node(s) didn't satisfy existing pods anti-affinity rules": 1}}
    assert document.new_findings == []


def test_who_gives_the_node_up_sooner_is_placed_first() -> None:
    pods = [web("a", "n1"), web("b", "n1").spec(**tolerates("node.kubernetes.io/unreachable", 5))]
    one_place = N2.has(pods="1")
    document = tried(a_site(N1, one_place, *pods), "fail node/n1")
    assert moves(document) == ["1 b n1>n2 fail"]
    assert list(pending(document)) == ["a"]


def test_nodes_that_fail_at_once_take_nothing_of_one_another() -> None:
    site = a_site(N1, N2, N3, web("a", "n1"), web("b", "n2"))
    document = what_if(site, Options(), [Fail(("node/n1", "node/n2"))]).document
    assert moves(document) == ["1 a n1>n3 fail", "1 b n2>n3 fail"]


def test_a_lost_nodes_pods_are_not_healthy_for_the_next_drain() -> None:
    pods = [a_pod(f"db-{at}").on(f"n{at + 1}").labels(WEB).owned_by("StatefulSet/db") for at in range(3)]
    budget = a_budget("db", {"matchLabels": WEB}, max_unavailable=1)
    site = a_site(N1, N2, N3, a_workload("StatefulSet", "db"), *pods, budget)
    assert [one.pod for one in tried(site, "fail node/n1", "drain n2").blocked] == ["shop/db-1"]
    # given up by force, the pod comes back elsewhere, is ready, and the drain can go on
    freed = tried(site, "fail node/n1", "delete shop/db-0", "drain n2")
    assert moves(freed) == ["2 db-0 n1>n2 delete", "3 db-0 n2>n3 drain", "3 db-1 n2>n3 drain"]


def test_a_node_that_comes_back_lets_its_pods_be_made_again() -> None:
    site = a_site(N1, N2, a_pod("db-0").on("n1").owned_by("StatefulSet/db").spec(nodeSelector={"disk": "ssd"}))
    back = Add(Snapshot(nodes={"n1": a_node("n1").labels(disk="ssd").build()}))
    document = what_if(site, Options(), [Fail(("node/n1",)), back]).document
    assert moves(document) == ["2 db-0 n1>n1 add"]
    assert pending(document) == {}


# --------------------------------------------------------------------------------------------------------------- adding
@pytest.mark.parametrize(
    ("objects", "left_out"),
    [
        pytest.param(
            a_site(a_pod("api", "web")),
            [("InterPodAffinity by namespaceSelector on pods of 1 namespace", "their labels are not known")],
            id="a pod of a namespace that is not there",
        ),
        pytest.param(a_site(a_pod("api", "web"), a_namespace("web")), [], id="with its namespace"),
    ],
)
def test_a_plan_says_that_nobody_knows_the_labels_of_an_added_pods_namespace(
    objects: Snapshot, left_out: list[tuple[str, str]]
) -> None:
    teams = term(HOST, WEB, namespaceSelector={"matchLabels": {"team": "shop"}})
    site = a_site(N1, a_namespace("shop"), a_pod("db").on("n1").apart(teams))
    told = what_if(site, Options(), [Add(objects)]).document.not_judged
    assert [(one.what, one.why) for one in told] == [("PhysicalHost", "no inventory"), *left_out]


def added(tmp_path: Any, text: str) -> Add:
    file = tmp_path / "added.yaml"
    file.write_text(text, encoding="utf-8")
    return added_of(load_files([file]))


STAND_BY = """
kind: Node
metadata: {name: n9, labels: {kubernetes.io/hostname: n9, disk: ssd}}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: c}]}
"""


def test_a_stand_by_node_takes_what_waits(tmp_path: Any) -> None:
    site = a_site(N1, web("w", "n1").spec(nodeSelector={"disk": "ssd"}))
    steps = [*plan("drain n1"), added(tmp_path, STAND_BY)]
    document = what_if(site, Options(), steps).document
    assert moves(document) == ["2 w n1>n9 add"]
    assert pending(document) == {}
    waits = a_site(N1, web("w", "").spec(nodeSelector={"disk": "ssd"}))
    assert moves(what_if(waits, Options(), [added(tmp_path, STAND_BY)]).document) == ["1 w ->n9 add"]


@pytest.mark.parametrize("join_by_name", [True, False])
def test_a_node_that_is_added_with_its_vm_is_that_vm_whatever_the_site_asks(tmp_path: Any, join_by_name: bool) -> None:
    inventory = "hosts: [{name: esx-9, id: h9}]\nvms: [{name: n9, id: vm-9, host: h9}]\n"
    step = added(tmp_path, f"{STAND_BY}---\nkind: Inventory\n{inventory}")
    hostile = Vm("n2", "vm-x", "42170000-0000-0000-0000-000000000001", "h1")
    site = a_site(N1, N2, on={"n1": "h1"})
    site = replace(site, vms={"vm-x": hostile}, node_hosts={}, joining=Joining(by_name=join_by_name))
    world = World(site, Evaluator(Options()))
    add(world, step)
    joined = {name: row.host_name for name, row in world.snapshot.node_hosts.items()}
    assert joined == ({"n2": "esx-h1", "n9": "esx-9"} if join_by_name else {"n9": "esx-9"})


def test_a_new_node_gets_its_daemons_and_the_others_get_none(tmp_path: Any) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(
        DEPLOYMENT.replace("Deployment", "DaemonSet").replace("replicas: 2", "minReadySeconds: 0"), encoding="utf-8"
    )
    others = load_files([dump]).others
    site = a_site(N1, N2, a_pod("api-x").on("n1").labels(app="api").owned_by("DaemonSet/api"))
    document = what_if(site, Options(), [added(tmp_path, STAND_BY)], others).document
    assert moves(document) == ["1 api-n9 ->n9 add"]


def test_a_manifest_that_is_added_becomes_its_pods(tmp_path: Any) -> None:
    document = what_if(a_site(N1, N2), Options(), [added(tmp_path, DEPLOYMENT)]).document
    assert moves(document) == ["1 api-0 ->n1 add", "1 api-1 ->n2 add"]


def test_a_deployment_that_is_there_is_scaled_up(tmp_path: Any) -> None:
    site = a_site(
        N1,
        N2,
        a_workload("Deployment", "api", 1),
        a_workload("ReplicaSet", "api-7d", 1).owned_by("Deployment/api"),
        a_pod("api-7d-x").on("n1").labels({"app": "api", "pod-template-hash": "7d"}).owned_by("ReplicaSet/api-7d"),
    )
    assert moves(what_if(site, Options(), [added(tmp_path, DEPLOYMENT)]).document) == ["1 api-0 ->n2 add"]


def test_a_pod_that_is_added_on_its_node_counts_as_running(tmp_path: Any) -> None:
    text = "kind: Pod\nmetadata: {name: p, namespace: shop}\nspec: {nodeName: n1, containers: [{name: c}]}\n"
    document = what_if(a_site(N1), Options(), [added(tmp_path, text)]).document
    assert (moves(document), pending(document)) == ([], {})


def test_a_no_execute_taint_of_a_node_that_is_applied_again_evicts(tmp_path: Any) -> None:
    text = STAND_BY.replace("n9", "n1") + "spec: {taints: [{key: k, effect: NoExecute}]}\n"
    document = what_if(a_site(N1, N2, web("p", "n1")), Options(), [added(tmp_path, text)]).document
    assert moves(document) == ["1 p n1>n2 add"]


# ---------------------------------------------------------------------------------------------------- what is not there
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("drain kni-wroker", "node kni-wroker: not there; did you mean kni-worker?"),
        ("cordon zzz", "node zzz: not there"),
        ("fail node/kni-work", "node kni-work: not there; did you mean kni-worker?"),
        ("fail host/h1", f"host h1: {NO_HOST}"),
        ("delete shop/wbe-1", "pod shop/wbe-1: not there; did you mean shop/web-1?"),
        ("delete default/web-1", "pod default/web-1: not there; did you mean shop/web-1?"),
    ],
)
def test_what_is_not_there_is_named_with_what_may_be_meant(line: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        tried(a_site(a_node("kni-worker"), web("web-1", "kni-worker")), line)
    assert refused.value.faults == (why,)


def test_a_bare_pod_that_a_step_has_lost_cannot_be_deleted_again() -> None:
    with pytest.raises(InputError, match="pod shop/p: not there"):
        tried(a_site(N1, N2, a_pod("p").on("n1")), "drain n1", "delete shop/p")


def test_a_mirror_pod_that_is_deleted_is_made_again_by_its_kubelet() -> None:
    mirror = a_pod("etcd-n1").on("n1").metadata(annotations={"kubernetes.io/config.mirror": "x"})
    assert moves(tried(a_site(N1, mirror), "cordon n1", "delete shop/etcd-n1")) == ["2 etcd-n1 n1>n1 delete"]


def test_a_daemon_that_is_deleted_comes_back_to_its_cordoned_node() -> None:
    site = a_site(N1, N2, a_pod("agent").on("n1").owned_by("DaemonSet/agent"))
    assert moves(tried(site, "cordon n1", "delete shop/agent")) == ["2 agent n1>n1 delete"]


def test_no_step_is_no_consequence() -> None:
    found = answer(a_site(N1, a_pod("a").on("n1").apart(term(HOST, WEB)).labels(WEB), a_pod("b").on("n1").labels(WEB)))
    document = found.document
    assert (document.moves, document.pending, document.new_findings, document.resolved_findings) == ([], {}, [], [])
